"""Known wrong versions of `BatchNorm1d`."""

import torch
from torch import Tensor, nn

from layer_checks.checks.batch_norm import batch_norm_1d
from transformer_layers.precision import at_least_float32


@batch_norm_1d.right_otherwise
class _BatchNorm1d(nn.Module):
    """A right one in small steps, of which each wrong version changes one."""

    running_mean: Tensor
    running_var: Tensor
    num_batches_tracked: Tensor

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1) -> None:
        super().__init__()
        self.eps = eps
        self.momentum = momentum
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))
        self.register_buffer("num_batches_tracked", torch.tensor(0))

    def forward(self, x: Tensor) -> Tensor:
        channels_last = self.wide(x).movedim(1, -1)
        mean, var = self.statistics(channels_last)
        x_hat = (channels_last - mean) / self.deviation(var)
        return self.affine(x_hat).movedim(-1, 1).to(x.dtype)

    def wide(self, x: Tensor) -> Tensor:
        return at_least_float32(x)

    def statistics(self, x: Tensor) -> tuple[Tensor, Tensor]:
        if not self.training:
            return self.running_mean, self.running_var
        mean, var = self.mean(x), self.variance(x)
        if self.counts(x):
            with torch.no_grad():
                self.update(mean, self.stored_variance(x))
        return mean, var

    def counts(self, x: Tensor) -> bool:
        return x.numel() > 0

    def axes(self, x: Tensor) -> tuple[int, ...]:
        return tuple(range(x.ndim - 1))

    def mean(self, x: Tensor) -> Tensor:
        return x.mean(dim=self.axes(x))

    def variance(self, x: Tensor) -> Tensor:
        return (x - self.mean(x)).square().mean(dim=self.axes(x))

    def stored_variance(self, x: Tensor) -> Tensor:
        return x.var(dim=self.axes(x))

    def share(self) -> float:
        return 1 / int(self.num_batches_tracked) if self.momentum is None else self.momentum

    def update(self, mean: Tensor, var: Tensor) -> None:
        self.num_batches_tracked += 1
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), self.share())
        self.running_var.lerp_(var.to(self.running_var.dtype), self.share())

    def deviation(self, var: Tensor) -> Tensor:
        return torch.sqrt(var + self.eps)

    def affine(self, x_hat: Tensor) -> Tensor:
        return self.weight * x_hat + self.bias


@batch_norm_1d.wrong(
    "divide the sum of squares by n in training; only the running average takes n - 1."
)
class NormalizesWithTheUnbiasedVariance(_BatchNorm1d):
    """Divides the sum of squares by n - 1 in training."""

    def variance(self, x: Tensor) -> Tensor:
        return x.var(dim=self.axes(x))


@batch_norm_1d.wrong(
    "average the unbiased variance, which divides by n - 1: it estimates that of all data.",
    published="labml, labml_nn/normalization/batch_norm/__init__.py; d2l, "
    "chapter_convolutional-modern/batch-norm.md",
)
class StoresTheBiasedVariance(_BatchNorm1d):
    """Averages the variance that it normalized with."""

    def stored_variance(self, x: Tensor) -> Tensor:
        return self.variance(x)


@batch_norm_1d.wrong("give the new batch the share `momentum`, and the old average 1 - momentum.")
class MomentumReversed(_BatchNorm1d):
    """Keeps a share of `momentum` of the old value."""

    def share(self) -> float:
        return 1 - super().share()


@batch_norm_1d.wrong("update running_mean and running_var in each training step.")
class RunningAveragesNeverUpdated(_BatchNorm1d):
    """Leaves the running averages as they were."""

    def update(self, mean: Tensor, var: Tensor) -> None:
        self.num_batches_tracked += 1


@batch_norm_1d.wrong("leave the buffers as they are in evaluation.")
class UpdatesInEvaluation(_BatchNorm1d):
    """Goes on averaging in evaluation."""

    def statistics(self, x: Tensor) -> tuple[Tensor, Tensor]:
        found = self.running_mean.clone(), self.running_var.clone()
        if self.training:
            return super().statistics(x)
        with torch.no_grad():
            self.update(self.mean(x), self.stored_variance(x))
        return found


@batch_norm_1d.wrong(
    "register the running averages as buffers: plain attributes are not saved or moved."
)
class RunningAveragesNotBuffers(_BatchNorm1d):
    """Keeps the running averages as plain attributes."""

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1) -> None:
        super().__init__(num_features, eps, momentum)
        averages = self.running_mean, self.running_var
        del self.running_mean, self.running_var
        self.running_mean, self.running_var = averages

    def statistics(self, x: Tensor) -> tuple[Tensor, Tensor]:
        self.running_mean = self.running_mean.to(x.dtype)
        self.running_var = self.running_var.to(x.dtype)
        return super().statistics(x)


