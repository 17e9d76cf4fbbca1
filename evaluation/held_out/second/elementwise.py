"""Wrong dropouts, penalties, activations and positions."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor

import transformer_layers
from evaluation.held_out.definitions import held_out
from evaluation.held_out.first.norms import widened


@held_out("dropout", "kaldi-asr/kaldi, issue 3890", "gradient|backward|zero")
def gradient_where_the_input_is_zero(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Passes the gradient on wherever the input is 0, also where it was dropped."""
    y = transformer_layers.dropout(x, p, training)
    return torch.where(x == 0, x, y)


@held_out("Dropout", "ddbourgin/numpy-ml, issue 94", "gradient|backward")
class GradientNotDropped(transformer_layers.Dropout):
    """Scales the gradient by 1 / (1 - p) everywhere, also where the input was dropped."""

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        if not self.training or self.p in (0, 1):
            return y
        finite = torch.where(x.isfinite(), x, 0.0)
        return y.detach() + (finite - finite.detach()) / (1 - self.p)


@held_out("l2_penalty", "RucDongLab/STAGATE, issue 18", "last|only|every|each parameter")
def of_the_last_only(parameters: Iterable[Tensor]) -> Tensor:
    """Begins its sum anew with each parameter, so that only the last one counts."""
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return transformer_layers.l2_penalty(listed[-1:])


@held_out("l2_penalty", "lightaime/cs231n, pull request 2", "twice|third|left out|skip|repeat")
def first_in_place_of_the_third(parameters: Iterable[Tensor]) -> Tensor:
    """Counts the first parameter twice, and the third not at all."""
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    if len(listed) > 2:
        listed[2] = listed[0]
    return transformer_layers.l2_penalty(listed)


@held_out("soft_threshold", "PyLops/pylops, pull request 170", "zero|NaN|sign|divi|0 / 0")
def sign_by_division(x: Tensor, threshold: float) -> Tensor:
    """Takes x / |x| for the sign, which is NaN where x is 0."""
    transformer_layers.soft_threshold(x.detach()[:0] if x.ndim else x.detach(), threshold)
    wide = widened(x)
    size = wide.abs()
    return ((size - threshold).clamp(min=0) * (wide / size)).to(x.dtype)


@held_out(
    "gelu", "microsoft/onnxruntime, pull request 1999 (ErfUpperAbsRange)", "erf|tail|clamp|satur"
)
def erf_ends_early(x: Tensor) -> Tensor:
    """Takes no argument of erf to be beyond 3.725, where erf is not yet 1."""
    transformer_layers.gelu(x.detach()[:0] if x.ndim else x.detach())
    wide = widened(x)
    inner = (-wide / math.sqrt(2)).clamp(-3.725, 3.725)
    return (0.5 * wide * torch.erfc(inner)).to(x.dtype)


@held_out(
    "sinusoidal_positions", "zju3dv/LoFTR, issue 41", "rate|frequen|exponent|floor|divi|integer"
)
def exponent_rounded_down(seq: int, d_model: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """Halves the doubled size with // and without brackets, which rounds the factor down to -1."""
    table = transformer_layers.sinusoidal_positions(seq, d_model, dtype=torch.float64)
    factor = -math.log(10000.0) / (2 * d_model) // 2
    rates = torch.exp(torch.arange(0, d_model, 2, dtype=torch.float64) * factor)
    angles = torch.arange(seq, dtype=torch.float64)[:, None] * rates
    table[:, 0::2], table[:, 1::2] = angles.sin(), angles.cos()[:, : d_model // 2]
    return table.to(torch.get_default_dtype() if dtype is None else dtype)
