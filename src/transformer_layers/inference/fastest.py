"""Which of several ways to compute the same takes the least time on this machine."""

import time
from collections.abc import Callable, Mapping
from typing import TypeVar

_Name = TypeVar("_Name")

ROUNDS = 5
MARGIN = 0.05  # of the time, by which one must win over those that stand before it


def fastest(
    ways: Mapping[_Name, Callable[[], object]], clock: Callable[[], float] = time.perf_counter
) -> _Name:
    """The name of the way whose shortest call is the shortest.

    They are called in turn, so that what slows the machine down slows all of them down, and once
    before they are timed. One that wins by 5 % of the time or less does not win over those before.

    Args:
        ways: What is timed, by name.
        clock: Returns the time in seconds.

    Returns:
        The name.

    Examples:
        >>> seconds = iter([0.0, 3.0, 3.0, 5.0] * 5)
        >>> fastest({"slow": list, "fast": dict}, clock=lambda: next(seconds))
        'fast'
    """
    for way in ways.values():
        way()
    shortest = dict.fromkeys(ways, float("inf"))
    for _ in range(ROUNDS):
        for name, way in ways.items():
            start = clock()
            way()
            shortest[name] = min(shortest[name], clock() - start)
    best, *others = shortest
    for name in others:
        if shortest[name] < (1 - MARGIN) * shortest[best]:
            best = name
    return best
