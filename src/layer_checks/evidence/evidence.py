"""Checks that return what they measured, or raise an `AssertionError` that names the worst element.

Each function states one kind of proof: two values agree (`equivalent`), two values disagree by a
stated amount (`different`), a call is refused (`raises`), a yes/no law is obeyed (`holds`). What
each returns shows in a notebook as one line, with the measured number apart from the fixed words,
so that a page can be compared with the text it is expected to have on another machine.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch

from layer_checks.evidence.comparison import Comparable, Comparison, compare, two_digits


@dataclass(frozen=True, repr=False)
class Evidence:
    """What a check measured.

    Attributes:
        kind: Which kind of check it was.
        error: The largest difference, None where nothing was measured.
        tolerance: The difference that was allowed there; for "different", the least one asked for.
        text: One line that says so.
        strength: How much was tried: "input" (one input), "draws", "seeds", "search", "all" or
            "count".
        tried: How many inputs, where more than one was tried.
        held: In how many of them it held, where it need not hold in each: of seeds.
    """

    kind: Literal["equal", "different", "raises", "holds"]
    error: float | None
    tolerance: float | None
    text: str
    strength: Literal["input", "draws", "seeds", "search", "all", "count"] = "input"
    tried: int | None = None
    held: int | None = None

    @property
    def pattern(self) -> str:
        """The text with the measured number, which varies between machines, written as `...`."""
        if self.error is None:
            return self.text
        measured = f"largest difference {two_digits(self.error)}"
        return self.text.replace(measured, "largest difference ...", 1)

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, str], dict[str, object]]:
        """Shows the text, and hands the numbers to whatever renders the notebook."""
        held = {} if self.held is None else {"held": self.held}
        numbers = {
            "kind": self.kind,
            "error": _finite(self.error),
            "tolerance": _finite(self.tolerance),
            "pattern": self.pattern,
            "strength": {"kind": self.strength, "number": self.tried, **held},
        }
        return {"text/plain": self.text}, {"evidence": numbers}


def equivalent(
    actual: Comparable,
    expected: Comparable,
    atol: float | None = None,
    rtol: float | None = None,
) -> Evidence:
    """Checks that two values have one shape, one dtype and, within a tolerance, the same elements.

    Element by element, the difference may be up to `atol + rtol * |expected|`. Infinities agree
    where they are the same; NaN agrees with nothing, itself included.

    Args:
        actual: Tensor, array, number or nested list. Numbers and lists have no dtype: they take
            that of the other value. A number is compared with every element.
        expected: The same.
        atol: Absolute tolerance. Where neither tolerance is given: 1e-12 for float64, 1e-6 for
            float32, 2e-3 for float16, 1.6e-2 for bfloat16, which suit values whose size is about
            1, and 0 for integers and booleans. Where only `rtol` is given: 0.
        rtol: Relative tolerance, 0 where it is not given.

    Returns:
        Evidence with the largest difference and the tolerance at that element.

    Raises:
        AssertionError: If shape, dtype or an element differs, or there is a NaN.
        ValueError: If a tolerance is negative or not finite.

    Examples:
        >>> equivalent(torch.tensor([0.5, 0.25]), [0.5, 0.25])
        equal: largest difference 0, tolerance 1e-06
        >>> equivalent(torch.tensor([0.5, 0.26]), [0.5, 0.25], atol=1e-3)
        Traceback (most recent call last):
        AssertionError: not equal: largest difference 0.01, tolerance 0.001
          at index (1,): 0.25999999 against 0.25; 1 of 2 elements differ by more than the tolerance
          shape (2,), torch.float32
    """
    comparison = compare(actual, expected, atol, rtol)
    if comparison.failure is not None:
        raise AssertionError(comparison.failure)
    return evidence_of(comparison)


def different(actual: Comparable, expected: Comparable, at_least: float) -> Evidence:
    """Checks that two values of one shape and dtype differ by a stated amount somewhere.

    Args:
        actual: Tensor, array, number or nested list, as for `equivalent`.
        expected: The same.
        at_least: The difference that the largest one must reach. Above 0.

    Returns:
        Evidence with the largest difference.

    Raises:
        AssertionError: If the largest difference is smaller, a shape or a dtype differs, or there
            is a NaN.
        ValueError: If `at_least` is not a finite number above 0.

    Examples:
        >>> different(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.75]), at_least=0.5)
        different: largest difference 0.75, at least 0.5
    """
    if not 0 < at_least < math.inf:
        raise ValueError(f"at_least must be a finite number above 0, got {at_least}")
    comparison = compare(actual, expected, atol=at_least, rtol=0.0)
    if comparison.failure is not None and not comparison.excess > 0:
        raise AssertionError(comparison.failure)
    if comparison.elements == 0:
        raise AssertionError(f"no elements to tell apart, shape {comparison.shape}")
    measured = f"largest difference {two_digits(comparison.largest)}, at least {at_least:.3g}"
    if comparison.largest < at_least:
        raise AssertionError(f"not different: {measured} asked for")
    return Evidence("different", comparison.largest, at_least, f"different: {measured}")


def raises(
    error_type: type[Exception] | tuple[type[Exception], ...],
    function: Callable[..., object],
    *args: Any,
    match: str | None = None,
    **kwargs: Any,
) -> Evidence:
    """Checks that a call is refused.

    Args:
        error_type: The error that must be raised, or several of which one must be.
        function: What to call.
        *args: Its arguments.
        match: Regular expression that the message must contain.
        **kwargs: Its keyword arguments.

    Returns:
        Evidence that shows the error's name and the first line of its message.

    Raises:
        AssertionError: If nothing is raised, or another error, or with another message.

    Examples:
        >>> raises(ValueError, int, "seven")
        ValueError: invalid literal for int() with base 10: 'seven'
    """
    wanted = error_type if isinstance(error_type, tuple) else (error_type,)
    names = " or ".join(error.__name__ for error in wanted)
    try:
        result = function(*args, **kwargs)
    except wanted as error:
        text = error_line(error)
        if match is not None and re.search(match, str(error)) is None:
            raise AssertionError(f"the message does not match {match!r}: {text}") from error
        return Evidence("raises", None, None, text)
    except Exception as error:
        raise AssertionError(f"{names} expected, got {error_line(error)}") from error
    raise AssertionError(f"{names} expected, got a result: {_shown(result)}")


def holds(condition: object, statement: str) -> Evidence:
    """Checks a law that is either obeyed or not, where no difference can be measured.

    Args:
        condition: What must be true. A tensor must have one element.
        statement: The law in a few words, for the page and for the error.

    Returns:
        Evidence that shows the statement.

    Raises:
        AssertionError: If the condition is false.

    Examples:
        >>> holds(torch.ones(3).sum() == 3, "three ones sum to 3")
        holds: three ones sum to 3
    """
    if not condition:
        raise AssertionError(f"does not hold: {statement}")
    return Evidence("holds", None, None, f"holds: {statement}")


def evidence_of(comparison: Comparison) -> Evidence:
    """The evidence in a comparison that has no failure."""
    if comparison.elements == 0:
        return Evidence("equal", None, None, f"equal: no elements, shape {comparison.shape}")
    measured = f"largest difference {two_digits(comparison.largest)}"
    text = f"equal: {measured}, {comparison.tolerance_text}"
    return Evidence("equal", comparison.largest, comparison.allowed, text)


def error_line(error: BaseException) -> str:
    """An error's name and the first line of its message."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _shown(result: object) -> str:
    if isinstance(result, torch.Tensor):
        return f"a tensor of shape {tuple(result.shape)}, {result.dtype}"
    return repr(result)


def _finite(number: float | None) -> float | None:
    # JSON has no infinity.
    return number if number is not None and math.isfinite(number) else None
