"""Wrong norms."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from evaluation.held_out.definitions import held_out
from evaluation.held_out.first.norms import _LayerNorm, _RMSNorm, widened
from transformer_layers import BatchNorm1d, LayerNorm


@held_out("LayerNorm", "pyg-team/pytorch_geometric, issue 4030", "scalar|shape|share|each feature")
class OneGainForAllFeatures(LayerNorm):
    """Its gain and bias are of shape (1,), and broadcast."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.weight = nn.Parameter(self.weight.detach()[:1].clone())
        if self.bias is not None:
            self.bias = nn.Parameter(self.bias.detach()[:1].clone())


@held_out("LayerNorm", "xlite-dev/LeetCUDA, issue 309", "eps")
class EpsBesideTheWidth(_LayerNorm):
    """Adds eps to the width that the sum of squares is divided by, not to the variance."""

    def normalized(self, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        return centred / (centred.square().sum(-1, keepdim=True) / (self.d_model + self.eps)).sqrt()


@held_out("LayerNorm", "Oneflow-Inc/oneflow, pull request 6149", "gradient|backward|swap")
class GradientsOfGainAndBiasSwapped(_LayerNorm):
    """Gives the gain the gradient of the bias, and the bias that of the gain."""

    def forward(self, x: Tensor) -> Tensor:
        if self.bias is None:
            return super().forward(x)
        self._check(x)
        x_hat = self.normalized(widened(x))
        gain, bias = self.weight, self.bias
        y = gain.detach() * x_hat + bias.detach()
        zero = (gain - gain.detach()) + (bias - bias.detach()) * x_hat.detach()
        return (y + zero).to(x.dtype)


@held_out(
    "RMSNorm",
    "mosaicml/llm-foundry, issue 371",
    "rsqrt|root|inverse|inversion|multipli|multiply|divi",
)
class DividesByTheInverse(_RMSNorm):
    """Divides by the inverse root, that is, multiplies by the root mean square."""

    def normalized(self, x: Tensor) -> Tensor:
        x = widened(x)
        return x / torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps)


@held_out("RMSNorm", "apple/coremltools, issue 2821 and pull request 2822", "eps|largest|rescal")
class EpsGrowsWithTheLargest(_RMSNorm):
    """Divides by the largest value before eps is added, so that eps is multiplied by its square."""

    def normalized(self, x: Tensor) -> Tensor:
        x = widened(x)
        if x.numel() == 0:
            return x
        largest = x.abs().amax(-1, keepdim=True)
        mean_square = (x / largest).square().mean(-1, keepdim=True)
        return x / ((mean_square + self.eps).sqrt() * largest)


@held_out("BatchNorm1d", "torch/nn, issue 567", "inverse|inversion|deviation|std|root")
class InverseDeviationAveraged(BatchNorm1d):
    """Averages the inverse standard deviations of the batches, not their variances."""

    def _update_running(self, mean: Tensor, var: Tensor, count: int) -> None:
        old = self.running_var.clone()
        super()._update_running(mean, var, count)
        if count == 0:
            return
        counted = self.num_batches_tracked.to(mean.dtype)
        share = 1 / counted if self.momentum is None else self.momentum
        newest = (var * (count / (count - 1)) + self.eps).rsqrt()
        inverse = (1 - share) * (old + self.eps).rsqrt() + share * newest
        self.running_var.copy_(inverse**-2 - self.eps)


@held_out("BatchNorm1d", "discuss.pytorch.org, topic 96889", "channel|axis|axes|whole")
class OneMeanForAllChannels(BatchNorm1d):
    """In training takes one mean and one variance for all channels."""

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or x.numel() == 0:
            return super().forward(x)
        self._check(x)
        wide = widened(x).movedim(1, -1)
        mean = wide.mean()
        var = (wide - mean).square().mean()
        each = (self.num_features,)
        count = math.prod(wide.shape[:-1])
        self._update_running(mean.detach().expand(each), var.detach().expand(each), count)
        x_hat = (wide - mean) / (var + self.eps).sqrt()
        return (self.weight * x_hat + self.bias).movedim(-1, 1).to(x.dtype)
