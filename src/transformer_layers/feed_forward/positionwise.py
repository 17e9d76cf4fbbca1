"""The feed-forward layer of the 2017 Transformer."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer_layers.regularization.dropout import Dropout
from transformer_layers.validation import (
    dtype_taken_by,
    require_activation,
    require_dtype,
    require_floating_dtype,
    require_last_axis,
    require_probability,
    require_size,
)


class PositionwiseFeedForward(nn.Module):
    r"""Position-wise feed-forward network, equation 2 of https://arxiv.org/abs/1706.03762.

    .. math::
        \mathrm{FFN}(x) = \max(0,\, x W_1 + b_1)\, W_2 + b_2

    It maps the last axis, every position by itself. In training dropout acts on the result
    (section 5.4), and nowhere else; `torch.nn.TransformerEncoderLayer` has one more after the ReLU.
    Later models of this form have another activation in the place of the ReLU.

    Args:
        d_model: Size of the last axis of input and output.
        d_ff: Size between the two maps.
        dropout: Share of the result that is dropped in training.
        activation: What stands between the two maps, by element; the paper's is the ReLU.
        device: Of the parameters; torch's default one if not given.
        dtype: Of the parameters; torch's default one if not given.

    Attributes:
        linear1: `nn.Linear`, :math:`W_1^\top` of shape `(d_ff, d_model)` and :math:`b_1`.
        linear2: `nn.Linear`, :math:`W_2^\top` of shape `(d_model, d_ff)` and :math:`b_2`. Both are
            initially as `nn.Linear` draws them.

    Raises:
        TypeError: If a size is not an int, or `activation` is not a function.
        ValueError: If a size is below 1, or `dropout` is not within [0, 1].

    Examples:
        >>> import torch
        >>> feed_forward = PositionwiseFeedForward(d_model=1, d_ff=2).eval()
        >>> with torch.no_grad():
        ...     for parameter in feed_forward.parameters():
        ...         _ = parameter.fill_(1.0)
        >>> feed_forward(torch.tensor([[-3.0], [0.5]])).detach()
        tensor([[1.],
                [4.]])
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        dropout: float = 0.1,
        *,
        activation: Callable[[Tensor], Tensor] = torch.relu,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_size("d_model", d_model)
        require_size("d_ff", d_ff)
        require_probability("dropout", dropout)
        require_activation(activation)
        require_floating_dtype(dtype)
        self.d_model = d_model
        self.activation = activation
        self.linear1 = nn.Linear(d_model, d_ff, device=device, dtype=dtype)
        self.linear2 = nn.Linear(d_ff, d_model, device=device, dtype=dtype)
        self.dropout = Dropout(dropout)

    def reset_parameters(self) -> None:
        """Draws the parameters anew."""
        self.linear1.reset_parameters()
        self.linear2.reset_parameters()

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Maps the last axis of `x`.

        Args:
            x: Shape `(..., d_model)`.

        Returns:
            The shape of `x`.

        Raises:
            TypeError: If `x` is not of the parameters' dtype.
            ValueError: If the last axis of `x` is not `d_model`.
        """
        require_last_axis("x", x, "d_model", self.d_model)
        require_dtype("x", x, dtype_taken_by(self.linear1))
        return self.dropout(self.linear2(self.activation(self.linear1(x))))
