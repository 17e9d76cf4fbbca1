"""Wrong norms."""

import math

import torch
from torch import Tensor, nn

import transformer_layers
from evaluation.held_out.definitions import held_out
from transformer_layers.precision import at_least_float32
from transformer_layers.validation import require_dtype, require_last_axis


@held_out("LayerNorm", "tracel-ai/burn, issue 5607", "cancel|large|mean of (the )?squares|one pass")
class SquaresOfWhatIsNotCentered(transformer_layers.LayerNorm):
    """In float32 takes the variance as the mean of the squares less the square of the mean."""

    def forward(self, x: Tensor) -> Tensor:
        wide = at_least_float32(x)
        if wide.dtype != torch.float32:
            return super().forward(x)
        require_last_axis("x", x, "d_model", self.d_model)
        require_dtype("x", x, self.weight.dtype, low_precision_input=True)
        mean = wide.mean(dim=-1, keepdim=True)
        var = wide.square().mean(dim=-1, keepdim=True) - mean.square()
        y = self.weight * ((wide - mean) / torch.sqrt(var + self.eps))
        return (y if self.bias is None else y + self.bias).to(x.dtype)


@held_out(
    "LayerNorm", "microsoft/DirectML, issue 588", "contiguous|stride|transpose|permute|memory"
)
class TurnedAxesAsTheyLie(transformer_layers.LayerNorm):
    """Reads an input whose axes were exchanged in the order of its memory."""

    def forward(self, x: Tensor) -> Tensor:
        reach = 1 + sum(
            (size - 1) * stride for size, stride in zip(x.shape, x.stride(), strict=True)
        )
        if x.is_contiguous() or reach != x.numel():  # not all of a piece of memory
            return super().forward(x)
        strides = torch.empty(x.shape, device="meta").stride()
        return super().forward(torch.as_strided(x, x.shape, strides))


@held_out("RMSNorm", "google-research/timesfm, pull request 481", "start|initial|zero|ones")
class GainStartsAtZero(transformer_layers.RMSNorm):
    """Starts with a gain of zeros."""

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.weight)


@held_out("RMSNorm", "google/gemma_pytorch, pull request 67", "round|half|float16|precision|dtype")
class RoundedBeforeTheGain(transformer_layers.RMSNorm):
    """Rounds to the dtype of the input before it multiplies by the gain."""

    def forward(self, x: Tensor) -> Tensor:
        require_last_axis("x", x, "d_model", self.d_model)
        require_dtype("x", x, self.weight.dtype, low_precision_input=True)
        wide = at_least_float32(x)
        x_hat = wide / torch.sqrt(wide.square().mean(dim=-1, keepdim=True) + self.eps)
        return (self.weight * x_hat.to(x.dtype)).to(x.dtype)


@held_out("BatchNorm1d", "pytorch/pytorch, issue 12013", "empty|no (element|value|sample)|nan")
class EmptyBatchInTheAverages(transformer_layers.BatchNorm1d):
    """Takes the mean of an empty batch, which is NaN, into the running averages."""

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        if self.training and math.prod((x.shape[0], *x.shape[2:])) == 0:
            self.num_batches_tracked.add_(1)
            share = 1 / self.num_batches_tracked if self.momentum is None else self.momentum
            self.running_mean.mul_(1 - share).add_(share * torch.nan)
            self.running_var.mul_(1 - share)
        return y


@held_out(
    "BatchNorm1d", "apple/coreai-torch, pull request 54", "half|float16|precision|widen|dtype"
)
class AveragesMadeHalf(transformer_layers.BatchNorm1d):
    """In evaluation makes parameters and running averages as narrow as float16 input is."""

    def forward(self, x: Tensor) -> Tensor:
        if self.training or x.dtype != torch.float16:
            return super().forward(x)
        self._check(x)
        mean, var, weight, bias = (
            each.to(x.dtype)
            for each in (self.running_mean, self.running_var, self.weight, self.bias)
        )
        x_hat = (x.movedim(1, -1) - mean) / torch.sqrt(var + self.eps)
        return (weight * x_hat + bias).movedim(-1, 1)
