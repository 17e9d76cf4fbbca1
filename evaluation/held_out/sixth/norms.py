"""Wrong versions of the norms."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from evaluation.held_out.definitions import held_out
from transformer_layers import BatchNorm1d, GemmaRMSNorm, LayerNorm, LlamaRMSNorm, RMSNorm
from transformer_layers.precision import at_least_float32
from transformer_layers.validation import require_dtype, require_last_axis


@held_out(
    "LayerNorm",
    "review practice: a kernel that loads rows of a power of two",
    r"padding|padded|power|width|size|block|zeros|varianc|multiple",
)
class PaddingInTheVariance(LayerNorm):
    """Fills rows up to a power of two, and counts what it filled in among the squares."""

    def forward(self, x: Tensor) -> Tensor:
        require_last_axis("x", x, "d_model", self.d_model)
        require_dtype("x", x, self.weight.dtype, low_precision_input=True)
        wide = at_least_float32(x)
        mean = wide.mean(dim=-1, keepdim=True)
        centered = wide - mean
        rest = centered.mean(dim=-1, keepdim=True)
        centered = centered - rest
        filled = (1 << max(self.d_model - 1, 0).bit_length()) - self.d_model
        var = centered.square().mean(dim=-1, keepdim=True)
        var = var + filled * (mean + rest).square() / max(self.d_model, 1)
        y = self.weight * (centered / torch.sqrt(var + self.eps))
        return (y if self.bias is None else y + self.bias).to(x.dtype)


@held_out(
    "LayerNorm",
    "review practice: eps that half precision can hold",
    r"eps|float16|bfloat16|precision|half|dtype",
)
class EpsOfTheDtype(LayerNorm):
    """Raises eps to the distance of neighbors in the dtype of the input, 1/128 in bfloat16."""

    def forward(self, x: Tensor) -> Tensor:
        given = self.eps
        if x.is_floating_point():
            self.eps = max(given, torch.finfo(x.dtype).eps)
        try:
            return super().forward(x)
        finally:
            self.eps = given


@held_out(
    "LayerNorm",
    "review practice: a product with ones that is left out",
    r"gain|weight|gradient|train|ones|start|skip|learn",
)
class GainOfOnesSkipped(LayerNorm):
    """Leaves the gain out while it is all ones, so that it has no gradient at the start."""

    def forward(self, x: Tensor) -> Tensor:
        known = not torch.compiler.is_compiling() and not self.weight.is_meta
        if not known or not bool((self.weight == 1).all()):
            return super().forward(x)
        require_last_axis("x", x, "d_model", self.d_model)
        require_dtype("x", x, self.weight.dtype, low_precision_input=True)
        wide = at_least_float32(x)
        centered = wide - wide.mean(dim=-1, keepdim=True)
        centered = centered - centered.mean(dim=-1, keepdim=True)
        var = centered.square().mean(dim=-1, keepdim=True)
        y = centered / torch.sqrt(var + self.eps)
        return (y if self.bias is None else y + self.bias).to(x.dtype)


@held_out(
    "RMSNorm",
    "review practice: an attribute of the class",
    r"eps|class|instance|shared|other|another|state|second",
)
class EpsOnTheClass(RMSNorm):
    """Keeps eps on the class, so that the norm made last decides for all."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        type(self).eps = self.__dict__.pop("eps")


