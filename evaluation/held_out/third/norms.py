"""Wrong norms."""

from typing import Any

import torch
from torch import Tensor, nn

import transformer_layers
from evaluation.held_out.definitions import held_out
from transformer_layers.precision import at_least_float32
from transformer_layers.validation import require_dtype, require_last_axis


class _LayerNorm(transformer_layers.LayerNorm):
    """Right, in small steps."""

    def forward(self, x: Tensor) -> Tensor:
        require_last_axis("x", x, "d_model", self.d_model)
        require_dtype("x", x, self.weight.dtype, low_precision_input=True)
        wide = at_least_float32(x)
        mean = self.mean(wide)
        mean = mean + self.mean(wide - mean)  # what rounding left of it
        y = self.weight * self.normalized(wide, mean, self.mean((wide - mean).square()))
        return (y if self.bias is None else y + self.bias).to(x.dtype)

    def mean(self, wide: Tensor) -> Tensor:
        return wide.mean(dim=-1, keepdim=True)

    def normalized(self, wide: Tensor, mean: Tensor, var: Tensor) -> Tensor:
        return (wide - mean) / torch.sqrt(var + self.eps)


@held_out("LayerNorm", "NVIDIA/TransformerEngine, issue 2528", "reset|initial|start|ones")
class ResetDrawsTheGain(transformer_layers.LayerNorm):
    """Starts with ones, but draws the gain around 0 when its parameters are reset."""

    def __init__(self, d_model: int, eps: float = 1e-5, bias: bool = True, **where: Any) -> None:
        super().__init__(d_model, eps, bias, **where)
        nn.init.ones_(self.weight)

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=0.02)
        if self.bias is not None:
            nn.init.zeros_(self.bias)


@held_out("LayerNorm", "Hsword/Hetu, pull request 17", "evaluation|eval|training|running|mode")
class TrainingStatisticsInEvaluation(_LayerNorm):
    """Normalizes in evaluation by an average of the statistics that it saw in training."""

    seen_mean: Tensor
    seen_var: Tensor

    def __init__(self, d_model: int, eps: float = 1e-5, bias: bool = True, **where: Any) -> None:
        super().__init__(d_model, eps, bias, **where)
        device = where.get("device")
        self.register_buffer("seen_mean", torch.zeros(1, device=device), persistent=False)
        self.register_buffer("seen_var", torch.ones(1, device=device), persistent=False)

    def normalized(self, wide: Tensor, mean: Tensor, var: Tensor) -> Tensor:
        if not self.training:
            return super().normalized(wide, self.seen_mean, self.seen_var)
        with torch.no_grad():
            self.seen_mean.lerp_(mean.mean().to(self.seen_mean), 0.1)
            self.seen_var.lerp_(var.mean().to(self.seen_var), 0.1)
        return super().normalized(wide, mean, var)


class _RMSNorm(transformer_layers.RMSNorm):
    """Right, in small steps."""

    def forward(self, x: Tensor) -> Tensor:
        require_last_axis("x", x, "d_model", self.d_model)
        require_dtype("x", x, self.weight.dtype, low_precision_input=True)
        return self.scaled(self.normalized(at_least_float32(x)), x.dtype)

    def normalized(self, wide: Tensor) -> Tensor:
        return wide / torch.sqrt(wide.square().mean(dim=-1, keepdim=True) + self.eps)

    def scaled(self, x_hat: Tensor, dtype: torch.dtype) -> Tensor:
        return (self.weight * x_hat).to(dtype)


@held_out(
    "RMSNorm", "huggingface/transformers, issue 30236", "dtype|float16|half|float32|precision"
)
class FloatThroughTheWeight(_RMSNorm):
    """Goes back to the input's dtype before the gain, which makes float32 of it again."""

    def scaled(self, x_hat: Tensor, dtype: torch.dtype) -> Tensor:
        return self.weight * x_hat.to(dtype)


@held_out("RMSNorm", "GeeeekExplorer/nano-vllm, issue 170", "in place|input|overwrit|modif|change")
class WritesOverItsInput(_RMSNorm):
    """Normalizes in place where no gradient is wanted, and so changes what the caller holds."""

    def normalized(self, wide: Tensor) -> Tensor:
        if torch.is_grad_enabled():
            return super().normalized(wide)
        return wide.div_(torch.sqrt(wide.square().mean(dim=-1, keepdim=True) + self.eps))


@held_out("RMSNorm", "ggml-org/llama.cpp, pull request 1925", "twice|eps|again|small")
class NormalizedTwice(_RMSNorm):
    """Normalizes what it has normalized, which shows where eps is not small beside the input."""

    def normalized(self, wide: Tensor) -> Tensor:
        return super().normalized(super().normalized(wide))


class _BatchNorm1d(transformer_layers.BatchNorm1d):
    """Right, in small steps."""

    def forward(self, x: Tensor) -> Tensor:
        self._check(x)
        wide = at_least_float32(x).movedim(1, -1)
        if self.training:
            rows = wide.flatten(0, -2)
            mean = rows.mean(dim=0)
            mean = mean + (rows - mean).mean(dim=0)  # what rounding left of it
            var = self.variance(rows - mean)
            self._update_running(*self.kept(mean, var), len(rows))
        else:
            mean, var = at_least_float32(self.running_mean), at_least_float32(self.running_var)
        x_hat = (wide - mean) / torch.sqrt(var + self.eps)
        return (self.weight * x_hat + self.bias).movedim(-1, 1).to(x.dtype)

    def variance(self, centered: Tensor) -> Tensor:
        return centered.square().mean(dim=0)

    def kept(self, mean: Tensor, var: Tensor) -> tuple[Tensor, Tensor]:
        return mean.detach(), var.detach()


@held_out("BatchNorm1d", "RubixML/ML, pull request 423", "variance|divide|count|number|width")
class VarianceByTheWidth(_BatchNorm1d):
    """Divides the sum of squares by the number of channels, not of rows."""

    def variance(self, centered: Tensor) -> Tensor:
        return centered.square().sum(dim=0) / max(self.num_features, 1)


@held_out("BatchNorm1d", "torch/nn, pull request 434", "reset|initial|start|running")
class ResetKeepsTheRunningAverages(transformer_layers.BatchNorm1d):
    """Resets gain and bias, and leaves the running averages as they are."""

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, **where: Any
    ) -> None:
        super().__init__(num_features, eps, momentum, **where)
        self.running_mean.zero_()
        self.running_var.fill_(1)
        self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        nn.init.ones_(self.weight)
        nn.init.zeros_(self.bias)


@held_out("BatchNorm1d", "bayesiains/nflows, pull request 11", "graph|gradient|detach|backward")
class RunningAveragesInTheGraph(_BatchNorm1d):
    """Keeps the running averages in the graph, which grows with each batch."""

    def kept(self, mean: Tensor, var: Tensor) -> tuple[Tensor, Tensor]:
        return mean, var


@held_out(
    "BatchNorm1d",
    "automan000/Camera-based-Person-ReID, issue 3",
    "momentum|None|average|last|plain",
)
class LastBatchWithoutMomentum(transformer_layers.BatchNorm1d):
    """Takes momentum=None for 1, so that only the last batch counts."""

    def _update_running(self, mean: Tensor, var: Tensor, count: int) -> None:
        given = self.momentum
        try:
            self.momentum = 1.0 if given is None else given
            super()._update_running(mean, var, count)
        finally:
            self.momentum = given
