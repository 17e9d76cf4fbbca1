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
    replace the batch's own in evaluation. With the momentum :math:`\alpha`, and :math:`n` values
    of a channel in a batch, they are

    .. math::
        \mu &\leftarrow (1 - \alpha)\, \mu + \alpha\, \mathrm{E}[x] \\
        \sigma^2 &\leftarrow (1 - \alpha)\, \sigma^2
            + \alpha\, \tfrac{n}{n - 1} \mathrm{Var}[x]

    float16 and bfloat16 input is normalized in float32 and
    returned in its own dtype, with parameters of that dtype or of float32.

    Input of two axes or more is taken: with four, `(batch, channels, height, width)`, it is
    `torch.nn.BatchNorm2d`. An empty batch returns as it came and leaves the buffers as they were.
    In training one NaN or infinity makes its whole channel NaN, and leaves that channel's running
    averages NaN or infinite from then on; in evaluation it reaches no other element.

    Without running averages the batch's own mean and variance are taken in evaluation, too. If
    `track_running_stats` is set to False later, they stay as they are, and evaluation goes on with
    them. A layer of neither parameters nor running averages takes input of any floating dtype.

    Args:
        num_features: Number of channels, the size of axis 1.
        eps: Added to the variance, :math:`\epsilon`; greater than 0, since a constant channel
            would be 0/0 without it.
        momentum: Share of the newest batch in the running averages, :math:`\alpha`; None for the
            plain average of all batches so far.
        affine: Whether there are a :math:`\gamma` and a :math:`\beta`.
        track_running_stats: Whether running averages are kept.
        device: Of the parameters and running averages; torch's default one if not given.
        dtype: Of the parameters and running averages; torch's default one if not given.

    Attributes:
        weight: :math:`\gamma`, shape `(num_features,)`, initially ones; None if `affine=False`, as
            is the bias.
        bias: :math:`\beta`, shape `(num_features,)`, initially zeros.
        running_mean: Running average of the mean, shape `(num_features,)`, initially zeros; None if
            `track_running_stats=False`, as are the other two.
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

    weight: nn.Parameter | None
    bias: nn.Parameter | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        *,
        affine: bool = True,
        track_running_stats: bool = True,
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
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name in ("weight", "bias"):
            vector = torch.empty(num_features, device=device, dtype=dtype)
            self.register_parameter(name, nn.Parameter(vector) if affine else None)
        for name in ("running_mean", "running_var"):
            vector = torch.empty(num_features, device=device, dtype=dtype)
            self.register_buffer(name, vector if track_running_stats else None)
        count = torch.tensor(0, device=device)
        self.register_buffer("num_batches_tracked", count if track_running_stats else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets the parameters and the running averages to their initial values."""
        if self.weight is not None:
            nn.init.ones_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)
        if self.running_mean is not None:
            self.running_mean.zero_()
        if self.running_var is not None:
            self.running_var.fill_(1)
        if self.num_batches_tracked is not None:
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
            TypeError: If `x` is not floating point, or not of the dtype of the parameters, or of
                the running averages if there are no parameters (float16 and bfloat16 may meet
                float32).
            ValueError: If `x` has fewer than two axes or not `num_features` channels, or, in
                training or without running averages, a single value per channel, which has no
                variance.
        """
        self._check(x)
        wide = at_least_float32(x).movedim(1, -1)  # (batch, *length, channels)
        if self.training or self.running_mean is None or self.running_var is None:
            axes = tuple(range(wide.ndim - 1))
            mean = wide.mean(dim=axes)
            rest = (wide - mean).mean(dim=axes)  # what rounding leaves of the mean
            centered = wide - mean - rest
            var = centered.square().mean(dim=axes)
            self._update_running((mean + rest).detach(), var.detach(), math.prod(wide.shape[:-1]))
        else:
            centered = wide - at_least_float32(self.running_mean)
            var = at_least_float32(self.running_var)
        y = centered / torch.sqrt(var + self.eps)
        if self.weight is not None and self.bias is not None:
            y = self.weight * y + self.bias
        return y.movedim(-1, 1).to(x.dtype)

    def _update_running(
        self, mean: Float[Tensor, " channels"], var: Float[Tensor, " channels"], count: int
    ) -> None:
        if count == 0 or not self.track_running_stats or self.num_batches_tracked is None:
            return
        if self.running_mean is None or self.running_var is None:
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
        if self.weight is not None:
            require_dtype("x", x, self.weight.dtype, low_precision_input=True)
        else:
            dtype = None if self.running_mean is None else self.running_mean.dtype
            require_dtype("x", x, dtype, low_precision_input=True, of="running averages")
        of_batch = self.training or self.running_mean is None
        if of_batch and x.shape[0] * math.prod(x.shape[2:]) == 1:
            if self.running_mean is None:
                when, remedy = "without running averages", ""
            else:
                when, remedy = "when training", ", or call .eval() to use the running averages"
            raise ValueError(
                f"Expected more than 1 value per channel {when}, got shape {shape}; pass a larger "
                f"batch{remedy}"
            )

    def extra_repr(self) -> str:
        """The arguments, for `print`."""
        absent = [name for name in ("affine", "track_running_stats") if not getattr(self, name)]
        options = "".join(f", {name}=False" for name in absent)
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}{options}"