@held_out(
    "RMSNorm",
    "review practice: the partial form of the paper",
    r"partial|first|part|wide|width|size|features|all of",
)
class PartialForWideRows(RMSNorm):
    """Estimates the mean square of a row of more than 64 features from the first sixteenth."""

    def forward(self, x: Tensor) -> Tensor:
        require_last_axis("x", x, "d_model", self.d_model)
        if self.d_model <= 64:
            return super().forward(x)
        require_dtype("x", x, self.weight.dtype, low_precision_input=True)
        wide = at_least_float32(x)
        mean_square = wide[..., : self.d_model // 16].square().mean(dim=-1, keepdim=True)
        return self._with_gain(wide / torch.sqrt(mean_square + self.eps), x.dtype)


@held_out(
    "RMSNorm",
    "review practice: statistics under no_grad",
    r"gradient|detach|constant|backward|derivative|no_grad",
)
class RootWithoutGradient(RMSNorm):
    """Takes the root for a constant in the gradient."""

    def forward(self, x: Tensor) -> Tensor:
        require_last_axis("x", x, "d_model", self.d_model)
        require_dtype("x", x, self.weight.dtype, low_precision_input=True)
        wide = at_least_float32(x)
        with torch.no_grad():
            root = torch.sqrt(wide.square().mean(dim=-1, keepdim=True) + self.eps)
        return self._with_gain(wide / root, x.dtype)


@held_out(
    "LlamaRMSNorm",
    "vllm-project/vllm, issue 42325",
    r"round|order|before|after|twice|once|bfloat16|float16|float32|precision|gain",
)
class GainInFloat32(LlamaRMSNorm):
    """Multiplies by the gain in float32 and rounds once, in place of rounding first."""

    def _with_gain(self, x_hat: Tensor, dtype: torch.dtype) -> Tensor:
        product = at_least_float32(self.weight) * x_hat
        return product.to(torch.promote_types(self.weight.dtype, dtype))


@held_out("LlamaRMSNorm", "review practice: eps of a later model", r"eps|default|1e-")
class EpsOfLaterModels(LlamaRMSNorm):
    """Has 1e-5 as default of eps, in place of 1e-6."""

    def __init__(self, d_model: int, eps: float = 1e-5, **options: Any) -> None:
        super().__init__(d_model, eps, **options)


@held_out(
    "GemmaRMSNorm",
    "vllm-project/vllm, pull request 29810",
    r"bfloat16|float16|float32|precision|round|1 \+|one",
)
class OneAddedInTheDtype(GemmaRMSNorm):
    """Adds the one to the weight in the dtype of the weight, where bfloat16 loses digits."""

    def _with_gain(self, x_hat: Tensor, dtype: torch.dtype) -> Tensor:
        return ((1 + self.weight).to(x_hat.dtype) * x_hat).to(dtype)


@held_out(
    "GemmaRMSNorm",
    "utensils/mold, pull request 1078",
    r"load|state.?dict|saved|1 \+|one|twice|offset",
)
class OneFoldedInAtLoading(GemmaRMSNorm):
    """Adds one to the weight that is loaded from a state dict, beside the one of the formula."""

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        key = f"{prefix}weight"
        if key in state_dict:
            state_dict = {**state_dict, key: state_dict[key] + 1}
        super()._load_from_state_dict(state_dict, prefix, *args)


@held_out(
    "GemmaRMSNorm",
    "linkedin/Liger-Kernel, issue 74",
    r"start|initial|zero|ones|reset",
)
class StartsWithOnes(GemmaRMSNorm):
    """Starts with ones, so that the gain is two at the start."""

    def reset_parameters(self) -> None:
        nn.init.ones_(self.weight)


@held_out(
    "BatchNorm1d",
    "pytorch/pytorch, issue 31498",
    r"momentum|none|average|cumulative|default|plain",
)
class TenthForNoMomentum(BatchNorm1d):
    """Takes the momentum None for 0.1, in place of the plain average."""

    def _update_running(self, mean: Tensor, var: Tensor, count: int) -> None:
        given = self.momentum
        self.momentum = 0.1 if given is None else given
        super()._update_running(mean, var, count)
        self.momentum = given


@held_out(
    "BatchNorm1d",
    "review practice: a handle on a buffer",
    r"buffer|in place|replac|new tensor|handle|reference|alias|same tensor",
)
class BuffersReplaced(BatchNorm1d):
    """Puts new tensors in the place of the buffers, so that who holds the old ones sees nothing."""

    def _update_running(self, mean: Tensor, var: Tensor, count: int) -> None:
        self.running_mean = self.running_mean.clone()
        self.running_var = self.running_var.clone()
        super()._update_running(mean, var, count)


@held_out(
    "BatchNorm1d",
    "review practice: folding for inference",
    r"fold|cache|stale|first|again|state|kept|second|train.*after|old",
)
class FoldedAtTheFirstEvaluation(BatchNorm1d):
    """Folds gain and averages at its first evaluation without gradients, and never again."""

    _folded: tuple[Tensor, Tensor] | None = None

    def forward(self, x: Tensor) -> Tensor:
        if self.training or torch.is_grad_enabled():
            return super().forward(x)
        self._check(x)
        if self._folded is None:
            scale = self.weight / torch.sqrt(at_least_float32(self.running_var) + self.eps)
            self._folded = scale, self.bias - scale * self.running_mean
        scale, shift = self._folded
        wide = at_least_float32(x).movedim(1, -1)
        return (scale * wide + shift).movedim(-1, 1).to(x.dtype)


@held_out(
    "BatchNorm1d",
    "review practice: channels last",
    r"channel|axis|last|square|length|as long|layout",
)
class ChannelsWhereTheyFit(BatchNorm1d):
    """Takes the last of three axes or more for the channels where it is as long as they are."""

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim > 2 and x.shape[-1] == self.num_features:
            return super().forward(x.movedim(-1, 1)).movedim(1, -1)
        return super().forward(x)


@held_out("BatchNorm1d", "review practice: two variances", r"unbiased|biased|n - 1|running|varianc")
class BiasedRunningVariance(BatchNorm1d):
    """Keeps the running average of the biased variance."""

    def _update_running(self, mean: Tensor, var: Tensor, count: int) -> None:
        share = (count - 1) / count if count else 1.0
        super()._update_running(mean, var * share, count)


@held_out(
    "BatchNorm1d",
    "review practice: a counter outside of training",
    r"evaluation|eval|count|tracked|number of batches",
)
class EvaluationsCounted(BatchNorm1d):
    """Counts the batches of evaluation among those of the running averages."""

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        if not self.training and math.prod(x.shape):
            self.num_batches_tracked.add_(1)
        return y
