"""In which stage of a check something differs: its failure says so behind the first line."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from torch import Tensor

from layer_checks.evidence.evidence import Evidence, equivalent

_COUNTS = 1e-3  # of the largest difference: what is smaller may be rounding


@contextmanager
def stage(said: str) -> Iterator[None]:
    """Adds to a failure in which stage it was.

    Args:
        said: As in "where nothing is hidden".

    Raises:
        AssertionError: The failure, with these words at the end of its first line.
    """
    try:
        yield
    except AssertionError as error:
        first, newline, rest = str(error).partition("\n")
        raise AssertionError(f"{first}, {said}{newline}{rest}") from None


def equal_in_steps(found: Tensor, expected: Tensor, sizes: Sequence[int], atol: float) -> Evidence:
    """Compares what came in steps; a failure says in which of them something differs first.

    Args:
        found: Shape `(batch, seq, ...)`.
        expected: Of the same shape.
        sizes: Of the steps, which sum to `seq`.
        atol: Tolerance.

    Raises:
        AssertionError: If they differ.
    """
    with stage(_first_step(found, expected, sizes)):
        return equivalent(found, expected, atol=atol)


def _first_step(found: Tensor, expected: Tensor, sizes: Sequence[int]) -> str:
    if found.shape != expected.shape:
        return "after all steps"
    apart = (found.detach() - expected.detach()).abs().nan_to_num(float("inf"))
    by_place = apart.transpose(0, 1).flatten(1).amax(1)
    place = int((by_place >= _COUNTS * by_place.max()).int().argmax())
    step = next(n for n in range(len(sizes)) if place < sum(sizes[: n + 1]))
    return f"first at position {place}, in step {step + 1} of {len(sizes)}"
