"""What the survey knows of a layer of a public work."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

# Other versions of a work, and files of repositories that are no packages, are in folders here.
PLACES = Path(sys.prefix, "places")

# How a difference is read. A defect has been derived a second time, in `survey.second`.
Reading = Literal["same", "variation", "defect", "does not fit"]


@dataclass(frozen=True)
class Surveyed:
    """A layer of a public work.

    Attributes:
        work: The name of its distribution, or owner/name of its repository.
        layer: The layer of ours that it is to be.
        path: Where it is in the work.
        build: Imports it, and gives a class or function that is called as ours is.
        reading: How what differs is read, once it was looked at.
        note: One sentence on what differs.
        second: The entry of `survey.second` that derived a defect a second time.
        place: A folder of its own in the environment, for another version of a work.
        cited_for: Known wrong versions, of which a diagnosis is to name one: the work is cited for
            them, or is a defect that they tell.
        known_as: The same of a variation that no known wrong version cites.
    """

    work: str
    layer: str
    path: str
    build: Callable[[], Any]
    reading: Reading = "same"
    note: str = ""
    second: str = ""
    place: str = ""
    cited_for: tuple[str, ...] = ()
    known_as: tuple[str, ...] = ()


SURVEYED: list[Surveyed] = []


def surveyed(
    work: str,
    layer: str,
    path: str,
    reading: Reading = "same",
    note: str = "",
    second: str = "",
    place: str = "",
    cited_for: tuple[str, ...] = (),
    known_as: tuple[str, ...] = (),
) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Declares a function that gives the candidate."""

    def declared(build: Callable[[], Any]) -> Callable[[], Any]:
        SURVEYED.append(
            Surveyed(work, layer, path, build, reading, note, second, place, cited_for, known_as)
        )
        return build

    return declared
