"""Two values, element by element: the arithmetic under the evidence, and the text of a failure."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, SupportsFloat, TypeAlias

import torch
from torch import Tensor

# numpy's arrays support `float`, so that their type need not be imported.
Comparable: TypeAlias = Tensor | SupportsFloat | complex | Sequence[Any]

# Rounding of values whose size is about 1: some ten rounding errors in float32 and two in the half
# precisions, where one operation already uses up most of the digits. In float64 the true errors of
# a layer are below 1e-13 and a wrong formula's are far above 1e-12.
DEFAULT_ATOL = {
    torch.float64: 1e-12,
    torch.complex128: 1e-12,
    torch.float32: 1e-6,
    torch.complex64: 1e-6,
    torch.float16: 2e-3,
    torch.bfloat16: 1.6e-2,
}

# Digits that tell any two values of a dtype apart.
_DIGITS = {torch.float64: 17, torch.float32: 9, torch.float16: 5, torch.bfloat16: 4}


# Some twenty roundings, in units of the largest value that is expected.
_SINGLE = 2e-6
_in_single: ContextVar[bool] = ContextVar("in_single", default=False)


@dataclass(frozen=True)
class Comparison:
    """What two values have in common.

    Attributes:
        shape: The shape of both, or of the first where they differ.
        elements: How many elements were compared.
        largest: The largest difference.
        allowed: The tolerance at the element with the largest difference.
        excess: By how much the tolerance is exceeded at worst; NaN where nothing was compared.
        tolerance_text: The tolerance as it is shown.
        failure: What differs by more than the tolerance, None if nothing does.
    """

    shape: tuple[int, ...]
    elements: int = 0
    largest: float = 0.0
    allowed: float = 0.0
    excess: float = math.nan
    tolerance_text: str = ""
    failure: str | None = None


def compare(
    actual: Comparable, expected: Comparable, atol: float | None, rtol: float | None
) -> Comparison:
    """Compares without raising for what differs; see `evidence.equivalent`."""
    left, right = _aligned(actual, expected)
    shape = tuple(left.shape)
    if left.shape != right.shape:
        return Comparison(shape, failure=_kind_failure("shape", shape, tuple(right.shape)))
    if left.dtype != right.dtype:
        return Comparison(shape, failure=_kind_failure("dtype", left.dtype, right.dtype))
    atol, rtol = _tolerances(left.dtype, atol, rtol)
    if left.numel() == 0:
        return Comparison(shape, allowed=atol)
    if (left.isnan() | right.isnan()).any():
        return Comparison(shape, left.numel(), failure=_nan_failure(left, right))
    difference = _difference(left, right)
    # 0 * inf is NaN: without a relative part, an infinite value is allowed no more than others.
    relative = rtol * _widened(right).abs().double() if rtol else torch.zeros_like(difference)
    text = _tolerance_text(atol, rtol)
    if _in_single.get() and left.dtype == torch.float64 and 0 < max(atol, rtol) < _SINGLE / 10:
        largest = right.nan_to_num(posinf=0.0, neginf=0.0).abs().max()
        atol, rtol = _SINGLE * max(1.0, float(largest)), 0.0
        text = f"tolerance {_SINGLE:g} of the largest"
    allowed = atol + relative
    excess = torch.where(allowed.isinf() & difference.isinf(), math.inf, difference - allowed)
    worst = difference.argmax()
    return Comparison(
        shape,
        left.numel(),
        largest=float(difference.flatten()[worst]),
        allowed=float(allowed.flatten()[worst]),
        excess=float(excess.max()),
        tolerance_text=text,
        failure=_failure(left, right, difference, excess, text) if excess.max() > 0 else None,
    )


@contextmanager
def compared_in_single() -> Iterator[None]:
    """Allows float64 values the errors of float32, but where none at all was allowed.

    For a layer that was seen to compute in float32 whatever its input is.
    """
    token = _in_single.set(True)
    try:
        yield
    finally:
        _in_single.reset(token)


def is_compared_in_single() -> bool:
    """Whether float64 values are allowed the errors of float32."""
    return _in_single.get()


def two_digits(number: float) -> str:
    """A measured number as the pages show it: two significant digits, exactly zero as `0`."""
    return f"{number:.2g}"


def _difference(left: Tensor, right: Tensor) -> Tensor:
    wide_left, wide_right = _widened(left), _widened(right)
    difference = (wide_left - wide_right).abs().double()
    return difference.masked_fill(wide_left == wide_right, 0.0)  # inf - inf is NaN


def _failure(left: Tensor, right: Tensor, difference: Tensor, excess: Tensor, text: str) -> str:
    worst = int(excess.argmax())
    index = tuple(int(axis) for axis in torch.unravel_index(torch.tensor(worst), left.shape))
    # With a relative tolerance, the worst element need not be that of the largest difference.
    measure = "worst" if "|expected|" in text else "largest"
    return (
        f"not equal: {measure} difference {two_digits(float(difference.flatten()[worst]))}, {text}"
        f"\n  at index {index}: {_value(left, worst)} against {_value(right, worst)}; "
        f"{int((excess > 0).sum())} of {left.numel()} elements differ by more than the tolerance"
        f"\n  shape {tuple(left.shape)}, {left.dtype}"
    )


def _aligned(actual: Comparable, expected: Comparable) -> tuple[Tensor, Tensor]:
    """Both as tensors; what has no dtype of its own takes the other's where nothing is lost."""
    left, right = _as_tensor(actual), _as_tensor(expected)
    left_plain, right_plain = _is_plain(actual), _is_plain(expected)
    if left_plain and right_plain:
        dtype = torch.promote_types(left.dtype, right.dtype)
        left, right = left.to(dtype), right.to(dtype)
    elif left_plain:
        left, right = _same_dtype(left, right)
    elif right_plain:
        right, left = _same_dtype(right, left)
    if _is_number(actual):
        left = left.expand(right.shape)
    elif _is_number(expected):
        right = right.expand(left.shape)
    return left, right


