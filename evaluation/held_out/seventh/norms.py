"""Wrong versions of the norms."""

import torch
from torch import Tensor, nn

from evaluation.held_out.definitions import held_out
from transformer_layers.norms.batch_norm import BatchNorm1d
from transformer_layers.norms.layer_norm import LayerNorm
from transformer_layers.norms.rms_norm import GemmaRMSNorm, LlamaRMSNorm
from transformer_layers.precision import at_least_float32
from transformer_layers.validation import (
    require_dtype,
    require_floating_dtype,
    require_last_axis,
    require_positive,
    require_size,
)

Device = torch.device | str | int | None


@held_out("BatchNorm1d", "review practice", r"count|num_batches|load|resum|state|momentum.*None")
class BatchNormCountingForItself(BatchNorm1d):
    """Without momentum, weighs by a count of its own that a loaded state does not change."""

    _batches = 0

    def reset_parameters(self) -> None:
        super().reset_parameters()
        self._batches = 0

    def _update_running(self, mean: Tensor, var: Tensor, count: int) -> None:
        if count == 0:
            return
        self.num_batches_tracked.add_(1)
        self._batches += 1
        share = 1 / self._batches if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), share)
        self.running_var.lerp_((var * count / (count - 1)).to(self.running_var.dtype), share)


@held_out("BatchNorm1d", "review practice", r"eval|running|buffer|inference|chang|update")
class BatchNormMovedByEvaluation(BatchNorm1d):
    """Moves its running averages in evaluation, too, after it has used the old ones."""

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        count = x.numel() // max(self.num_features, 1)
        if not self.training and count > 1:
            axes = [axis for axis in range(x.ndim) if axis != 1]
            wide = at_least_float32(x.detach())
            var, mean = torch.var_mean(wide, dim=axes, correction=0)
            self._update_running(mean, var, count)
        return y


@held_out("BatchNorm1d", "review practice", r"unbiased|running var|correction|n - 1|count|length")
class BatchNormCountingRows(BatchNorm1d):
    """Makes the running variance unbiased by the size of the batch, whatever the length."""

    def forward(self, x: Tensor) -> Tensor:
        self._rows = len(x)
        return super().forward(x)

    def _update_running(self, mean: Tensor, var: Tensor, count: int) -> None:
        if count > 0:
            rows = self._rows if self._rows > 1 else count
            var = var * (rows / (rows - 1)) * ((count - 1) / count)
        super()._update_running(mean, var, count)


