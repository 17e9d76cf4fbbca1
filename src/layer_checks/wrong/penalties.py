"""Known wrong versions of `l1_penalty`, `l2_penalty` and `soft_threshold`."""

from collections.abc import Iterable

import torch
from torch import Tensor

from layer_checks.definitions import WrongVersion


def _flat(parameters: Iterable[Tensor]) -> Tensor:
    return torch.cat([parameter.flatten() for parameter in parameters])


def mean_of_absolute_values(parameters: Iterable[Tensor]) -> Tensor:
    """Divides by the number of weights."""
    return _flat(parameters).abs().mean()


def sum_with_signs(parameters: Iterable[Tensor]) -> Tensor:
    """Lets positive and negative weights cancel."""
    return _flat(parameters).sum()


def first_tensor_only(parameters: Iterable[Tensor]) -> Tensor:
    """Forgets all tensors but the first."""
    return next(iter(parameters)).abs().sum()


def sum_of_squares(parameters: Iterable[Tensor]) -> Tensor:
    """Squares in place of absolute values, or without the half."""
    return _flat(parameters).square().sum()


def root_of_squares(parameters: Iterable[Tensor]) -> Tensor:
    """Is the length of the vector of all weights."""
    return _flat(parameters).norm()


def absolute_detached(parameters: Iterable[Tensor]) -> Tensor:
    """Has the value and no gradient."""
    weights = _flat(parameters)
    return weights.detach().abs().sum() + 0 * weights.sum()


def list_only(parameters: Iterable[Tensor]) -> Tensor:
    """Reads its argument twice, which a generator does not allow."""
    largest = max(parameter.abs().max() for parameter in parameters)
    return sum((parameter.abs() / largest).sum() for parameter in parameters) * largest


def no_half(parameters: Iterable[Tensor]) -> Tensor:
    """Is twice as large."""
    return sum_of_squares(parameters)


def half_of_mean(parameters: Iterable[Tensor]) -> Tensor:
    """Divides by the number of weights."""
    return 0.5 * _flat(parameters).square().mean()


def sum_of_lengths(parameters: Iterable[Tensor]) -> Tensor:
    """Adds the lengths of the tensors."""
    return torch.stack([parameter.norm() for parameter in parameters]).sum()


def half_of_first(parameters: Iterable[Tensor]) -> Tensor:
    """Forgets all tensors but the first."""
    return 0.5 * next(iter(parameters)).square().sum()


def squares_detached(parameters: Iterable[Tensor]) -> Tensor:
    """Has the value and no gradient."""
    weights = _flat(parameters)
    return 0.5 * weights.detach().square().sum() + 0 * weights.sum()


def squares_of_list_only(parameters: Iterable[Tensor]) -> Tensor:
    """Reads its argument twice, which a generator does not allow."""
    largest = max(parameter.abs().max() for parameter in parameters)
    return 0.5 * sum((parameter / largest).square().sum() for parameter in parameters) * largest**2


def half_of_absolute_values(parameters: Iterable[Tensor]) -> Tensor:
    """Is half the sum of absolute values."""
    return 0.5 * _flat(parameters).abs().sum()


def hard_threshold(x: Tensor, threshold: float) -> Tensor:
    """Keeps large values as they are."""
    return torch.where(x.abs() > threshold, x, 0.0)


def one_sided(x: Tensor, threshold: float) -> Tensor:
    """Sets all negative values to zero."""
    return (x - threshold).clamp(min=0)


def clipped(x: Tensor, threshold: float) -> Tensor:
    """Returns what is to be taken off."""
    return x.clamp(-threshold, threshold)


def past_zero(x: Tensor, threshold: float) -> Tensor:
    """Moves small values through zero to the other side."""
    return x - threshold * x.sign()


def sign_lost(x: Tensor, threshold: float) -> Tensor:
    """Makes all values positive."""
    return (x.abs() - threshold).clamp(min=0)


def shrunk_in_proportion(x: Tensor, threshold: float) -> Tensor:
    """Is the proximal step of the L2 penalty."""
    return x / (1 + threshold)


def gradient_inside(x: Tensor, threshold: float) -> Tensor:
    """Has the value, and the gradient of the input itself everywhere."""
    return x - x.detach().clamp(-threshold, threshold)


WRONG_L1_PENALTIES = (
    WrongVersion(
        "mean for sum", "add the absolute values up: do not average.", mean_of_absolute_values
    ),
    WrongVersion("signs kept", "take absolute values before adding.", sum_with_signs),
    WrongVersion("first tensor only", "add up over all parameters.", first_tensor_only),
    WrongVersion("squares", "take absolute values, not squares.", sum_of_squares),
    WrongVersion("length", "take no root of squares: that is the L2 norm.", root_of_squares),
    WrongVersion(
        "half of it", "take no half: that belongs to the L2 penalty.", half_of_absolute_values
    ),
    WrongVersion(
        "gradient cut",
        "keep the graph: no detach, .data or .item().",
        absolute_detached,
    ),
    WrongVersion(
        "reads twice",
        "go through the parameters once: layer.parameters() is a generator.",
        list_only,
    ),
)

WRONG_L2_PENALTIES = (
    WrongVersion(
        "half missing",
        "take half of the sum of squares, so that the gradient is w: weight_decay adds that.",
        no_half,
    ),
    WrongVersion("mean for sum", "add the squares up: do not average.", half_of_mean),
    WrongVersion("length", "take no root: the penalty is of the squares.", root_of_squares),
    WrongVersion(
        "sum of lengths",
        "take no root of each tensor's squares.",
        sum_of_lengths,
    ),
    WrongVersion("first tensor only", "add up over all parameters.", half_of_first),
    WrongVersion("absolute values", "square the weights.", half_of_absolute_values),
    WrongVersion(
        "gradient cut",
        "keep the graph: no detach, .data or .item().",
        squares_detached,
    ),
    WrongVersion(
        "reads twice",
        "go through the parameters once: layer.parameters() is a generator.",
        squares_of_list_only,
    ),
)

WRONG_SOFT_THRESHOLDS = (
    WrongVersion(
        "hard threshold",
        "move what remains towards zero by the threshold too.",
        hard_threshold,
    ),
    WrongVersion("one-sided", "treat negative values like positive ones.", one_sided),
    WrongVersion(
        "clipped",
        "return what is left of x after the clipped part is taken off.",
        clipped,
    ),
    WrongVersion("past zero", "stop at zero: values within the threshold become 0.", past_zero),
    WrongVersion("sign lost", "give the result the sign of x.", sign_lost),
    WrongVersion(
        "shrunk in proportion",
        "subtract the threshold; x/(1 + threshold) is the proximal step of the L2 penalty.",
        shrunk_in_proportion,
    ),
    WrongVersion(
        "gradient inside",
        "let the gradient be 0 where the result is 0.",
        gradient_inside,
    ),
)
