"""Known wrong versions of `RMSNorm`, and of the readings of Llama and Gemma."""

import torch
from torch import Tensor, nn

from layer_checks.checks.rms_norm import gemma_rms_norm, llama_rms_norm, rms_norm
from transformer_layers.precision import at_least_float32


@rms_norm.right_otherwise
class _RMSNorm(nn.Module):
    """A right one in small steps, of which each wrong version changes one."""

    axis = -1

    def __init__(self, d_model: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x: Tensor) -> Tensor:
        wide = self.wide(x)
        return self.gain(wide / self.root(wide)).to(x.dtype)

    def wide(self, x: Tensor) -> Tensor:
        return at_least_float32(x)

    def root(self, x: Tensor) -> Tensor:
        return torch.sqrt(self.mean_square(x) + self.eps)

    def mean_square(self, x: Tensor) -> Tensor:
        return x.square().mean(dim=self.axis, keepdim=True)

    def gain(self, x_hat: Tensor) -> Tensor:
        return self.weight * x_hat


@rms_norm.wrong("subtract nothing: RMSNorm divides x itself.")
class MeanSubtracted(_RMSNorm):
    """Is layer normalization without a bias."""

    def forward(self, x: Tensor) -> Tensor:
        wide = self.wide(x)
        return super().forward(wide - wide.mean(dim=-1, keepdim=True)).to(x.dtype)


@rms_norm.wrong("add eps to the mean of the squares, under the root.")
class EpsOutsideTheRoot(_RMSNorm):
    """Adds eps to the root mean square."""

    def root(self, x: Tensor) -> Tensor:
        return self.mean_square(x).sqrt() + self.eps


@rms_norm.wrong("add eps to the mean of the squares: without it a row of zeros is 0/0.")
class NoEps(_RMSNorm):
    """Divides by the bare root mean square."""

    def root(self, x: Tensor) -> Tensor:
        return self.mean_square(x).sqrt()


@rms_norm.wrong("take the mean of the squares, not their sum: divide by n.")
class SumOfSquares(_RMSNorm):
    """Divides by the length of the row."""

    def mean_square(self, x: Tensor) -> Tensor:
        return x.square().sum(dim=-1, keepdim=True)


@rms_norm.wrong("take the mean of the squares over the last axis, the features, for each position.")
class WrongAxis(_RMSNorm):
    """Takes the mean over the positions."""

    axis = -2


@rms_norm.wrong("let the gradient flow through the root mean square too: no detach, no no_grad.")
class RootDetached(_RMSNorm):
    """Takes the root mean square for a constant."""

    def root(self, x: Tensor) -> Tensor:
        return super().root(x).detach()


@rms_norm.wrong("multiply by the weight.")
class NoGain(_RMSNorm):
    """Holds a weight and does not multiply by it."""

    def gain(self, x_hat: Tensor) -> Tensor:
        return x_hat


@rms_norm.wrong(
    "multiply by the weight, which starts from ones; 1 + weight belongs to weights that start "
    "from zeros.",
    name="1 + weight",
)
class OnePlusWeight(_RMSNorm):
    """Multiplies by 1 + weight, as Gemma does, whose weights start from zeros."""

    def __init__(self, d_model: int, eps: float = 1e-6) -> None:
        super().__init__(d_model, eps)
        nn.init.zeros_(self.weight)

    def gain(self, x_hat: Tensor) -> Tensor:
        return (1 + self.weight) * x_hat


@rms_norm.wrong("convert float16 to float32 before squaring: 257² is infinite in float16.")
class StatisticsInHalfPrecision(_RMSNorm):
    """Squares in float16."""

    def wide(self, x: Tensor) -> Tensor:
        return x


@rms_norm.wrong("convert bfloat16 to float32 as well: it has eight binary digits for the mean.")
class StatisticsInBfloat16(_RMSNorm):
    """Widens float16 alone."""

    def wide(self, x: Tensor) -> Tensor:
        return x.float() if x.dtype == torch.float16 else x


@rms_norm.wrong("add the eps that is asked for.")
class EpsIgnored(_RMSNorm):
    """Takes the argument and adds 1e-6 all the same."""

    def __init__(self, d_model: int, eps: float = 1e-6) -> None:
        super().__init__(d_model, 1e-6)


@rms_norm.wrong("let eps be 1e-6 unless it is given; LayerNorm's is 1e-5.")
class AnotherDefaultEps(_RMSNorm):
    """Has another default for eps."""

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__(d_model, eps)


@rms_norm.wrong(
    "take the mean of the squares, not the variance, which subtracts the squared mean.",
    name="variance for mean square",
    published="timm 1.0.9, timm/layers/fast_norm.py, rms_norm",
)
class VarianceForMeanSquare(_RMSNorm):
    """Divides by the standard deviation, and subtracts nothing."""

    def mean_square(self, x: Tensor) -> Tensor:
        return x.var(dim=-1, keepdim=True)


