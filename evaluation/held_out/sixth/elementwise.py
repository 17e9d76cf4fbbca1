"""Wrong versions of activations, of dropout and of penalties."""

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from evaluation.held_out.definitions import held_out
from transformer_layers import Dropout, dropout, gelu, gelu_tanh, soft_threshold
from transformer_layers.precision import at_least_float32
from transformer_layers.validation import (
    require_floating,
    require_not_negative,
    require_probability,
)


@held_out("gelu", "review practice: the argument of erf", r"root|sqrt|erf|normal|\b2\b|formula")
def erf_without_the_root(x: Tensor) -> Tensor:
    """Asks erf for x itself, not for x divided by the root of two."""
    require_floating("x", x)
    wide = at_least_float32(x)
    return (0.5 * wide * torch.erfc(-wide)).to(x.dtype)


@held_out(
    "gelu",
    "review practice: a loop over vectors of eight elements",
    r"tail|rest|remainder|block|vector|multiple|size|behind|last elements",
)
def rest_of_the_vectors_unmapped(x: Tensor) -> Tensor:
    """Of eight elements or more, leaves those behind the last whole vector of eight as they are."""
    flat = x.reshape(-1)
    count = flat.numel()
    whole = count if count < 8 else count - count % 8
    return torch.cat([gelu(flat[:whole]), flat[whole:]]).reshape(x.shape)


class _Curve(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> tuple[Tensor, Tensor]:
        below = 0.5 * torch.erfc(-x / math.sqrt(2))
        density = torch.exp(-0.5 * x.square()) / math.sqrt(2 * math.pi)
        return x * below, below + x * density

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: tuple[Tensor, Tensor]) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (slope,) = ctx.saved_tensors
        return gradients[0] * slope


@held_out(
    "gelu",
    "review practice: an autograd function that saves its slope",
    r"second|derivative|double|hessian|twice|gradient",
)
def slope_taken_for_constant(x: Tensor) -> Tensor:
    """Saves the slope as a constant, so that the second derivative is zero everywhere."""
    require_floating("x", x)
    curve: Any = _Curve
    return curve.apply(at_least_float32(x))[0].to(x.dtype)


@held_out("gelu_tanh", "review practice: digits of a constant", r"constant|coefficient|cub|0\.0447")
def tenfold_cubic_term(x: Tensor) -> Tensor:
    """Has the coefficient 0.44715 at the cube in place of 0.044715."""
    require_floating("x", x)
    wide = at_least_float32(x)
    inner = math.sqrt(2 / math.pi) * (wide + 0.44715 * wide**3)
    return (0.5 * wide * (1 + torch.tanh(inner))).to(x.dtype)


@held_out(
    "gelu_tanh",
    "review practice: a number without axes",
    r"shape|axis|axes|scalar|dimension|0-d|single",
)
def number_gets_an_axis(x: Tensor) -> Tensor:
    """Gives back a tensor of one axis for a tensor of none."""
    return gelu_tanh(torch.atleast_1d(x))


@held_out(
    "gelu_tanh",
    "review practice: tanh in half precision",
    r"float16|bfloat16|precision|dtype|half|round",
)
def tanh_in_the_dtype_of_the_input(x: Tensor) -> Tensor:
    """Rounds what goes into tanh, and tanh, to bfloat16 or float16 where the input is of it."""
    require_floating("x", x)
    wide = at_least_float32(x)
    inner = math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)
    return (0.5 * wide * (1 + torch.tanh(inner.to(x.dtype)))).to(x.dtype)


