"""Gated feed-forward layers: one projection decides how much of another passes."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer_layers.validation import (
    dtype_taken_by,
    require_activation,
    require_dtype,
    require_floating_dtype,
    require_last_axis,
    require_size,
)

Activation = Callable[[Tensor], Tensor]


class GatedFeedForward(nn.Module):
    r"""A feed-forward layer with a gate, https://arxiv.org/abs/2002.05202, equation 6.

    .. math::
        y = \bigl(f(x W_{gate}) \odot x W_{up}\bigr) W_{down}

    With Swish-1, which torch calls `silu`, it is SwiGLU, with GELU it is GEGLU, with ReLU ReGLU.
    The names are those of Llama's weights in `transformers`.

    Args:
        d_model: Size of the last axis of input and output.
        d_ff: Size between the maps; a third less than without a gate costs the same.
        activation: What the gate goes through, :math:`f`.
        bias: Whether the three maps have one; the paper's have none.
        device: Of the parameters; torch's default one if not given.
        dtype: Of the parameters; torch's default one if not given.

    Attributes:
        gate_proj: `nn.Linear`, :math:`W_{gate}^\top` of shape `(d_ff, d_model)`.
        up_proj: `nn.Linear`, :math:`W_{up}^\top` of shape `(d_ff, d_model)`.
        down_proj: `nn.Linear`, :math:`W_{down}^\top` of shape `(d_model, d_ff)`. All are initially
            as `nn.Linear` draws them.

    Raises:
        TypeError: If a size is not an int, or `activation` is not a function.
        ValueError: If a size is below 1.

    Examples:
        >>> import torch
        >>> reglu = GatedFeedForward(d_model=1, d_ff=2, activation=torch.relu)
        >>> with torch.no_grad():
        ...     for parameter in reglu.parameters():
        ...         _ = parameter.fill_(1.0)
        >>> reglu(torch.tensor([[-3.0], [0.5]])).detach()
        tensor([[0.0000],
                [0.5000]])
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        activation: Activation = nn.functional.silu,
        bias: bool = False,
        *,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_size("d_model", d_model)
        require_size("d_ff", d_ff)
        require_activation(activation)
        require_floating_dtype(dtype)
        self.d_model = d_model
        self.activation = activation
        self.gate_proj = nn.Linear(d_model, d_ff, bias, device=device, dtype=dtype)
        self.up_proj = nn.Linear(d_model, d_ff, bias, device=device, dtype=dtype)
        self.down_proj = nn.Linear(d_ff, d_model, bias, device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draws the parameters anew."""
        self.gate_proj.reset_parameters()
        self.up_proj.reset_parameters()
        self.down_proj.reset_parameters()

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
        require_dtype("x", x, dtype_taken_by(self.gate_proj))
        return self.down_proj(self.activation(self.gate_proj(x)) * self.up_proj(x))


class PackedGatedFeedForward(nn.Module):
    r""":class:`GatedFeedForward` with both maps in one matrix, the gate's rows first.

    So Phi-3's weights are stored. `torch.nn.functional.glu` takes the second half as the gate.
    Arguments and errors are those of :class:`GatedFeedForward`.

    Attributes:
        gate_up_proj: `nn.Linear` of weight :math:`[W_{gate}\; W_{up}]^\top`, shape
            `(2 * d_ff, d_model)`.
        down_proj: `nn.Linear`, :math:`W_{down}^\top` of shape `(d_model, d_ff)`.

    Examples:
        >>> import torch
        >>> apart, packed = GatedFeedForward(3, 4), PackedGatedFeedForward(3, 4)
        >>> both = torch.cat([apart.gate_proj.weight, apart.up_proj.weight])
        >>> weights = {"gate_up_proj.weight": both, "down_proj.weight": apart.down_proj.weight}
        >>> _ = packed.load_state_dict(weights)
        >>> x = torch.randn(5, 3)
        >>> torch.allclose(packed(x), apart(x), atol=1e-6)
        True
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        activation: Activation = nn.functional.silu,
        bias: bool = False,
        *,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_size("d_model", d_model)
        require_size("d_ff", d_ff)
        require_activation(activation)
        require_floating_dtype(dtype)
        self.d_model = d_model
        self.activation = activation
        self.gate_up_proj = nn.Linear(d_model, 2 * d_ff, bias, device=device, dtype=dtype)
        self.down_proj = nn.Linear(d_ff, d_model, bias, device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draws the parameters anew."""
        self.gate_up_proj.reset_parameters()
        self.down_proj.reset_parameters()

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Maps the last axis of `x`; see :meth:`GatedFeedForward.forward`."""
        require_last_axis("x", x, "d_model", self.d_model)
        require_dtype("x", x, dtype_taken_by(self.gate_up_proj))
        gate, up = self.gate_up_proj(x).chunk(2, dim=-1)
        return self.down_proj(self.activation(gate) * up)
