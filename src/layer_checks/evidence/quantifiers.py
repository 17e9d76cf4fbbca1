"""Evidence over many inputs: random draws, trained models, every value of a kind, a search.

A check of one input tests a law there. These functions say how far it was tested, on the page too.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

from layer_checks.evidence.evidence import Evidence

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


def over_draws(check: Callable[[], Evidence], draws: int = 200, seed: int = 0) -> Evidence:
    """Runs a check that draws its own random inputs, many times, each from a seed of its own.

    Args:
        check: A function without arguments that draws from torch's generator and returns evidence.
        draws: How often. 1 or more.
        seed: Where the seeds begin.

    Returns:
        The weakest evidence of all draws. Of "equal" that is the error nearest to its tolerance,
        of "different" the smallest difference.

    Raises:
        AssertionError: If the check fails in a draw; the message says in which.
        ValueError: If `draws` is less than 1.

    Examples:
        >>> from layer_checks import equivalent
        >>> over_draws(lambda: equivalent(torch.rand(3).clamp(0, 1) < 2, True), draws=50)
        equal: largest difference 0, tolerance 0, over 50 draws
    """
    if draws < 1:
        raise ValueError(f"draws must be 1 or more, got {draws}")
    found = []
    with torch.random.fork_rng(devices=[]):
        for draw in range(draws):
            torch.manual_seed(seed + draw)
            try:
                found.append(check())
            except AssertionError as error:
                raise AssertionError(f"in draw {draw} of {draws}: {error}") from error
    return _labeled(found, f"over {draws:,} draws", "draws", draws)


def over_seeds(
    check: Callable[[Any], Evidence], runs: Iterable[Any], at_least: int | None = None
) -> Evidence:
    """Runs a check on what training gave with each of several seeds, and counts where it holds.

    Args:
        check: A function of one run, as of one entry of a record, that returns evidence.
        runs: What was measured with each seed. Two or more.
        at_least: In how many runs it must hold; in each where it is not given.

    Returns:
        The weakest evidence of the runs in which it holds, with their number and that of all.

    Raises:
        AssertionError: If it holds in fewer; the message tells of the first that failed.
        ValueError: If there are fewer than two runs, or `at_least` is not among their numbers.

    Examples:
        >>> from layer_checks import holds
        >>> over_seeds(lambda share: holds(share > 0.9, "right"), [0.95, 1.0, 0.5], at_least=2)
        holds: right, 2 of 3 seeds
    """
    runs = list(runs)
    if len(runs) < 2:
        raise ValueError(f"seeds must be two or more, got {len(runs)}")
    needed = len(runs) if at_least is None else at_least
    if not 1 <= needed <= len(runs):
        raise ValueError(f"at_least must be from 1 to {len(runs)}, got {at_least}")
    found: list[Evidence] = []
    failed: list[tuple[int, AssertionError]] = []
    for place, run in enumerate(runs):
        try:
            found.append(check(run))
        except AssertionError as error:
            failed.append((place, error))
    count = f"{len(found)} of {len(runs)} seeds"
    if len(found) < needed:
        place, why = failed[0]
        raise AssertionError(f"in {count}, {needed} needed; run {place}: {why}") from why
    return replace(_labeled(found, count, "seeds", len(runs)), held=len(found))


def over_all(check: Callable[[Any], Evidence], values: Tensor | Iterable[Any]) -> Evidence:
    """Runs a check on every value there is, so that nothing is left untried.

    Args:
        check: A function of a value that returns evidence.
        values: All values. A tensor is handed over whole, and its elements are counted.

    Returns:
        The weakest evidence, as in `over_draws`.

    Raises:
        AssertionError: If the check fails for a value; the message names it.
        ValueError: If there is no value.

    Examples:
        >>> from layer_checks import equivalent
        >>> over_all(lambda x: equivalent(-(-x), x, atol=0.0), every_half())
        equal: largest difference 0, tolerance 0, all 63,488 values
    """
    if isinstance(values, Tensor):
        found, number = [check(values)], values.numel()
    else:
        found, number = [], 0
        for value in values:
            number += 1
            try:
                found.append(check(value))
            except AssertionError as error:
                raise AssertionError(f"for {value!r}: {error}") from error
    if number == 0:
        raise ValueError("there is no value to check")
    return _labeled(found, f"all {number:,} values", "all", number)


def every_half(dtype: torch.dtype = torch.float16) -> Tensor:
    """Every finite value of a half precision, in the order of its bits.

    Args:
        dtype: torch.float16 or torch.bfloat16.

    Returns:
        Shape (63488,) for float16, (65280,) for bfloat16; both zeros are among them.

    Raises:
        ValueError: If `dtype` is another.

    Examples:
        >>> every_half().max(), every_half(torch.bfloat16).numel()
        (tensor(65504., dtype=torch.float16), 65280)
    """
    if dtype not in (torch.float16, torch.bfloat16):
        raise ValueError(f"dtype must be torch.float16 or torch.bfloat16, got {dtype}")
    values = torch.arange(-(2**15), 2**15, dtype=torch.int16).view(dtype)
    return values[values.isfinite()]


def over_search(
    check: Callable[[Any], Evidence], values: "SearchStrategy[Any]", tries: int = 200
) -> Evidence:
    """Searches for a value that a check fails on: the odd ones first, and then by chance.

    The search is that of the package hypothesis, which is to be installed. It tries what is likely
    to break a law (zeros, the smallest and the largest numbers, equal ones, empty and short lists)
    and makes what it finds as simple as it can. It is the same search each time.

    Args:
        check: A function of a value that returns evidence.
        values: Where to search, a strategy of `hypothesis.strategies`.
        tries: How many values to try. 1 or more.

    Returns:
        The weakest evidence of all values, as in `over_draws`.

    Raises:
        AssertionError: If the check fails for a value; the message names the simplest.
        ImportError: If hypothesis is not installed.
        ValueError: If `tries` is less than 1.

    Examples:
        >>> from hypothesis import strategies
        >>> from layer_checks import equivalent
        >>> over_search(lambda n: equivalent(float(n) - n, 0.0, atol=0), strategies.integers(0, 99))
        equal: largest difference 0, tolerance 0, 100 inputs searched
    """
    if tries < 1:
        raise ValueError(f"tries must be 1 or more, got {tries}")
    try:
        from hypothesis import HealthCheck, Phase, given, settings
    except ImportError as error:
        raise ImportError("over_search needs hypothesis: pip install hypothesis") from error
    found: list[Evidence] = []
    failed: list[tuple[Any, AssertionError]] = []

    def trial(value: Any) -> None:
        try:
            found.append(check(value))
        except AssertionError as error:
            failed.append((value, error))
            raise

    searched = settings(
        max_examples=tries,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        print_blob=False,
        report_multiple_bugs=False,
    )
    try:
        searched(given(values)(trial))()
    except AssertionError as error:
        value, why = failed[-1]  # the simplest is tried once more, at the end
        raise AssertionError(f"for {value!r}: {why}") from error
    return _labeled(found, f"{len(found):,} inputs searched", "search", len(found))


def counted(actual: int, expected: int) -> Evidence:
    """Checks that two whole numbers are the same.

    Args:
        actual: What was counted.
        expected: What the law says.

    Returns:
        Evidence that shows the number.

    Raises:
        AssertionError: If they differ.
        TypeError: If one of them is no int.

    Examples:
        >>> counted(sum(p.numel() for p in torch.nn.Linear(3, 4).parameters()), 3 * 4 + 4)
        holds: 16 counted, 16 expected
    """
    for value in (actual, expected):
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"counted takes two ints, got {value!r}")
    if actual != expected:
        raise AssertionError(f"{actual:,} counted, {expected:,} expected")
    text = f"holds: {actual:,} counted, {expected:,} expected"
    return Evidence("holds", None, None, text, "count")


def _labeled(
    found: list[Evidence],
    words: str,
    strength: Literal["draws", "seeds", "all", "search"],
    number: int,
) -> Evidence:
    """The weakest of some evidence, with what was tried."""
    first = found[0]
    if any(each.kind != first.kind for each in found):
        kinds = ", ".join(sorted({each.kind for each in found}))
        raise AssertionError(f"the check gives evidence of more than one kind: {kinds}")
    weakest = min(found, key=lambda each: each.error or 0.0)
    if first.kind == "equal":
        weakest = max(found, key=_share)
    return replace(weakest, text=f"{weakest.text}, {words}", strength=strength, tried=number)


def _share(evidence: Evidence) -> float:
    """How much of its tolerance an error uses up."""
    return (evidence.error or 0.0) / (evidence.tolerance or 1.0)
