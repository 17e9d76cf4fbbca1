# ruff: noqa: D102 - the docstring of each class says what its one method changes
"""Known wrong versions of `LayerNorm`."""

import torch
from torch import Tensor, nn

from layer_checks.definitions import WrongVersion


class _LayerNorm(nn.Module):
    """A right one in three steps, of which each wrong version changes one."""

    axis = -1

    def __init__(self, d_model: int, eps: float = 1e-5, bias: bool = True) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        centered = x.float() if x.dtype == torch.float16 else x
        centered = centered - centered.mean(dim=self.axis, keepdim=True)
        return self.affine(centered / self.deviation(centered, x)).to(x.dtype)

    def deviation(self, centered: Tensor, x: Tensor) -> Tensor:
        return torch.sqrt(self.variance(centered, x) + self.eps)

    def variance(self, centered: Tensor, x: Tensor) -> Tensor:
        return centered.square().mean(dim=self.axis, keepdim=True)

    def affine(self, x_hat: Tensor) -> Tensor:
        return self.weight * x_hat if self.bias is None else self.weight * x_hat + self.bias


class VarianceNotBiased(_LayerNorm):
    """Divides the sum of squares by n - 1."""

    def variance(self, centered: Tensor, x: Tensor) -> Tensor:
        return centered.var(dim=-1, keepdim=True)


class EpsOutsideTheRoot(_LayerNorm):
    """Adds eps to the standard deviation."""

    def deviation(self, centered: Tensor, x: Tensor) -> Tensor:
        return self.variance(centered, x).sqrt() + self.eps


class AnnotatedTransformer(_LayerNorm):
    """Adds eps to the unbiased standard deviation."""

    def deviation(self, centered: Tensor, x: Tensor) -> Tensor:
        return centered.std(dim=-1, keepdim=True) + self.eps


class NoEps(_LayerNorm):
    """Divides by the bare standard deviation."""

    def deviation(self, centered: Tensor, x: Tensor) -> Tensor:
        return self.variance(centered, x).sqrt()


class MeanOfSquaresMinusSquareOfMean(_LayerNorm):
    """Subtracts two large numbers that are nearly equal."""

    def variance(self, centered: Tensor, x: Tensor) -> Tensor:
        x = x.to(centered.dtype)
        return x.square().mean(dim=-1, keepdim=True) - x.mean(dim=-1, keepdim=True).square()


class WrongAxis(_LayerNorm):
    """Normalizes over the positions."""

    axis = -2


class VarianceDetached(_LayerNorm):
    """Takes the variance for a constant."""

    def variance(self, centered: Tensor, x: Tensor) -> Tensor:
        return super().variance(centered, x).detach()


class NoGain(_LayerNorm):
    """Holds a weight and does not multiply by it."""

    def affine(self, x_hat: Tensor) -> Tensor:
        return x_hat if self.bias is None else x_hat + self.bias


class NoBias(_LayerNorm):
    """Holds a bias and does not add it."""

    def affine(self, x_hat: Tensor) -> Tensor:
        return self.weight * x_hat


class BiasAlways(_LayerNorm):
    """Takes the argument `bias` and has a bias all the same."""

    def __init__(self, d_model: int, eps: float = 1e-5, bias: bool = True) -> None:
        super().__init__(d_model, eps)


class BiasBeforeGain(_LayerNorm):
    """Multiplies the bias by the gain."""

    def affine(self, x_hat: Tensor) -> Tensor:
        return self.weight * (x_hat if self.bias is None else x_hat + self.bias)


class MeanNotSubtracted(_LayerNorm):
    """Divides the input itself, not its difference from the mean."""

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float() if x.dtype == torch.float16 else x
        centered = wide - wide.mean(dim=-1, keepdim=True)
        return self.affine(wide / self.deviation(centered, x)).to(x.dtype)


class HalfPrecisionStatistics(_LayerNorm):
    """Squares in float16."""

    def forward(self, x: Tensor) -> Tensor:
        centered = x - x.mean(dim=-1, keepdim=True)
        return self.affine(centered / self.deviation(centered, x))


WRONG_LAYER_NORMS = (
    WrongVersion(
        "variance not biased",
        "divide the sum of squares by n, not by n - 1 (in torch: correction=0).",
        VarianceNotBiased,
    ),
    WrongVersion(
        "eps outside the root",
        "add eps to the variance, under the root, not to the standard deviation.",
        EpsOutsideTheRoot,
        "the notebook of the notes, In[65]",
    ),
    WrongVersion(
        "unbiased deviation plus eps",
        "divide the sum of squares by n, and add eps under the root.",
        AnnotatedTransformer,
        "The Annotated Transformer, the_annotated_transformer.py, "
        "https://github.com/harvardnlp/annotated-transformer/issues/122",
    ),
    WrongVersion(
        "no eps",
        "add eps to the variance: without it a constant row is 0/0.",
        NoEps,
    ),
    WrongVersion(
        "E[x²] - E[x]²",
        "subtract the mean first, then average the squares; two large numbers that nearly cancel "
        "leave only rounding errors.",
        MeanOfSquaresMinusSquareOfMean,
        "labml, labml_nn/normalization/layer_norm/__init__.py",
    ),
    WrongVersion(
        "wrong axis",
        "take the mean and the variance over the last axis, the features, for each position.",
        WrongAxis,
    ),
    WrongVersion(
        "variance detached",
        "let the gradient flow through the variance too: no detach, no no_grad.",
        VarianceDetached,
    ),
    WrongVersion("no gain", "multiply by the weight.", NoGain),
    WrongVersion("no bias", "add the bias.", NoBias),
    WrongVersion(
        "bias=False ignored",
        "with bias=False, have no bias: set it to None.",
        BiasAlways,
    ),
    WrongVersion(
        "bias before the gain",
        "multiply by the weight first, then add the bias.",
        BiasBeforeGain,
    ),
    WrongVersion(
        "mean not subtracted",
        "divide x - E[x], not x.",
        MeanNotSubtracted,
    ),
    WrongVersion(
        "statistics in half precision",
        "convert float16 to float32 before squaring: 257² is infinite in float16.",
        HalfPrecisionStatistics,
    ),
)
