# ruff: noqa: D102 - the docstring of each class says what its one method changes
"""Known wrong versions of `RMSNorm`."""

import torch
from torch import Tensor, nn

from layer_checks.definitions import WrongVersion


class _RMSNorm(nn.Module):
    """A right one in three steps, of which each wrong version changes one."""

    axis = -1

    def __init__(self, d_model: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float() if x.dtype == torch.float16 else x
        return self.gain(wide / self.root(wide)).to(x.dtype)

    def root(self, x: Tensor) -> Tensor:
        return torch.sqrt(self.mean_square(x) + self.eps)

    def mean_square(self, x: Tensor) -> Tensor:
        return x.square().mean(dim=self.axis, keepdim=True)

    def gain(self, x_hat: Tensor) -> Tensor:
        return self.weight * x_hat


class MeanSubtracted(_RMSNorm):
    """Is layer normalization without a bias."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x - x.mean(dim=-1, keepdim=True))


class EpsOutsideTheRoot(_RMSNorm):
    """Adds eps to the root mean square."""

    def root(self, x: Tensor) -> Tensor:
        return self.mean_square(x).sqrt() + self.eps


class NoEps(_RMSNorm):
    """Divides by the bare root mean square."""

    def root(self, x: Tensor) -> Tensor:
        return self.mean_square(x).sqrt()


class SumOfSquares(_RMSNorm):
    """Divides by the length of the row."""

    def mean_square(self, x: Tensor) -> Tensor:
        return x.square().sum(dim=-1, keepdim=True)


class WrongAxis(_RMSNorm):
    """Takes the mean over the positions."""

    axis = -2


class RootDetached(_RMSNorm):
    """Takes the root mean square for a constant."""

    def root(self, x: Tensor) -> Tensor:
        return super().root(x).detach()


class NoGain(_RMSNorm):
    """Holds a weight and does not multiply by it."""

    def gain(self, x_hat: Tensor) -> Tensor:
        return x_hat


class OnePlusWeight(_RMSNorm):
    """Multiplies by 1 + weight, as Gemma does, whose weights start from zeros."""

    def __init__(self, d_model: int, eps: float = 1e-6) -> None:
        super().__init__(d_model, eps)
        nn.init.zeros_(self.weight)

    def gain(self, x_hat: Tensor) -> Tensor:
        return (1 + self.weight) * x_hat


class HalfPrecisionStatistics(_RMSNorm):
    """Squares in float16."""

    def forward(self, x: Tensor) -> Tensor:
        return self.gain(x / self.root(x))


WRONG_RMS_NORMS = (
    WrongVersion(
        "mean subtracted",
        "subtract nothing: RMSNorm divides x itself.",
        MeanSubtracted,
    ),
    WrongVersion(
        "eps outside the root",
        "add eps to the mean of the squares, under the root.",
        EpsOutsideTheRoot,
    ),
    WrongVersion(
        "no eps",
        "add eps to the mean of the squares: without it a row of zeros is 0/0.",
        NoEps,
    ),
    WrongVersion(
        "sum of squares",
        "take the mean of the squares, not their sum: divide by n.",
        SumOfSquares,
    ),
    WrongVersion(
        "wrong axis",
        "take the mean of the squares over the last axis, the features, for each position.",
        WrongAxis,
    ),
    WrongVersion(
        "root detached",
        "let the gradient flow through the root mean square too: no detach, no no_grad.",
        RootDetached,
    ),
    WrongVersion("no gain", "multiply by the weight.", NoGain),
    WrongVersion(
        "1 + weight",
        "multiply by the weight, which starts from ones; 1 + weight belongs to weights that start "
        "from zeros.",
        OnePlusWeight,
    ),
    WrongVersion(
        "statistics in half precision",
        "convert float16 to float32 before squaring: 257² is infinite in float16.",
        HalfPrecisionStatistics,
    ),
)