class _PlainLayerNorm(nn.Module):
    """A layer norm, with a hook for each step."""

    def __init__(
        self,
        d_model: int,
        eps: float = 1e-5,
        bias: bool = True,
        *,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_size("d_model", d_model, minimum=0)
        require_positive("eps", eps)
        require_floating_dtype(dtype)
        self.d_model, self.eps = d_model, eps
        self.weight = nn.Parameter(torch.ones(d_model, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.zeros_like(self.weight)) if bias else None

    def reset_parameters(self) -> None:
        nn.init.ones_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        require_last_axis("x", x, "d_model", self.d_model)
        require_dtype("x", x, self.weight.dtype, low_precision_input=True)
        centered = self._centered(self._wide(x))
        var = centered.square().mean(dim=-1, keepdim=True)
        y = self.weight * (centered / torch.sqrt(var + self.eps))
        return self._narrow(y if self.bias is None else y + self.bias, x.dtype)

    def _wide(self, x: Tensor) -> Tensor:
        return at_least_float32(x)

    def _centered(self, x: Tensor) -> Tensor:
        once = x - x.mean(dim=-1, keepdim=True)
        return once - once.mean(dim=-1, keepdim=True)

    def _narrow(self, y: Tensor, dtype: torch.dtype) -> Tensor:
        return y.to(dtype)

    def extra_repr(self) -> str:
        return f"{self.d_model}, eps={self.eps}, bias={self.bias is not None}"


@held_out("LayerNorm", "review practice", r"constant|mean|rounding|large|offset|cent(er|re)|twice")
class LayerNormCenteredOnce(_PlainLayerNorm):
    """Subtracts the mean once, so that rounding is left over from a constant row near 1e5."""

    def _centered(self, x: Tensor) -> Tensor:
        return x - x.mean(dim=-1, keepdim=True)


@held_out("LayerNorm", "review practice", r"dtype|float32|promot|mixed|own dtype|bfloat16|half")
class LayerNormLeftWide(_PlainLayerNorm):
    """Returns the dtype of its parameters, float32, for bfloat16 input that meets them."""

    def _narrow(self, y: Tensor, dtype: torch.dtype) -> Tensor:
        return y.to(self.weight.dtype)


@held_out("LayerNorm", "review practice", r"float64|double|precision|float32")
class LayerNormThroughSingle(LayerNorm):
    """Computes in float32 whatever comes, so that float64 has seven digits only."""

    def forward(self, x: Tensor) -> Tensor:
        require_last_axis("x", x, "d_model", self.d_model)
        require_dtype("x", x, self.weight.dtype, low_precision_input=True)
        wide = x.float()
        centered = wide - wide.mean(dim=-1, keepdim=True)
        centered = centered - centered.mean(dim=-1, keepdim=True)
        var = centered.square().mean(dim=-1, keepdim=True)
        y = self.weight.float() * (centered / torch.sqrt(var + self.eps))
        return (y if self.bias is None else y + self.bias.float()).to(x.dtype)


class _PlainRMSNorm(nn.Module):
    """A root mean square norm, with a hook for the division."""

    def __init__(
        self,
        d_model: int,
        eps: float = 1e-6,
        *,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_size("d_model", d_model, minimum=0)
        require_positive("eps", eps)
        require_floating_dtype(dtype)
        self.d_model, self.eps = d_model, eps
        self.weight = nn.Parameter(torch.ones(d_model, device=device, dtype=dtype))

    def reset_parameters(self) -> None:
        nn.init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        require_last_axis("x", x, "d_model", self.d_model)
        require_dtype("x", x, self.weight.dtype, low_precision_input=True)
        wide = at_least_float32(x)
        root = torch.sqrt(wide.square().mean(dim=-1, keepdim=True) + self.eps)
        return (self.weight * self._divided(wide, root, x.dtype)).to(x.dtype)

    def _divided(self, x: Tensor, root: Tensor, dtype: torch.dtype) -> Tensor:
        return x / root

    def extra_repr(self) -> str:
        return f"{self.d_model}, eps={self.eps}"


@held_out("RMSNorm", "review practice", r"gradient|backward|detach|constant|derivative")
class RMSNormByAConstantRoot(_PlainRMSNorm):
    """Takes the root for a constant, so that the gradient does not pass through it."""

    def _divided(self, x: Tensor, root: Tensor, dtype: torch.dtype) -> Tensor:
        return x / root.detach()


@held_out("RMSNorm", "review practice", r"bfloat16|float16|half|low precision|round|dtype")
class RMSNormByARoundedRoot(_PlainRMSNorm):
    """Rounds the inverse of the root to the input's dtype before it multiplies."""

    def _divided(self, x: Tensor, root: Tensor, dtype: torch.dtype) -> Tensor:
        return x * (1 / root).to(dtype) if dtype in (torch.float16, torch.bfloat16) else x / root


@held_out("LlamaRMSNorm", "NVIDIA/TransformerEngine, issue 1132", r"round|bfloat16|half|gain|twice")
class LlamaNormByTorchsKernel(LlamaRMSNorm):
    """Calls torch's kernel, which multiplies by the gain before it rounds to bfloat16."""

    def forward(self, x: Tensor) -> Tensor:
        if x.dtype != self.weight.dtype:
            return super().forward(x)
        require_last_axis("x", x, "d_model", self.d_model)
        require_dtype("x", x, self.weight.dtype)
        wide = at_least_float32(x)
        gain = at_least_float32(self.weight)
        return nn.functional.rms_norm(wide, (self.d_model,), gain, self.eps).to(x.dtype)


@held_out("GemmaRMSNorm", "review practice", r"1 \+|one plus|bfloat16|half|float32|precision|\bsum")
class GemmaNormAddingOneInHalf(GemmaRMSNorm):
    """Adds 1 to the weight in the weight's own dtype, in which small weights are lost."""

    def _with_gain(self, x_hat: Tensor, dtype: torch.dtype) -> Tensor:
        return (at_least_float32(1 + self.weight) * x_hat).to(dtype)


@held_out("GemmaRMSNorm", "huggingface/transformers, pull 40449", r"initial|start|zeros|ones|reset")
class GemmaNormThatStartsAsTwice(GemmaRMSNorm):
    """Starts with a weight of ones, and so with a gain of two."""

    def reset_parameters(self) -> None:
        nn.init.ones_(self.weight)