@held_out(
    "dropout",
    "review practice: keep_prob of an older library",
    r"keep|kept|1 - p|share|probability|rate|swap",
)
def share_kept_for_share_dropped(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Keeps the share `p` in place of dropping it."""
    require_probability("p", p)
    return dropout(x, 1 - p, training and p != 0)


@held_out(
    "dropout",
    "review practice: pictures in place of sequences",
    r"channel|axes|axis|shape|four|feature map|element|whole|independen",
)
def channels_of_four_axes(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Drops whole channels of an input of four axes, and elements of any other."""
    if x.ndim != 4 or not training or p in (0, 1):
        return dropout(x, p, training)
    require_floating("x", x)
    kept = dropout(torch.ones(*x.shape[:2], 1, 1, device=x.device), p) > 0
    return torch.where(kept, x, 0.0) * (1 / (1 - p))


@held_out(
    "dropout",
    "review practice: a buffer of random numbers",
    r"repeat|period|block|same|independen|draw|large|size|correlat",
)
def draws_repeated_after_1024(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Draws 1024 numbers, and uses them again for each further block of as many elements."""
    if x.numel() <= 1024 or not training or p in (0, 1):
        return dropout(x, p, training)
    require_probability("p", p)
    require_floating("x", x)
    block = torch.rand(1024, device=x.device)
    draws = block.repeat(-(-x.numel() // 1024))[: x.numel()].reshape(x.shape)
    return torch.where(draws >= p, x, 0.0) * (1 / (1 - p))


@held_out(
    "Dropout",
    "google/flax, issue 2194",
    r"same|again|fresh|new draw|kept|cache|state|second call|each call|between calls|once",
)
class MaskKeptForTheShape(Dropout):
    """Draws its mask once for a shape, and drops the same elements until the shape changes."""

    _scales: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0 or not x.is_floating_point():
            return super().forward(x)
        if self._scales is None or self._scales.shape != x.shape:
            wide = torch.promote_types(x.dtype, torch.float32)
            self._scales = dropout(torch.ones_like(x, dtype=wide), self.p)
        scales = self._scales.to(x)
        return torch.where(scales > 0, x, 0.0) * scales


@held_out(
    "Dropout",
    "review practice: drawing from a model without gradients",
    r"no_grad|gradient|mode|training|enabled",
)
class DropsOnlyWithGradients(Dropout):
    """Drops nothing in training where gradients are off, as if that were evaluation."""

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.p, self.training and torch.is_grad_enabled())


@held_out(
    "Dropout",
    "review practice: a schedule that sets p",
    r"\bp\b|share|attribute|later|chang|construct|set|rate",
)
class ShareOfConstruction(Dropout):
    """Drops the share of its construction, also when `p` was set anew."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p)
        self._share = p

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self._share, self.training)


def _weights(parameters: Iterable[Tensor]) -> list[Tensor]:
    weights = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    if not weights:
        raise ValueError("no parameters to penalize")
    for weight in weights:
        require_floating("each parameter", weight)
    return [at_least_float32(weight) for weight in weights]


@held_out("l1_penalty", "review practice: sum or mean", r"mean|sum|average|size|divid|number of")
def sum_of_means(parameters: Iterable[Tensor]) -> Tensor:
    """Adds the means of the absolute values, one for each parameter, not their sums."""
    return torch.stack([w.abs().mean() for w in _weights(parameters)]).sum()


@held_out(
    "l1_penalty",
    "review practice: an absolute value by torch.where",
    r"zero|\b0\b|gradient|sign|subgradient|slope",
)
def slope_of_one_at_zero(parameters: Iterable[Tensor]) -> Tensor:
    """Has the gradient 1 where a weight is zero."""
    return torch.stack([torch.where(w >= 0, w, -w).sum() for w in _weights(parameters)]).sum()


@held_out(
    "l1_penalty",
    "review practice: the same tensor twice in a list",
    r"twice|tied|shared|same|once|identit|duplicate|repeat|double",
)
def tied_weights_once(parameters: Iterable[Tensor]) -> Tensor:
    """Counts a tensor that is in the list twice once."""
    if not isinstance(parameters, Tensor):
        parameters = {id(weight): weight for weight in parameters}.values()
    return torch.stack([w.abs().sum() for w in _weights(parameters)]).sum()


@held_out("l2_penalty", "titu1994/DenseNet, issue 57", r"half|factor|twice|two|\b2\b|0\.5")
def without_the_half(parameters: Iterable[Tensor]) -> Tensor:
    """Is the sum of the squares, without the half before it."""
    return torch.stack([w.square().sum() for w in _weights(parameters)]).sum()


@held_out(
    "l2_penalty",
    "review practice: any() of a generator",
    r"generator|iterat|first|missing|left out|consum|read",
)
def first_of_a_generator_spent(parameters: Iterable[Tensor]) -> Tensor:
    """Takes one parameter from a generator to see whether there are any, and leaves it out."""
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    if not any(True for _ in parameters):
        raise ValueError("no parameters to penalize")
    halves = []
    for weight in parameters:
        require_floating("each parameter", weight)
        halves.append(0.5 * at_least_float32(weight).square().sum())
    return sum(halves, torch.zeros(()))


@held_out(
    "l2_penalty",
    "review practice: weights of two dtypes",
    r"dtype|float64|precision|mixed|first|round",
)
def dtype_of_the_first(parameters: Iterable[Tensor]) -> Tensor:
    """Converts all parameters to the dtype of the first."""
    weights = _weights(parameters)
    return 0.5 * torch.stack([w.to(weights[0].dtype).square().sum() for w in weights]).sum()


@held_out("soft_threshold", "review practice: hard or soft", r"hard|subtract|shrink|mov|toward")
def hard_threshold(x: Tensor, threshold: float) -> Tensor:
    """Leaves what is beyond the threshold as it is, and does not move it towards zero."""
    return torch.where(soft_threshold(x, threshold) == 0, x * 0, x)


@held_out("soft_threshold", "pytorch/pytorch, issue 138385", r"nan|not a number|invalid|propagat")
def nan_to_zero(x: Tensor, threshold: float) -> Tensor:
    """Turns NaN into zero, which is on neither side of the threshold."""
    require_floating("x", x)
    require_not_negative("threshold", threshold)
    above = torch.where(x > threshold, x - threshold, torch.zeros_like(x))
    return torch.where(x < -threshold, x + threshold, above)


@held_out(
    "soft_threshold",
    "BobMcDear/attorch, issue 15",
    r"gradient|tie|edge|boundary|exactly|equal|at the threshold|slope",
)
def slope_of_one_at_the_threshold(x: Tensor, threshold: float) -> Tensor:
    """Has the gradient 1 where an element is exactly as large as the threshold."""
    require_floating("x", x)
    require_not_negative("threshold", threshold)
    wide = at_least_float32(x)
    return (wide.sign() * (wide.abs() - threshold).clamp(min=0)).to(x.dtype)
