"""Times of several functions, measured in turn, and their ratios."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """The ratio of two times over all rounds.

    Attributes:
        lower: First quartile.
        median: Median.
        upper: Third quartile.
    """

    lower: float
    median: float
    upper: float


def interleaved(
    functions: Mapping[str, Callable[[], object]], rounds: int
) -> dict[str, list[float]]:
    """Calls each function once a round, and every other round in the opposite order.

    What slows the machine down for a while then slows all of them down. Each is called once before
    the first round.

    Args:
        functions: What is to be timed, by name.
        rounds: Number of rounds, at least 2.

    Returns:
        The seconds of each call, by name; the same position is the same round.
    """
    for function in functions.values():
        function()
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for number in range(rounds):
        names = list(functions) if number % 2 == 0 else list(functions)[::-1]
        for name in names:
            start = time.perf_counter()
            functions[name]()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def ratio(seconds: list[float], reference: list[float]) -> Ratio:
    """The ratio of two functions' times, taken round by round.

    Args:
        seconds: Times of one function.
        reference: Times of the other, in the same rounds.

    Returns:
        Median and quartiles.
    """
    ratios = [own / other for own, other in zip(seconds, reference, strict=True)]
    return Ratio(*statistics.quantiles(ratios, n=4, method="inclusive"))


def shortest(function: Callable[[], object], calls: int) -> float:
    """The shortest of several calls, in seconds: what the machine can do.

    Args:
        function: What is to be timed.
        calls: Number of calls.

    Returns:
        Seconds.
    """
    return min(interleaved({"": function}, calls)[""])
