# ruff: noqa: D102 - the docstring of each class says what its one method changes
"""Known wrong versions of `BatchNorm1d`."""

import torch
from torch import Tensor, nn

from layer_checks.definitions import WrongVersion


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
        channels_last = x.movedim(1, -1)
        mean, var = self.statistics(channels_last)
        x_hat = (channels_last - mean) / self.deviation(var)
        return self.affine(x_hat).movedim(-1, 1)

    def statistics(self, x: Tensor) -> tuple[Tensor, Tensor]:
        if not self.training:
            return self.running_mean, self.running_var
        mean, var = self.mean(x), self.variance(x)
        with torch.no_grad():
            self.update(mean, self.stored_variance(x))
        return mean, var

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
        self.running_mean.lerp_(mean, self.share())
        self.running_var.lerp_(var, self.share())

    def deviation(self, var: Tensor) -> Tensor:
        return torch.sqrt(var + self.eps)

    def affine(self, x_hat: Tensor) -> Tensor:
        return self.weight * x_hat + self.bias


class NormalizesWithUnbiasedVariance(_BatchNorm1d):
    """Divides the sum of squares by n - 1 in training."""

    def variance(self, x: Tensor) -> Tensor:
        return x.var(dim=self.axes(x))


class StoresBiasedVariance(_BatchNorm1d):
    """Averages the variance that it normalized with."""

    def stored_variance(self, x: Tensor) -> Tensor:
        return self.variance(x)


class MomentumReversed(_BatchNorm1d):
    """Keeps a share of `momentum` of the old value."""

    def share(self) -> float:
        return 1 - super().share()


class MomentumNoneFixed(_BatchNorm1d):
    """Takes None for 0.1."""

    def share(self) -> float:
        return 0.1 if self.momentum is None else self.momentum


class NeverUpdated(_BatchNorm1d):
    """Leaves the running averages as they were."""

    def update(self, mean: Tensor, var: Tensor) -> None:
        self.num_batches_tracked += 1


class BatchStatisticsInEvaluation(_BatchNorm1d):
    """Normalizes with the batch's own statistics in evaluation."""

    def statistics(self, x: Tensor) -> tuple[Tensor, Tensor]:
        if self.training:
            return super().statistics(x)
        return self.mean(x), self.variance(x)


class RunningStatisticsInTraining(_BatchNorm1d):
    """Normalizes with the running averages in training."""

    def statistics(self, x: Tensor) -> tuple[Tensor, Tensor]:
        super().statistics(x)
        return self.running_mean.clone(), self.running_var.clone()


class UpdatesInEvaluation(_BatchNorm1d):
    """Goes on averaging in evaluation."""

    def statistics(self, x: Tensor) -> tuple[Tensor, Tensor]:
        found = self.running_mean.clone(), self.running_var.clone()
        if self.training:
            return super().statistics(x)
        with torch.no_grad():
            self.update(self.mean(x), self.stored_variance(x))
        return found


class NotBuffers(_BatchNorm1d):
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


class OverFeatures(_BatchNorm1d):
    """Is layer normalization in training."""

    def statistics(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mean, var = super().statistics(x)
        if not self.training:
            return mean, var
        return x.mean(dim=-1, keepdim=True), x.var(dim=-1, correction=0, keepdim=True)


class EachPositionOfTheLength(_BatchNorm1d):
    """Averages over axis 0 alone where there is a length."""

    def statistics(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mean, var = super().statistics(x)
        if not self.training:
            return mean, var
        return x.mean(dim=0), x.var(dim=0, correction=0)


class MeanOfSquaresMinusSquareOfMean(_BatchNorm1d):
    """Subtracts two large numbers that are nearly equal."""

    def variance(self, x: Tensor) -> Tensor:
        return x.square().mean(dim=self.axes(x)) - self.mean(x).square()


class VarianceDetached(_BatchNorm1d):
    """Takes the variance for a constant."""

    def variance(self, x: Tensor) -> Tensor:
        return super().variance(x).detach()


class EpsOutsideTheRoot(_BatchNorm1d):
    """Adds eps to the standard deviation."""

    def deviation(self, var: Tensor) -> Tensor:
        return var.sqrt() + self.eps


class NoAffine(_BatchNorm1d):
    """Holds a weight and a bias and uses neither."""

    def affine(self, x_hat: Tensor) -> Tensor:
        return x_hat


WRONG_BATCH_NORMS = (
    WrongVersion(
        "normalizes with the unbiased variance",
        "divide the sum of squares by n in training; only the running average takes n - 1.",
        NormalizesWithUnbiasedVariance,
    ),
    WrongVersion(
        "stores the biased variance",
        "average the unbiased variance, which divides by n - 1: it estimates that of all data.",
        StoresBiasedVariance,
        "labml, labml_nn/normalization/batch_norm/__init__.py; d2l, "
        "chapter_convolutional-modern/batch-norm.md",
    ),
    WrongVersion(
        "momentum reversed",
        "give the new batch the share `momentum`, and the old average 1 - momentum.",
        MomentumReversed,
    ),
    WrongVersion(
        "momentum=None ignored",
        "with momentum=None, take the plain average: give batch number k the share 1/k.",
        MomentumNoneFixed,
    ),
    WrongVersion(
        "running averages never updated",
        "update running_mean and running_var in each training step.",
        NeverUpdated,
    ),
    WrongVersion(
        "batch statistics in evaluation",
        "use running_mean and running_var in evaluation.",
        BatchStatisticsInEvaluation,
    ),
    WrongVersion(
        "running statistics in training",
        "use the batch's own mean and variance in training, with their gradients.",
        RunningStatisticsInTraining,
    ),
    WrongVersion(
        "updates in evaluation",
        "leave the buffers as they are in evaluation.",
        UpdatesInEvaluation,
    ),
    WrongVersion(
        "running averages not buffers",
        "register the running averages as buffers: plain attributes are not saved or moved.",
        NotBuffers,
    ),
    WrongVersion(
        "over the features",
        "take the mean and the variance of each channel over the batch, not of each sample.",
        OverFeatures,
    ),
    WrongVersion(
        "each position of the length by itself",
        "with input (batch, channels, length), average over batch and length.",
        EachPositionOfTheLength,
    ),
    WrongVersion(
        "E[x²] - E[x]²",
        "subtract the mean first, then average the squares; two large numbers that nearly cancel "
        "leave only rounding errors.",
        MeanOfSquaresMinusSquareOfMean,
        "labml, labml_nn/normalization/batch_norm/__init__.py",
    ),
    WrongVersion(
        "variance detached",
        "let the gradient flow through the variance too: no detach, no no_grad.",
        VarianceDetached,
    ),
    WrongVersion(
        "eps outside the root",
        "add eps to the variance, under the root, not to the standard deviation.",
        EpsOutsideTheRoot,
    ),
    WrongVersion("no gain, no bias", "multiply by the weight and add the bias.", NoAffine),
)
