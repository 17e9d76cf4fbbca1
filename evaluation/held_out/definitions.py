"""What is known of a held-out wrong version."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

Candidate = TypeVar("Candidate", bound=Callable[..., Any])


@dataclass(frozen=True)
class HeldOut:
    """A wrong version.

    Attributes:
        layer: The layer that it is to be, by its name in `transformer_layers`.
        name: A few words.
        candidate: The class, or the function.
        source: Where the mistake was published: a thread, or a file.
        words: A regular expression that a fitting name or piece of advice contains. It was written
            with the version, before any name was read.
        collection: One of `COLLECTIONS`, by the module that declares it.
    """

    layer: str
    name: str
    candidate: Callable[..., Any]
    source: str
    words: str
    collection: str

    @property
    def what(self) -> str:
        """What is wrong, in one sentence."""
        return " ".join((self.candidate.__doc__ or "").split())

    def fits(self, text: str) -> bool:
        """Whether a name, or its advice, speaks of this mistake."""
        return re.search(self.words, text, flags=re.IGNORECASE) is not None


COLLECTIONS = ("first", "second", "third", "fourth", "sixth", "seventh")
VERSIONS: dict[str, HeldOut] = {}  # by name


def held_out(layer: str, source: str, words: str) -> Callable[[Candidate], Candidate]:
    """Declares a class or a function as a wrong version of a layer."""

    def declared(candidate: Candidate) -> Candidate:
        apart = r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_"
        name = re.sub(apart, " ", candidate.__name__).lower()
        before = VERSIONS.get(name)
        if before is not None and before.candidate.__qualname__ != candidate.__qualname__:
            raise ValueError(f"there are two versions named {name!r}")
        collection = candidate.__module__.split(".")[-2]
        VERSIONS[name] = HeldOut(layer, name, candidate, source, words, collection)
        return candidate

    return declared
