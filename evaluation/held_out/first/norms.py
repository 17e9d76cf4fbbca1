"""Wrong norms."""

from typing import Any

import torch
from torch import Tensor

from evaluation.held_out.definitions import held_out
from transformer_layers import BatchNorm1d, LayerNorm, RMSNorm


def widened(x: Tensor) -> Tensor:
    """The input, in float32 at least."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


class _LayerNorm(LayerNorm):
    """The layer, with the statistics and the division as a step that can be changed."""

    def forward(self, x: Tensor) -> Tensor:
        self._check(x)
        y = self.weight * self.normalized(widened(x))
        return (y if self.bias is None else y + self.bias).to(x.dtype)

    def _check(self, x: Tensor) -> None:
        super().forward(x.detach()[..., :1, :] if x.ndim > 1 else x.detach())  # its errors

    def normalized(self, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        return centred / (centred.square().mean(-1, keepdim=True) + self.eps).sqrt()


class _RMSNorm(RMSNorm):
    """The layer, with the division as a step that can be changed."""

    def forward(self, x: Tensor) -> Tensor:
        super().forward(x.detach())  # its errors
        return (self.weight * self.normalized(x)).to(x.dtype)

    def normalized(self, x: Tensor) -> Tensor:
        x = widened(x)
        return x / (x.square().mean(-1, keepdim=True) + self.eps).sqrt()


@held_out("LayerNorm", "131250208/TPlinker-joint-extraction, issue 37", "root|square|power|std")
class SquareForRoot(_LayerNorm):
    """Divides by the square of the variance in place of its root."""

    def normalized(self, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        return centred / (centred.square().mean(-1, keepdim=True) + self.eps) ** 2


@held_out("LayerNorm", "hyunwoongko/transformer, issue 7", "root|unbiased|std|eps")
class RootOfDeviation(_LayerNorm):
    """Takes the root of the standard deviation plus eps, a root too many."""

    def normalized(self, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        return centred / (x.std(-1, keepdim=True) + self.eps).sqrt()


@held_out("LayerNorm", "reczoo/FuxiCTR, issue 23", "axis|axes|last")
class LastTwoAxes(_LayerNorm):
    """Takes mean and variance over the last two axes together."""

    def normalized(self, x: Tensor) -> Tensor:
        axes = (-2, -1) if x.ndim > 1 else (-1,)
        centred = x - x.mean(axes, keepdim=True)
        return centred / (centred.square().mean(axes, keepdim=True) + self.eps).sqrt()


@held_out(
    "LayerNorm",
    "graphcore-research/out-of-the-box-fp8-training, pull request 6 (patch of nanoGPT)",
    "gain|weight",
)
class GainGoesWithBias(LayerNorm):
    """With bias=False it has no gain either."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.bias is None:
            self.register_buffer("gain", self.weight.detach().clone(), persistent=False)
            del self.weight
            self.register_parameter("weight", None)

    def forward(self, x: Tensor) -> Tensor:
        if self.bias is not None:
            return super().forward(x)
        return torch.nn.functional.layer_norm(x, (self.d_model,), eps=self.eps)


@held_out("RMSNorm", "jingyaogong/minimind, issue 301", "half|float16|float32|precision|wid")
class SquaresNotWidened(_RMSNorm):
    """Widens the numerator, and squares and averages in half precision."""

    def normalized(self, x: Tensor) -> Tensor:
        return widened(x) * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)


@held_out(
    "RMSNorm", "stanford-cs336/assignment1-basics, issue 93", "mean|cent|std|subtract|varianc"
)
class RootOfStd(_RMSNorm):
    """Divides by the root of the standard deviation plus eps."""

    def normalized(self, x: Tensor) -> Tensor:
        x = widened(x)
        return x / (x.std(-1, keepdim=True) + self.eps).sqrt()


@held_out("RMSNorm", "lucidrains/x-transformers, RMSNorm before 1.0: norm.clamp(min=eps)", "eps")
class EpsAsFloor(_RMSNorm):
    """Takes eps for the least value of the root mean square, and does not add it."""

    def normalized(self, x: Tensor) -> Tensor:
        x = widened(x)
        return x / x.square().mean(-1, keepdim=True).sqrt().clamp(min=self.eps)


@held_out(
    "RMSNorm", "bkitano/llama-from-scratch, llama.ipynb: norm over axes 1 and 2", "axis|axes|last"
)
class OverPositionsToo(_RMSNorm):
    """Takes one mean of squares for all positions of a sequence."""

    def normalized(self, x: Tensor) -> Tensor:
        x = widened(x)
        axes = tuple(range(max(x.ndim - 2, 0), x.ndim))
        return x / (x.square().mean(axes, keepdim=True) + self.eps).sqrt()


@held_out("BatchNorm1d", "keras-team/keras-contrib, pull request 287", "eps|running")
class EpsInRunningVariance(BatchNorm1d):
    """Keeps the running average of the variance plus eps."""

    def _update_running(self, mean: Tensor, var: Tensor, count: int) -> None:
        super()._update_running(mean, var + self.eps, count)


@held_out("BatchNorm1d", "bonlime/pytorch-tools, issue 97", "running|momentum|average|share")
class BothTimesMomentum(BatchNorm1d):
    """Multiplies the old average by the momentum, not by what is left of one."""

    def _update_running(self, mean: Tensor, var: Tensor, count: int) -> None:
        share = self.momentum
        if share is None:
            super()._update_running(mean, var, count)
            return
        old = self.running_mean.clone(), self.running_var.clone()
        super()._update_running(mean, var, count)
        for now, before in zip((self.running_mean, self.running_var), old, strict=True):
            now.sub_((1 - 2 * share) * before)


@held_out("BatchNorm1d", "paiml/aprender, pull request 2166", "running|update")
class RunningNeverWritten(BatchNorm1d):
    """Leaves the running averages as they were, and counts batches."""

    def _update_running(self, mean: Tensor, var: Tensor, count: int) -> None:
        self.num_batches_tracked.add_(1 if count else 0)


@held_out("BatchNorm1d", "NVIDIA/apex, pull request 380", "count|tracked|batches")
class BatchesNotCounted(BatchNorm1d):
    """Does not count the batches, so that momentum=None keeps the newest one only."""

    def _update_running(self, mean: Tensor, var: Tensor, count: int) -> None:
        super()._update_running(mean, var, count)
        self.num_batches_tracked.zero_()


@held_out(
    "BatchNorm1d", "pytorch/pytorch, issue 16793 (track_running_stats=False)", "eval|training"
)
class BatchOfEvaluation(BatchNorm1d):
    """Once loaded from a state dict, takes the batch's own statistics in evaluation."""

    loaded = False

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        super()._load_from_state_dict(*args, **kwargs)
        self.loaded = True

    def forward(self, x: Tensor) -> Tensor:
        if self.training or not self.loaded or x.shape[0] < 2:
            return super().forward(x)
        self.training = True
        kept = {name: buffer.clone() for name, buffer in self.named_buffers()}
        try:
            return super().forward(x)
        finally:
            self.training = False
            for name, buffer in self.named_buffers():
                buffer.copy_(kept[name])
