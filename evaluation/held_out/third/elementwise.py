"""Wrong dropouts, penalties, activations and positions."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor

import transformer_layers
from evaluation.held_out.definitions import held_out
from transformer_layers.precision import at_least_float32
from transformer_layers.validation import require_floating, require_not_negative


def _draws(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    dtype = torch.promote_types(x.dtype, torch.float32)
    return torch.rand(shape, dtype=dtype, device=x.device)


@held_out("dropout", "clab/dynet, pull request 182", "scale|kept|share|expect|1 - p|mean")
def scaled_by_the_share_that_was_kept(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Divides by the share that happened to be kept, not by 1 - p."""
    if not training or p in (0, 1):
        return transformer_layers.dropout(x, p, training)
    transformer_layers.dropout(x[:0] if x.ndim else x, p)
    kept = _draws(x, x.shape) >= p
    share = kept.float().mean().clamp(min=1e-6)
    return (torch.where(kept, x, 0.0) / share).to(x.dtype)


@held_out("dropout", "gorgonia/gorgonia, pull request 399", "NaN|p = 1|p=1|zeros|0 / 0|divi")
def nothing_divided_by_nothing(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Divides by 1 - p also where p is 1, and gives NaN for zeros."""
    if not training or p == 0:
        return transformer_layers.dropout(x, p, training)
    transformer_layers.dropout(x[:0] if x.ndim else x, p)
    kept = _draws(x, x.shape) >= p
    return torch.where(kept, x, 0.0) / torch.tensor(1 - p, dtype=x.dtype, device=x.device)


@held_out("Dropout", "lmjohns3/theanets, pull request 123", "scale|1 - p|divide|expect|mean")
class DividedByTheDropped(transformer_layers.Dropout):
    """Divides by p, the share that is dropped, in place of 1 - p; at a half that is the same."""

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        return y * ((1 - self.p) / self.p) if self.training and 0 < self.p < 1 else y


@held_out("gelu", "NVIDIA-NeMo/Speech, pull request 7728", "sigmoid|approx|1.702|exact|erf")
def quick_for_exact(x: Tensor) -> Tensor:
    """Computes x sigmoid(1.702 x), the quick approximation, under the exact one's name."""
    require_floating("x", x)
    wide = at_least_float32(x)
    return (wide * torch.sigmoid(1.702 * wide)).to(x.dtype)


@held_out("gelu_tanh", "pytorch/executorch, pull request 22324", "overflow|NaN|large|infin|exp")
def tanh_of_exponentials(x: Tensor) -> Tensor:
    """Writes tanh as a quotient of exponentials, which is infinity / infinity from 13 on."""
    require_floating("x", x)
    wide = at_least_float32(x)
    inner = math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)
    up, down = inner.exp(), (-inner).exp()
    return (0.5 * wide * (1 + (up - down) / (up + down))).to(x.dtype)


@held_out("l1_penalty", "mlpack/mlpack, pull request 3545", "gradient|NaN|zero|at 0|sqrt|root")
def root_of_the_square(parameters: Iterable[Tensor]) -> Tensor:
    """Takes the root of the square for the absolute value, whose gradient at 0 is NaN."""
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    transformer_layers.l1_penalty([each.detach() for each in listed])
    return torch.stack([at_least_float32(w).square().sqrt().sum() for w in listed]).sum()


@held_out("soft_threshold", "slimgroup/SlimOptim.jl, pull request 4", "zero|NaN|divi|at 0|0 / 0")
def shrunk_by_a_factor(x: Tensor, threshold: float) -> Tensor:
    """Multiplies by 1 - threshold / |x|, which has no gradient at 0, and no value for 0."""
    require_floating("x", x)
    require_not_negative("threshold", threshold)
    wide = at_least_float32(x)
    return (wide * (1 - threshold / wide.abs()).clamp(min=0)).to(x.dtype)


@held_out(
    "sinusoidal_positions", "kaushalshetty/Positional-Encoding, issue 1", "cos|first|position"
)
def first_position_without_cosines(
    seq: int, d_model: int, *, dtype: torch.dtype | None = None
) -> Tensor:
    """Leaves zeros where position 0 has its cosines, as for padding."""
    table = transformer_layers.sinusoidal_positions(seq, d_model, dtype=dtype)
    table[:1, 1::2] = 0.0
    return table


@held_out(
    "sinusoidal_positions",
    "tensorflow/tensor2tensor, issue 1423",
    "rate|frequen|exponent|wave|scale",
)
def slowest_at_ten_thousand(seq: int, d_model: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """Spaces the rates so that the slowest is exactly 1 / 10000: by one less than there are."""
    table = transformer_layers.sinusoidal_positions(seq, d_model, dtype=torch.float64)
    rates = (d_model + 1) // 2
    steps = torch.arange(rates, dtype=torch.float64) / max(rates - 1, 1)
    angles = torch.arange(seq, dtype=torch.float64)[:, None] / 10000**steps
    table[:, 0::2], table[:, 1::2] = angles.sin(), angles.cos()[:, : d_model // 2]
    return table.to(torch.get_default_dtype() if dtype is None else dtype)
