"""What the tests of the layers have in common: weights, differences, gradients, rounding errors."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn

AnyModule = TypeVar("AnyModule", bound=nn.Module)

# Relative to the largest element of the result. Every sum here has fewer than 1000 terms, so that
# rounding (1.1e-16 an operation) stays below 1e-13; a wrong formula is off by far more.
FLOAT64_TOLERANCE = 1e-12


def unit_roundoff(dtype: torch.dtype) -> float:
    """The largest relative error of one rounding to `dtype`."""
    return torch.finfo(dtype).eps / 2


def relative_error(actual: Tensor, expected: Tensor, floor: float = 1e-300) -> float:
    """The largest difference, relative to the largest element of `expected`, or to `floor`."""
    assert actual.shape == expected.shape
    if expected.numel() == 0:
        return 0.0
    actual, expected = actual.detach().double(), expected.detach().double()
    difference = (actual - expected).abs().max()
    return (difference / expected.abs().max().clamp(min=floor)).item()


def assert_rounded_once(actual: Tensor, exact: Tensor) -> None:
    """Each element is the float64 result, computed in float32 and rounded to the dtype of `actual`.

    A second rounding in that dtype shows at the elements where the first one was large.
    """
    dtype = actual.dtype
    # Of elements so small that the dtype has fewer digits for them, the last place is fixed.
    last_place = torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps
    in_float32 = 1e-5 * exact.abs().max()
    error = (actual.double() - exact).abs()
    allowed = 1.001 * unit_roundoff(dtype) * exact.abs() + last_place + in_float32
    assert bool((error <= allowed).all()), f"error over what one rounding allows: {error / allowed}"


def with_random_weights(module: AnyModule, std: float = 0.2) -> AnyModule:
    """Draws every parameter anew: with the initial ones and zeros a swapped pair would not show."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=std)
    return module


def values_and_gradients(
    function: Callable[..., Tensor],
    inputs: Sequence[Tensor],
    parameters: Sequence[Tensor],
    cotangent: Tensor | None = None,
) -> list[Tensor]:
    """The result, then the gradients of all floating inputs and parameters under one cotangent.

    The cotangent is the same for two functions whose results have the same shape.
    """
    inputs = [x.detach().clone().requires_grad_(x.is_floating_point()) for x in inputs]
    result = function(*inputs)
    if cotangent is None:
        generator = torch.Generator().manual_seed(1)
        cotangent = torch.randn(result.shape, generator=generator, dtype=torch.float64)
    leaves = [x for x in inputs if x.requires_grad] + list(parameters)
    return [result, *torch.autograd.grad(result, leaves, cotangent.to(result.dtype))]


def assert_same(
    actual: Sequence[Tensor], expected: Sequence[Tensor], tolerance: float = FLOAT64_TOLERANCE
) -> None:
    """Each tensor equals its counterpart, relative to the counterpart's largest element.

    Tensors below a thousandth of the largest count as that large: some gradients are 0 but for
    rounding, such as that of the bias of attention's keys.
    """
    assert len(actual) == len(expected)
    sizes = [e.detach().abs().max().item() for e in expected if e.numel()]
    floor = max(1e-3 * max(sizes, default=0.0), 1e-300)
    errors = [relative_error(a, e, floor) for a, e in zip(actual, expected, strict=True)]
    within = all(error <= tolerance for error in errors)  # a NaN is not
    assert within, f"relative errors {errors} exceed {tolerance}"