def _same_dtype(plain: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    # 2.5 against integers: both become float64, since 2.5 must not be cut to 2.
    if plain.is_floating_point() and not (other.is_floating_point() or other.is_complex()):
        return plain, other.double()
    if plain.is_complex() and not other.is_complex():
        return plain, other.to(torch.complex128)
    return plain.to(other.dtype), other


def _as_tensor(value: Comparable) -> Tensor:
    if isinstance(value, Tensor):
        return value.detach().resolve_conj().cpu()
    if not _is_plain(value):
        return torch.as_tensor(value).cpu()
    if isinstance(value, list | tuple):  # torch warns of numbers with a history
        value = [each.detach() if isinstance(each, Tensor) else each for each in value]
    tensor = torch.tensor(value)
    if tensor.is_floating_point():
        return torch.tensor(value, dtype=torch.float64)
    return torch.tensor(value, dtype=torch.complex128) if tensor.is_complex() else tensor


def _is_plain(value: Comparable) -> bool:
    return not isinstance(value, Tensor) and (_is_number(value) or not hasattr(value, "__array__"))


def _is_number(value: Comparable) -> bool:
    return isinstance(value, bool | int | float | complex)


def _widened(tensor: Tensor) -> Tensor:
    """In a type that holds the values and their difference exactly, or nearly so."""
    if tensor.is_complex():
        return tensor.to(torch.complex128)
    return tensor.double() if tensor.is_floating_point() else tensor.to(torch.int64)


def _tolerances(dtype: torch.dtype, atol: float | None, rtol: float | None) -> tuple[float, float]:
    for name, tolerance in (("atol", atol), ("rtol", rtol)):
        if tolerance is not None and not 0 <= tolerance < math.inf:
            raise ValueError(f"{name} must be a finite number of at least 0, got {tolerance}")
    if atol is None:
        atol = DEFAULT_ATOL.get(dtype, 0.0) if rtol is None else 0.0
    return atol, rtol or 0.0


def _tolerance_text(atol: float, rtol: float) -> str:
    if not rtol:
        return f"tolerance {atol:.3g}"
    relative = f"{rtol:.3g} * |expected|"
    return f"tolerance {atol:.3g} + {relative}" if atol else f"tolerance {relative}"


def _kind_failure(kind: str, left: object, right: object) -> str:
    return f"not equal: {kind} {left} against {right}"


def _nan_failure(left: Tensor, right: Tensor) -> str:
    index = tuple((left.isnan() | right.isnan()).nonzero()[0].tolist())
    sides = {"actual": left, "expected": right}
    where = " and ".join(name for name, side in sides.items() if side.isnan().any())
    return (
        f"not equal: NaN in {where}"
        f"\n  at index {index}: {left[index].item()} against {right[index].item()}; "
        f"{int(left.isnan().sum())} and {int(right.isnan().sum())} of {left.numel()} are NaN"
        f"\n  shape {tuple(left.shape)}, {left.dtype}"
    )


def _value(tensor: Tensor, position: int) -> str:
    value = tensor.flatten()[position].item()
    digits = _DIGITS.get(tensor.dtype)
    return str(value) if digits is None else f"{value:.{digits}g}"
