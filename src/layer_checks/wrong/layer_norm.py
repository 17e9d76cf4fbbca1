"""Known wrong versions of `LayerNorm`."""

import torch
from torch import Tensor, nn

from layer_checks.checks.layer_norm import layer_norm
from transformer_layers.precision import at_least_float32


@layer_norm.right_otherwise
class _LayerNorm(nn.Module):
    """A right one in small steps, of which each wrong version changes one."""

    axis = -1

    def __init__(self, d_model: int, eps: float = 1e-5, bias: bool = True) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        wide = self.wide(x)
        centered = wide - wide.mean(dim=self.axis, keepdim=True)
        return self.affine(centered / self.deviation(centered, x)).to(x.dtype)

    def wide(self, x: Tensor) -> Tensor:
        return at_least_float32(x)

    def deviation(self, centered: Tensor, x: Tensor) -> Tensor:
        return torch.sqrt(self.variance(centered, x) + self.eps)

    def variance(self, centered: Tensor, x: Tensor) -> Tensor:
        return centered.square().mean(dim=self.axis, keepdim=True)

    def affine(self, x_hat: Tensor) -> Tensor:
        return self.weight * x_hat if self.bias is None else self.weight * x_hat + self.bias


@layer_norm.wrong("divide the sum of squares by n, not by n - 1 (in torch: correction=0).")
class VarianceNotBiased(_LayerNorm):
    """Divides the sum of squares by n - 1."""

    def variance(self, centered: Tensor, x: Tensor) -> Tensor:
        return centered.var(dim=-1, keepdim=True)


@layer_norm.wrong(
    "add eps to the variance, under the root, not to the standard deviation.",
    published="the notebook of the notes, In[65]",
)
class EpsOutsideTheRoot(_LayerNorm):
    """Adds eps to the standard deviation."""

    def deviation(self, centered: Tensor, x: Tensor) -> Tensor:
        return self.variance(centered, x).sqrt() + self.eps


@layer_norm.wrong(
    "divide the sum of squares by n, and add eps under the root.",
    published="The Annotated Transformer, the_annotated_transformer.py, "
    "https://github.com/harvardnlp/annotated-transformer/issues/122",
)
class UnbiasedDeviationPlusEps(_LayerNorm):
    """Adds eps to the unbiased standard deviation."""

    def deviation(self, centered: Tensor, x: Tensor) -> Tensor:
        return centered.std(dim=-1, keepdim=True) + self.eps


@layer_norm.wrong("add eps to the variance: without it a constant row is 0/0.")
class NoEps(_LayerNorm):
    """Divides by the bare standard deviation."""

    def deviation(self, centered: Tensor, x: Tensor) -> Tensor:
        return self.variance(centered, x).sqrt()


@layer_norm.wrong(
    "subtract the mean first, then average the squares; two large numbers that nearly cancel "
    "leave only rounding errors.",
    name="E[x²] - E[x]²",
    published="labml, labml_nn/normalization/layer_norm/__init__.py",
)
class MeanOfSquaresMinusSquareOfMean(_LayerNorm):
    """Subtracts two large numbers that are nearly equal."""

    def variance(self, centered: Tensor, x: Tensor) -> Tensor:
        x = x.to(centered.dtype)
        return x.square().mean(dim=-1, keepdim=True) - x.mean(dim=-1, keepdim=True).square()


@layer_norm.wrong(
    "take the mean and the variance over the last axis, the features, for each position."
)
class WrongAxis(_LayerNorm):
    """Normalizes over the positions."""

    axis = -2


@layer_norm.wrong("let the gradient flow through the variance too: no detach, no no_grad.")
class VarianceDetached(_LayerNorm):
    """Takes the variance for a constant."""

    def variance(self, centered: Tensor, x: Tensor) -> Tensor:
        return super().variance(centered, x).detach()


@layer_norm.wrong("multiply by the weight.")
class NoGain(_LayerNorm):
    """Holds a weight and does not multiply by it."""

    def affine(self, x_hat: Tensor) -> Tensor:
        return x_hat if self.bias is None else x_hat + self.bias


@layer_norm.wrong("add the bias.")
class NoBias(_LayerNorm):
    """Holds a bias and does not add it."""

    def affine(self, x_hat: Tensor) -> Tensor:
        return self.weight * x_hat


@layer_norm.wrong("with bias=False, have no bias: set it to None.", name="bias=False ignored")
class BiasAlways(_LayerNorm):
    """Takes the argument `bias` and has a bias all the same."""

    def __init__(self, d_model: int, eps: float = 1e-5, bias: bool = True) -> None:
        super().__init__(d_model, eps)


@layer_norm.wrong("multiply by the weight first, then add the bias.")
class BiasBeforeTheGain(_LayerNorm):
    """Multiplies the bias by the gain."""

    def affine(self, x_hat: Tensor) -> Tensor:
        return self.weight * (x_hat if self.bias is None else x_hat + self.bias)


@layer_norm.wrong("divide x - E[x], not x.")
class MeanNotSubtracted(_LayerNorm):
    """Divides the input itself, not its difference from the mean."""

    def forward(self, x: Tensor) -> Tensor:
        wide = self.wide(x)
        centered = wide - wide.mean(dim=-1, keepdim=True)
        return self.affine(wide / self.deviation(centered, x)).to(x.dtype)


@layer_norm.wrong("convert float16 to float32 before squaring: 257² is infinite in float16.")
class StatisticsInHalfPrecision(_LayerNorm):
    """Squares in float16."""

    def wide(self, x: Tensor) -> Tensor:
        return x


@layer_norm.wrong("convert bfloat16 to float32 as well: it has eight binary digits for the mean.")
class StatisticsInBfloat16(_LayerNorm):
    """Widens float16 alone."""

    def wide(self, x: Tensor) -> Tensor:
        return x.float() if x.dtype == torch.float16 else x