@rms_norm.wrong("multiply by the gain in float32, and round what comes out.")
class RoundedBeforeTheGain(_RMSNorm):
    """Rounds to half precision, and multiplies then."""

    def forward(self, x: Tensor) -> Tensor:
        wide = self.wide(x)
        return self.gain((wide / self.root(wide)).to(x.dtype)).to(x.dtype)


@llama_rms_norm.right_otherwise
class _Llama(_RMSNorm):
    """Rounds, and multiplies by the gain then."""

    def forward(self, x: Tensor) -> Tensor:
        wide = self.wide(x)
        return self.gain((wide / self.root(wide)).to(x.dtype)).to(x.dtype)


@gemma_rms_norm.right_otherwise
class _Gemma(_RMSNorm):
    """Multiplies by 1 + weight in float32."""

    def __init__(self, d_model: int, eps: float = 1e-6) -> None:
        super().__init__(d_model, eps)
        nn.init.zeros_(self.weight)

    def gain(self, x_hat: Tensor) -> Tensor:
        return (1 + at_least_float32(self.weight)) * x_hat


def _same_mistakes(names: str) -> None:
    """Declares mistakes in the law for both readings, made in their own forward."""
    for name in names.split(", "):
        (version,) = (each for each in rms_norm.wrong_versions if each.name == name)
        for layer, right in ((llama_rms_norm, _Llama), (gemma_rms_norm, _Gemma)):
            mistake = version.layer

            class Wrong(right):  # type: ignore[misc, valid-type]
                pass

            for step in ("root", "mean_square", "wide", "axis"):
                if step in vars(mistake):
                    setattr(Wrong, step, vars(mistake)[step])
            Wrong.__doc__ = mistake.__doc__
            layer.same_mistake(version, Wrong)


_same_mistakes(
    "eps outside the root, no eps, sum of squares, wrong axis, statistics in half precision, "
    "variance for mean square"
)


@llama_rms_norm.wrong(
    "round before the gain: multiplied in float32 it is another function in half precision.",
    name="rounded after the gain",
    published="https://github.com/vllm-project/vllm/pull/42379",
)
class RoundedAfterTheGain(_Llama):
    """Multiplies by the gain in float32, and rounds then."""

    def forward(self, x: Tensor) -> Tensor:
        wide = self.wide(x)
        return self.gain(wide / self.root(wide)).to(x.dtype)


@llama_rms_norm.wrong("multiply by the weight.", name="no gain")
class LlamaWithoutGain(_Llama):
    """Holds a weight and does not multiply by it."""

    def gain(self, x_hat: Tensor) -> Tensor:
        return x_hat


@llama_rms_norm.wrong("multiply by the weight: 1 + weight is Gemma's.", name="1 + weight")
class LlamaWithOneMore(_Llama):
    """Multiplies by 1 + weight."""

    def __init__(self, d_model: int, eps: float = 1e-6) -> None:
        super().__init__(d_model, eps)
        nn.init.zeros_(self.weight)

    def gain(self, x_hat: Tensor) -> Tensor:
        return (1 + self.weight) * x_hat


@gemma_rms_norm.wrong(
    "multiply by 1 + weight: weights that were trained so are near 0.",
    name="the 1 is missing",
    published="https://github.com/linkedin/Liger-Kernel/issues/74",
)
class OneIsMissing(_Gemma):
    """Multiplies by the weight, as Llama does."""

    def __init__(self, d_model: int, eps: float = 1e-6) -> None:
        super().__init__(d_model, eps)
        nn.init.ones_(self.weight)

    def gain(self, x_hat: Tensor) -> Tensor:
        return at_least_float32(self.weight) * x_hat


@gemma_rms_norm.wrong(
    "round after the gain, once.",
    name="rounded before the gain",
    published="https://github.com/huggingface/transformers/pull/29402",
)
class GemmaRoundedBeforeTheGain(_Gemma):
    """Rounds first, as Llama does."""

    def forward(self, x: Tensor) -> Tensor:
        wide = self.wide(x)
        return self.gain((wide / self.root(wide)).to(x.dtype)).to(x.dtype)


@gemma_rms_norm.wrong(
    "add the 1 in float32: bfloat16 has eight binary digits for 1 + weight.",
    name="1 + weight in half precision",
    published="https://github.com/vllm-project/vllm/pull/3653",
)
class OneAddedInHalfPrecision(_Gemma):
    """Adds the 1 in the dtype of the weight."""

    def gain(self, x_hat: Tensor) -> Tensor:
        return (1 + self.weight) * x_hat


@gemma_rms_norm.wrong("start the weight from zeros: the gain is 1 more.", name="starts from ones")
class GemmaFromOnes(_Gemma):
    """Starts the weight from ones."""

    def __init__(self, d_model: int, eps: float = 1e-6) -> None:
        super().__init__(d_model, eps)
        nn.init.ones_(self.weight)
