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


@layer_norm.wrong("add the eps that is asked for.")
class EpsIgnored(_LayerNorm):
    """Takes the argument and adds 1e-5 all the same."""

    def __init__(self, d_model: int, eps: float = 1e-5, bias: bool = True) -> None:
        super().__init__(d_model, 1e-5, bias)


@layer_norm.wrong(
    "let eps be 1e-5 unless it is given.",
    published="the Annotated Transformer, the_annotated_transformer.py, eps=1e-6",
)
class AnotherDefaultEps(_LayerNorm):
    """Has another default for eps."""

    def __init__(self, d_model: int, eps: float = 1e-6, bias: bool = True) -> None:
        super().__init__(d_model, eps, bias)


@layer_norm.wrong(
    "multiply by the weight, or let it start from zeros: 1 + weight with a weight of ones doubles "
    "every row.",
    name="1 + weight",
    published="transformers 5.23, models/nemotron/modeling_nemotron.py, NemotronLayerNorm1P",
)
class OnePlusWeight(_LayerNorm):
    """Multiplies by 1 + weight, whose weight starts from ones."""

    def affine(self, x_hat: Tensor) -> Tensor:
        y = (1 + self.weight) * x_hat
        return y if self.bias is None else y + self.bias


@layer_norm.wrong("let the weight start from ones: with zeros no gradient passes.")
class WeightStartsFromZeros(_LayerNorm):
    """Starts from a weight of zeros."""

    def __init__(self, d_model: int, eps: float = 1e-5, bias: bool = True) -> None:
        super().__init__(d_model, eps, bias)
        nn.init.zeros_(self.weight)


@layer_norm.wrong(
    "let the gradient flow through the mean and the variance: no detach, no .data.",
    published="TinyTorch, LayerNorm",
)
class StatisticsDetached(_LayerNorm):
    """Takes the mean and the variance for constants."""

    def forward(self, x: Tensor) -> Tensor:
        wide = self.wide(x)
        centered = wide - wide.mean(dim=-1, keepdim=True).detach()
        return self.affine(centered / self.deviation(centered, x).detach()).to(x.dtype)


@layer_norm.wrong("return the dtype of the input, also where the parameters have another one.")
class DtypeOfTheParameters(_LayerNorm):
    """Returns the dtype of its weight."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(self.wide(x)).to(self.weight.dtype)
