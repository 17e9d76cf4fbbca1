"""Known wrong versions of `l1_penalty`, `l2_penalty` and `soft_threshold`."""

from collections.abc import Iterable

import torch
from torch import Tensor

from layer_checks.checks.penalties import l1_penalty, l2_penalty, soft_threshold
from transformer_layers.precision import at_least_float32


def _flat(parameters: Iterable[Tensor]) -> Tensor:
    return torch.cat([at_least_float32(parameter).flatten() for parameter in parameters])


def _largest(parameters: Iterable[Tensor]) -> Tensor:
    return torch.stack([_flat([each]).abs().max() for each in parameters]).max()


@l1_penalty.wrong("add the absolute values up: do not average.", name="mean for sum")
def mean_of_absolute_values(parameters: Iterable[Tensor]) -> Tensor:
    """Divides by the number of weights."""
    return _flat(parameters).abs().mean()


@l1_penalty.wrong("take absolute values before adding.")
def signs_kept(parameters: Iterable[Tensor]) -> Tensor:
    """Lets positive and negative weights cancel."""
    return _flat(parameters).sum()


@l1_penalty.wrong("add up over all parameters.")
def first_tensor_only(parameters: Iterable[Tensor]) -> Tensor:
    """Forgets all tensors but the first."""
    return at_least_float32(next(iter(parameters))).abs().sum()


@l1_penalty.wrong("take absolute values, not squares.")
def squares(parameters: Iterable[Tensor]) -> Tensor:
    """Squares in place of absolute values, or without the half."""
    return _flat(parameters).square().sum()


@l1_penalty.wrong("take no root of squares: that is the L2 norm.")
def length(parameters: Iterable[Tensor]) -> Tensor:
    """Is the length of the vector of all weights."""
    return _flat(parameters).norm()


@l1_penalty.wrong("take no half: that belongs to the L2 penalty.", name="half of it")
def half_of_absolute_values(parameters: Iterable[Tensor]) -> Tensor:
    """Is half the sum of absolute values."""
    return 0.5 * _flat(parameters).abs().sum()


@l1_penalty.wrong("keep the graph: no detach, .data or .item().", name="gradient cut")
def absolute_detached(parameters: Iterable[Tensor]) -> Tensor:
    """Has the value and no gradient."""
    weights = _flat(parameters)
    return weights.detach().abs().sum() + 0 * weights.sum()


@l1_penalty.wrong(
    "go through the parameters once: layer.parameters() is a generator.", name="reads twice"
)
def list_only(parameters: Iterable[Tensor]) -> Tensor:
    """Reads its argument twice, which a generator does not allow."""
    largest = _largest(parameters)
    return sum((_flat([each]) / largest).abs().sum() for each in parameters) * largest


@l1_penalty.wrong("convert bfloat16 to float32 before adding up: a sum of 300 is off by up to 1.")
def sum_in_bfloat16(parameters: Iterable[Tensor]) -> Tensor:
    """Has the dtype of the parameters."""
    return torch.cat([parameter.flatten() for parameter in parameters]).abs().sum()


@l1_penalty.wrong("take absolute values: at 0 the root of a square has no gradient.")
def root_of_the_square(parameters: Iterable[Tensor]) -> Tensor:
    """Takes the root of the square of each weight, whose gradient at 0 is 0/0."""
    return _flat(parameters).square().sqrt().sum()


@l2_penalty.wrong(
    "take half of the sum of squares, so that the gradient is w: weight_decay adds that."
)
def half_missing(parameters: Iterable[Tensor]) -> Tensor:
    """Is twice as large."""
    return squares(parameters)


@l2_penalty.wrong("add the squares up: do not average.")
def mean_for_sum(parameters: Iterable[Tensor]) -> Tensor:
    """Divides by the number of weights."""
    return 0.5 * _flat(parameters).square().mean()


l2_penalty.wrong("take no root: the penalty is of the squares.")(length)


@l2_penalty.wrong("take no root of each tensor's squares.")
def sum_of_lengths(parameters: Iterable[Tensor]) -> Tensor:
    """Adds the lengths of the tensors."""
    return torch.stack([at_least_float32(parameter).norm() for parameter in parameters]).sum()


