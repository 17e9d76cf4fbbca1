"""What the collection knows of a right layer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

OWN = "own"

Candidate = TypeVar("Candidate", bound=Callable[..., Any])


@dataclass(frozen=True)
class RightLayer:
    """A layer that is right, and what `check` is to be handed.

    Attributes:
        name: Its name, unique in the collection.
        layer: The layer of ours that it is.
        style: One sentence on how it is written or built.
        work: The package that it is from, or `own`.
        build: Imports it, and gives what is handed to `check`.
    """

    name: str
    layer: str
    style: str
    work: str
    build: Callable[[], Any]


RIGHT: dict[str, RightLayer] = {}


def declared(entry: RightLayer) -> None:
    """Adds a layer to the collection.

    Raises:
        ValueError: If there is one of this name, or it has no sentence.
    """
    if entry.name in RIGHT or not entry.style:
        raise ValueError(f"{entry.name!r} is declared already, or says nothing of its style")
    RIGHT[entry.name] = entry


def own(layer: str) -> Callable[[Candidate], Candidate]:
    """Declares a class or a function of ours as it stands; its docstring tells the style."""

    def add(candidate: Candidate) -> Candidate:
        name = f"own.{candidate.__name__}"
        declared(RightLayer(name, layer, _first_line(candidate), OWN, lambda: candidate))
        return candidate

    return add


def made(layer: str) -> Callable[[Candidate], Candidate]:
    """Declares a function that makes a candidate of ours; its docstring tells the style."""

    def add(build: Candidate) -> Candidate:
        declared(RightLayer(f"own.{build.__name__}", layer, _first_line(build), OWN, build))
        return build

    return add


def public(work: str, layer: str, path: str) -> Callable[[Candidate], Candidate]:
    """Declares a function that imports a candidate; its docstring tells the style.

    Args:
        work: The package that it is from.
        layer: The layer of ours that it is.
        path: Where it is in the package.
    """

    def add(build: Candidate) -> Candidate:
        declared(RightLayer(f"{work}.{path}", layer, _first_line(build), work, build))
        return build

    return add


def _first_line(candidate: Callable[..., Any]) -> str:
    return (candidate.__doc__ or "").partition("\n")[0]
