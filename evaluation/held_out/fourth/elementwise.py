"""Wrong functions, dropout, penalties and positions."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor

import transformer_layers
from evaluation.held_out.definitions import held_out
from transformer_layers.precision import at_least_float32
from transformer_layers.validation import require_floating, require_probability, require_size


@held_out("dropout", "openai/guided-diffusion, issue 167", "gradient|backward")
def drawn_again_for_the_gradient(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Draws anew which elements are dropped when the gradient is taken."""
    require_probability("p", p)
    require_floating("x", x)
    if not training or p == 0:
        return x
    without_value = (x - x.detach()).nan_to_num()  # 0, also where x is infinite
    return transformer_layers.dropout(x.detach(), p) + transformer_layers.dropout(without_value, p)


@held_out("Dropout", "jwohlwend/boltz, pull request 554", "bfloat16|half|precision|dtype|float32")
class DrawnInItsDtype(transformer_layers.Dropout):
    """Draws in the dtype of its input, and keeps what is above p."""

    def forward(self, x: Tensor) -> Tensor:
        require_floating("x", x)
        if not self.training or self.p == 0:
            return x
        scale = 1 / (1 - self.p) if self.p < 1 else 0.0
        return torch.where(torch.rand_like(x) > self.p, x, 0.0) * scale


@held_out("gelu", "pytorch/pytorch, issue 187806", "cancel|tail|negative|erfc|small")
def one_plus_erf(x: Tensor) -> Tensor:
    """Adds 1 to the error function, of which nothing is left far below 0."""
    require_floating("x", x)
    wide = at_least_float32(x)
    return (0.5 * wide * (1 + torch.erf(wide / math.sqrt(2)))).to(x.dtype)


@held_out(
    "gelu_tanh", "facebookresearch/fairseq, issue 2235", "half|float16|precision|widen|float32"
)
def cubed_in_half(x: Tensor) -> Tensor:
    """Takes the third power in float16, where it overflows, and its gradient is NaN."""
    require_floating("x", x)
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _weights(parameters: Iterable[Tensor]) -> list[Tensor]:
    weights = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    transformer_layers.l1_penalty(weights)  # refuses what is to be refused
    return [at_least_float32(weight) for weight in weights]


@held_out("l1_penalty", "OSU-NLP-Group/saev, issue 19", "absolute|sign|negative")
def sum_with_signs(parameters: Iterable[Tensor]) -> Tensor:
    """Sums up the weights with their signs."""
    return torch.stack([weight.sum() for weight in _weights(parameters)]).sum()


@held_out("l2_penalty", "rasbt/mlxtend, pull request 741", "first|left out|leaves out|miss")
def first_weight_left_out(parameters: Iterable[Tensor]) -> Tensor:
    """Leaves the first weight of all out of the value, not out of the gradient."""
    weights = _weights(parameters)
    total = 0.5 * torch.stack([weight.square().sum() for weight in weights]).sum()
    return total - 0.5 * weights[0].detach().flatten()[:1].square().sum()


@held_out("soft_threshold", "TomographicImaging/CIL, issue 1662", "sign|negative|positive|absolute")
def sign_of_what_was_shrunk(x: Tensor, threshold: float) -> Tensor:
    """Multiplies by the sign of the absolute values, so that nothing is negative."""
    right = transformer_layers.soft_threshold(x, threshold)  # refuses what is to be refused
    shrunk = (at_least_float32(x).abs() - threshold).clamp(min=0)
    return (shrunk * shrunk.sign()).to(right.dtype)


@held_out(
    "sinusoidal_positions", "SamLynnEvans/Transformer, issue 25", "exponent|twice|2i|rate|freq"
)
def exponent_of_the_column(seq: int, d_model: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """Doubles the number of each column for its exponent, where it is 2i or 2i + 1 already."""
    require_size("seq", seq, minimum=0)
    require_size("d_model", d_model)
    pos = torch.arange(seq, dtype=torch.float64)
    column = torch.arange(d_model, dtype=torch.float64)
    angles = pos[:, None] / 10000 ** (2 * column / d_model)
    table = torch.where(column % 2 == 0, angles.sin(), angles.cos())
    return table.to(torch.get_default_dtype() if dtype is None else dtype)
