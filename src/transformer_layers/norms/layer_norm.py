"""Layer normalization."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer_layers.precision import at_least_float32
from transformer_layers.validation import (
    require_dtype,
    require_floating_dtype,
    require_last_axis,
    require_positive,
    require_size,
)


class LayerNorm(nn.Module):
    r"""Layer normalization, equation 4 of https://arxiv.org/abs/1607.06450.

    .. math::
        y = \gamma \odot \frac{x - \mathrm{E}[x]}{\sqrt{\mathrm{Var}[x] + \epsilon}} + \beta

    The mean and the (biased) variance are taken over the last axis, for every position of the
    other axes by itself. float16 and bfloat16 input is normalized in float32 and returned in its
    own dtype, with parameters of that dtype or of float32.

    Equation 4 itself has no :math:`\epsilon`. A constant row gives :math:`\beta`: the mean is
    subtracted twice, since in float32 that of a row near 1e5 is off by more than
    :math:`\sqrt\epsilon`. A row whose squares overflow (values beyond about 1e19 in float32) gives
    :math:`\beta` too, where the exact answer would be a normalized row; one whose sum overflows
    gives NaN. Without the parameters, :math:`\gamma = 1` and :math:`\beta = 0`, input of any
    floating dtype is taken.

    Args:
        d_model: Size of the last axis.
        eps: Added to the variance, :math:`\epsilon`; greater than 0, since a constant row would be
            0/0 without it.
        bias: Whether to add :math:`\beta`.
        elementwise_affine: Whether there are a :math:`\gamma` and, with `bias`, a :math:`\beta`;
            OLMo's norms of https://arxiv.org/abs/2402.00838 have neither.
        device: Of the parameters; torch's default one if not given.
        dtype: Of the parameters; torch's default one if not given.

    Attributes:
        weight: :math:`\gamma`, shape `(d_model,)`, initially ones; None if
            `elementwise_affine=False`.
        bias: :math:`\beta`, shape `(d_model,)`, initially zeros; None if `bias=False` or
            `elementwise_affine=False`.

    Raises:
        TypeError: If `d_model` is not an int.
        ValueError: If `d_model` is negative or `eps` is not greater than 0.

    Examples:
        >>> layer_norm = LayerNorm(4)
        >>> layer_norm(torch.tensor([[1.0, 2.0, 3.0, 4.0]])).detach()
        tensor([[-1.3416, -0.4472,  0.4472,  1.3416]])
    """

    weight: nn.Parameter | None
    bias: nn.Parameter | None

    def __init__(
        self,
        d_model: int,
        eps: float = 1e-5,
        bias: bool = True,
        *,
        elementwise_affine: bool = True,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_size("d_model", d_model, minimum=0)
        require_positive("eps", eps)
        require_floating_dtype(dtype)
        self.d_model = d_model
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        for name, present in (("weight", True), ("bias", bias)):
            vector = torch.empty(d_model, device=device, dtype=dtype)
            parameter = nn.Parameter(vector) if elementwise_affine and present else None
            self.register_parameter(name, parameter)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets the parameters to their initial values."""
        if self.weight is not None:
            nn.init.ones_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Normalizes `x` over its last axis.

        Args:
            x: Shape `(..., d_model)`.

        Returns:
            The normalized input, of the shape and dtype of `x`.

        Raises:
            TypeError: If `x` is not floating point, or not of the parameters' dtype, if there are
                any (float16 and bfloat16 may meet float32 parameters).
            ValueError: If the last axis of `x` is not `d_model`.
        """
        require_last_axis("x", x, "d_model", self.d_model)
        dtype = None if self.weight is None else self.weight.dtype
        require_dtype("x", x, dtype, low_precision_input=True)
        wide = at_least_float32(x)
        centered = wide - wide.mean(dim=-1, keepdim=True)
        centered = centered - centered.mean(dim=-1, keepdim=True)  # what rounding left of it
        var = centered.square().mean(dim=-1, keepdim=True)  # faster than x.var
        y = centered / torch.sqrt(var + self.eps)
        if self.weight is not None:
            y = self.weight * y
        if self.bias is not None:
            y = y + self.bias
        return y.to(x.dtype)

    def extra_repr(self) -> str:
        """The arguments, for `print`."""
        parameters = (
            f"bias={self.bias is not None}"
            if self.elementwise_affine
            else "elementwise_affine=False"
        )
        return f"{self.d_model}, eps={self.eps}, {parameters}"
