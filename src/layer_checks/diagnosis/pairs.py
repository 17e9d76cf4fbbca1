"""Two known mistakes at once, in one class."""

from collections.abc import Mapping
from functools import cache
from itertools import combinations
from typing import Any

from torch import nn

from layer_checks.kit.definitions import Candidate, Layer, WrongVersion

Pair = tuple[WrongVersion, WrongVersion, Candidate]


@cache
def pairs(layer: Layer) -> tuple[Pair, ...]:
    """Any two wrong versions of which a class can make both mistakes, and that class.

    It derives from both, which is no use where one of them replaces what the other has changed,
    and does not go on to it.

    Args:
        layer: A layer whose wrong versions derive from a right one in small steps.

    Returns:
        The two and the class, in the order in which the wrong versions are declared.
    """
    found: list[Pair] = []
    rights = layer.right_ones or (layer.right,)
    for right in rights:
        changes = {
            version: _changes(version.layer, right)
            for version in layer.wrong_versions
            if isinstance(version.layer, type) and not version.generic
        }
        for first, second in combinations(changes, 2):
            makes_both = _both(first, second, changes)
            if makes_both is not None:
                found.append((first, second, makes_both))
    return tuple(found)


def _changes(wrong: type, right: Any) -> dict[str, Any]:
    """What a wrong version has in another form than a right one."""
    names = {
        name
        for each in wrong.__mro__[: wrong.__mro__.index(nn.Module)]
        for name in vars(each)
        if name == "__init__" or not name.startswith("__")
    }
    return {
        name: getattr(wrong, name)
        for name in names
        if getattr(wrong, name) is not getattr(right, name, None)
    }


def _both(
    first: WrongVersion,
    second: WrongVersion,
    changes: Mapping[WrongVersion, dict[str, Any]],
) -> Candidate | None:
    for one, other in ((first, second), (second, first)):
        shared = changes[one].keys() & changes[other].keys()
        if not all(_goes_on(name, changes[one][name]) for name in shared):
            continue
        try:
            both = type("Both", (one.layer, other.layer), {})  # type: ignore[arg-type]  # classes
        except TypeError:  # they have no common order
            continue
        wanted = changes[other] | changes[one]
        if all(getattr(both, name) is value for name, value in wanted.items()):
            return both
    return None


def _goes_on(name: str, method: Any) -> bool:
    """Whether a method calls the next one of its name."""
    code = getattr(method, "__code__", None)
    return code is not None and "__class__" in code.co_freevars and name in code.co_names
