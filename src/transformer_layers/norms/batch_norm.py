"""Batch normalization."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer_layers.precision import at_least_float32
from transformer_layers.validation import (
    require_dtype,
    require_floating_dtype,
    require_positive,
    require_probability,
    require_size,
)


class BatchNorm1d(nn.Module):
    r"""Batch normalization, algorithms 1 and 2 of https://arxiv.org/abs/1502.03167.

    .. math::
        y = \gamma \frac{x - \mathrm{E}[x]}{\sqrt{\mathrm{Var}[x] + \epsilon}} + \beta

    In training, the mean and the (biased) variance of each channel are taken over axis 0 and all
    axes from 2 on. Running averages of the mean and of the *unbiased* variance are kept, and
    replace the batch's own in evaluation. float16 and bfloat16 input is normalized in float32 and
    returned in its own dtype, with parameters of that dtype or of float32.

    Input of two axes or more is taken: with four, `(batch, channels, height, width)`, it is
    `torch.nn.BatchNorm2d`. An empty batch returns as it came and leaves the buffers as they were.
    In training one NaN or infinity makes its whole channel NaN, and leaves that channel's running
    averages NaN or infinite from then on; in evaluation it reaches no other element.

    Args:
        num_features: Number of channels, the size of axis 1.
        eps: Added to the variance, :math:`\epsilon`; greater than 0, since a constant channel
            would be 0/0 without it.
        momentum: Share of the newest batch in the running averages; None for the plain average of
            all batches so far.
        device: Of the parameters and running averages; torch's default one if not given.
        dtype: Of the parameters and running averages; torch's default one if not given.

    Attributes:
        weight: :math:`\gamma`, shape `(num_features,)`, initially ones.
        bias: :math:`\beta`, shape `(num_features,)`, initially zeros.
        running_mean: Running average of the mean, shape `(num_features,)`, initially zeros.
        running_var: Running average of the unbiased variance, shape `(num_features,)`, initially
            ones.
        num_batches_tracked: Number of batches in the running averages, int64, initially 0.

    Raises:
        TypeError: If `num_features` is not an int.
        ValueError: If `num_features` is negative, `eps` is not greater than 0, or `momentum` is
            outside [0, 1].

    Examples:
        >>> batch_norm = BatchNorm1d(2)
        >>> x = torch.tensor([[1.0, 10.0], [2.0, 20.0], [3.0, 60.0]])
        >>> batch_norm(x).detach()
        tensor([[-1.2247, -0.9258],
                [ 0.0000, -0.4629],
                [ 1.2247,  1.3887]])
        >>> batch_norm.running_mean, batch_norm.running_var
        (tensor([0.2000, 3.0000]), tensor([ 1.0000, 70.9000]))
    """

    running_mean: Tensor
    running_var: Tensor
    num_batches_tracked: Tensor

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        *,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_size("num_features", num_features, minimum=0)
        require_positive("eps", eps)
        if momentum is not None:
            require_probability("momentum", momentum)
        require_floating_dtype(dtype)
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.weight = nn.Parameter(torch.empty(num_features, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.empty_like(self.weight))
        self.register_buffer("running_mean", torch.empty_like(self.weight))
        self.register_buffer("running_var", torch.empty_like(self.weight))
        self.register_buffer("num_batches_tracked", torch.tensor(0, device=device))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets the parameters and the running averages to their initial values."""
        nn.init.ones_(self.weight)
        nn.init.zeros_(self.bias)
        self.running_mean.zero_()
        self.running_var.fill_(1)
        self.num_batches_tracked.zero_()

    def forward(
        self, x: Float[Tensor, "batch channels *length"]
    ) -> Float[Tensor, "batch channels *length"]:
        """Normalizes each channel of `x`.

        Args:
            x: Shape `(batch, channels)` or `(batch, channels, length)`, or with further axes.

        Returns:
            The normalized input, of the shape and dtype of `x`.

        Raises:
            TypeError: If `x` is not floating point, or not of the parameters' dtype (float16 and
                bfloat16 may meet float32 parameters).
            ValueError: If `x` has fewer than two axes or not `num_features` channels, or, in
                training, a single value per channel, which has no variance.
        """
        self._check(x)
        wide = at_least_float32(x).movedim(1, -1)  # (batch, *length, channels)
        if self.training:
            axes = tuple(range(wide.ndim - 1))
            mean = wide.mean(dim=axes)
            rest = (wide - mean).mean(dim=axes)  # what rounding leaves of the mean
            centered = wide - mean - rest
            var = centered.square().mean(dim=axes)
            self._update_running((mean + rest).detach(), var.detach(), math.prod(wide.shape[:-1]))
        else:
            centered = wide - at_least_float32(self.running_mean)
            var = at_least_float32(self.running_var)
        x_hat = centered / torch.sqrt(var + self.eps)
        return (self.weight * x_hat + self.bias).movedim(-1, 1).to(x.dtype)

    def _update_running(
        self, mean: Float[Tensor, " channels"], var: Float[Tensor, " channels"], count: int
    ) -> None:
        if count == 0:
            return
        self.num_batches_tracked.add_(1)
        share: float | Tensor
        if self.momentum is None:
            # Not .item(), which would break compilation.
            share = 1 / self.num_batches_tracked.to(mean.dtype)
        else:
            share = self.momentum
        unbiased = var * (count / (count - 1))
        self.running_mean.copy_((1 - share) * self.running_mean + share * mean)
        self.running_var.copy_((1 - share) * self.running_var + share * unbiased)

    def _check(self, x: Float[Tensor, "..."]) -> None:
        shape = tuple(x.shape)
        if x.ndim < 2 or x.shape[1] != self.num_features:
            raise ValueError(
                f"x must have shape (batch, {self.num_features}) or (batch, {self.num_features}, "
                f"length), for num_features = {self.num_features}; got {shape}"
            )
        require_dtype("x", x, self.weight.dtype, low_precision_input=True)
        if self.training and x.shape[0] * math.prod(x.shape[2:]) == 1:
            raise ValueError(
                f"Expected more than 1 value per channel when training, got shape {shape}; pass a "
                "larger batch, or call .eval() to use the running averages"
            )

    def extra_repr(self) -> str:
        """The arguments, for `print`."""
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}"