@batch_norm_1d.wrong(
    "take the mean and the variance of each channel over the batch, not of each sample."
)
class OverTheFeatures(_BatchNorm1d):
    """Is layer normalization in training."""

    def statistics(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mean, var = super().statistics(x)
        if not self.training:
            return mean, var
        return x.mean(dim=-1, keepdim=True), x.var(dim=-1, correction=0, keepdim=True)


@batch_norm_1d.wrong(
    "subtract the mean first, then average the squares; two large numbers that nearly cancel "
    "leave only rounding errors.",
    name="E[x²] - E[x]²",
    published="labml, labml_nn/normalization/batch_norm/__init__.py",
)
class MeanOfSquaresMinusSquareOfMean(_BatchNorm1d):
    """Subtracts two large numbers that are nearly equal."""

    def variance(self, x: Tensor) -> Tensor:
        return x.square().mean(dim=self.axes(x)) - self.mean(x).square()


@batch_norm_1d.wrong("let the gradient flow through the variance too: no detach, no no_grad.")
class VarianceDetached(_BatchNorm1d):
    """Takes the variance for a constant."""

    def variance(self, x: Tensor) -> Tensor:
        return super().variance(x).detach()


@batch_norm_1d.wrong("add eps to the variance, under the root, not to the standard deviation.")
class EpsOutsideTheRoot(_BatchNorm1d):
    """Adds eps to the standard deviation."""

    def deviation(self, var: Tensor) -> Tensor:
        return var.sqrt() + self.eps


@batch_norm_1d.wrong("multiply by the weight and add the bias.", name="no gain, no bias")
class NoAffine(_BatchNorm1d):
    """Holds a weight and a bias and uses neither."""

    def affine(self, x_hat: Tensor) -> Tensor:
        return x_hat


@batch_norm_1d.wrong("convert float16 to float32 before squaring: 257² is infinite in float16.")
class StatisticsInHalfPrecision(_BatchNorm1d):
    """Squares in float16."""

    def wide(self, x: Tensor) -> Tensor:
        return x


@batch_norm_1d.wrong(
    "convert bfloat16 to float32 as well: it has eight binary digits for the mean.",
    published="torch, nn.BatchNorm1d on a CPU, with parameters in bfloat16",
)
class StatisticsInBfloat16(_BatchNorm1d):
    """Widens float16 alone."""

    def wide(self, x: Tensor) -> Tensor:
        return x.float() if x.dtype == torch.float16 else x


@batch_norm_1d.wrong(
    "update the running averages under no_grad, or detach: they keep the graph of every batch.",
    published="labml, labml_nn/normalization/batch_norm/__init__.py",
)
class RunningAveragesKeepTheGraph(_BatchNorm1d):
    """Averages means and variances with their graphs."""

    def statistics(self, x: Tensor) -> tuple[Tensor, Tensor]:
        if not self.training or not self.counts(x):
            return self.running_mean, self.running_var
        with torch.no_grad():
            self.num_batches_tracked += 1
        share, mean = self.share(), self.mean(x)
        stored = self.stored_variance(x).to(self.running_var.dtype)
        self.running_mean = (1 - share) * self.running_mean + share * mean.to(stored.dtype)
        self.running_var = (1 - share) * self.running_var + share * stored
        return mean, self.variance(x)


@batch_norm_1d.wrong("let eps be 1e-5 unless it is given.")
class AnotherDefaultEps(_BatchNorm1d):
    """Has another default for eps."""

    def __init__(self, num_features: int, eps: float = 1e-3, momentum: float | None = 0.1) -> None:
        super().__init__(num_features, eps, momentum)


@batch_norm_1d.wrong(
    "let reset_parameters() set the running averages and the number of batches as well."
)
class ResetLeavesTheBuffers(_BatchNorm1d):
    """Resets the weight and the bias, and keeps the averages of what it saw before."""

    def reset_parameters(self) -> None:
        nn.init.ones_(self.weight)
        nn.init.zeros_(self.bias)


@batch_norm_1d.wrong("leave the running averages as they were where a batch is empty.")
class AveragesAnEmptyBatch(_BatchNorm1d):
    """Counts a batch without elements, whose mean is NaN."""

    def counts(self, x: Tensor) -> bool:
        return True


@batch_norm_1d.wrong("return the dtype of the input, also where the parameters have another one.")
class DtypeOfTheParameters(_BatchNorm1d):
    """Returns the dtype of its weight."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(self.wide(x)).to(self.weight.dtype)