@l2_penalty.wrong("add up over all parameters.", name="first tensor only")
def half_of_first(parameters: Iterable[Tensor]) -> Tensor:
    """Forgets all tensors but the first."""
    return 0.5 * at_least_float32(next(iter(parameters))).square().sum()


@l2_penalty.wrong("add the squares up, without a root between: at 0 a root has no gradient.")
def square_of_the_length(parameters: Iterable[Tensor]) -> Tensor:
    """Squares the root of the sum of squares, which has no gradient where all weights are 0."""
    return 0.5 * _flat(parameters).square().sum().sqrt().square()


l2_penalty.wrong("square the weights.", name="absolute values")(half_of_absolute_values)


@l2_penalty.wrong("keep the graph: no detach, .data or .item().")
def gradient_cut(parameters: Iterable[Tensor]) -> Tensor:
    """Has the value and no gradient."""
    weights = _flat(parameters)
    return 0.5 * weights.detach().square().sum() + 0 * weights.sum()


@l2_penalty.wrong("go through the parameters once: layer.parameters() is a generator.")
def reads_twice(parameters: Iterable[Tensor]) -> Tensor:
    """Reads its argument twice, which a generator does not allow."""
    largest = _largest(parameters)
    return 0.5 * sum((_flat([each]) / largest).square().sum() for each in parameters) * largest**2


@l2_penalty.wrong(
    "convert bfloat16 to float32 before adding up: a sum of 300 is off by up to 1.",
    name="sum in bfloat16",
)
def squares_in_bfloat16(parameters: Iterable[Tensor]) -> Tensor:
    """Has the dtype of the parameters."""
    return 0.5 * torch.cat([parameter.flatten() for parameter in parameters]).square().sum()


@soft_threshold.wrong("move what remains towards zero by the threshold too.")
def hard_threshold(x: Tensor, threshold: float) -> Tensor:
    """Keeps large values as they are."""
    return torch.where(x.abs() > threshold, x, 0.0)


@soft_threshold.wrong("treat negative values like positive ones.", name="one-sided")
def one_sided(x: Tensor, threshold: float) -> Tensor:
    """Sets all negative values to zero."""
    return (x - threshold).clamp(min=0)


@soft_threshold.wrong("return what is left of x after the clipped part is taken off.")
def clipped(x: Tensor, threshold: float) -> Tensor:
    """Returns what is to be taken off."""
    return x.clamp(-threshold, threshold)


@soft_threshold.wrong("stop at zero: values within the threshold become 0.")
def past_zero(x: Tensor, threshold: float) -> Tensor:
    """Moves small values through zero to the other side."""
    return x - threshold * x.sign()


@soft_threshold.wrong("give the result the sign of x.")
def sign_lost(x: Tensor, threshold: float) -> Tensor:
    """Makes all values positive."""
    return (x.abs() - threshold).clamp(min=0)


@soft_threshold.wrong(
    "subtract the threshold; x/(1 + threshold) is the proximal step of the L2 penalty."
)
def shrunk_in_proportion(x: Tensor, threshold: float) -> Tensor:
    """Is the proximal step of the L2 penalty."""
    return x / (1 + threshold)


@soft_threshold.wrong("let the gradient be 0 where the result is 0.")
def gradient_inside(x: Tensor, threshold: float) -> Tensor:
    """Has the value, and the gradient of the input itself everywhere."""
    return x - x.detach().clamp(-threshold, threshold)


@soft_threshold.wrong(
    "do not divide by the absolute value, as the step for the length of a group does: x may be 0."
)
def divided_by_the_absolute_value(x: Tensor, threshold: float) -> Tensor:
    """Multiplies by what is left of each value's size."""
    wide = at_least_float32(x)
    return (wide * (1 - threshold / wide.abs()).clamp(min=0)).to(x.dtype)


@soft_threshold.wrong("take any threshold from 0 on: at 0 nothing moves.")
def no_threshold_of_zero(x: Tensor, threshold: float) -> Tensor:
    """Takes a threshold of 0 for one that is left out."""
    limit = threshold or 0.5
    return x - x.clamp(-limit, limit)


@soft_threshold.wrong("return a new tensor, also where it holds what the input does.")
def input_handed_back(x: Tensor, threshold: float) -> Tensor:
    """Returns its input where the threshold is 0."""
    return x if threshold == 0 else x - x.clamp(-threshold, threshold)
