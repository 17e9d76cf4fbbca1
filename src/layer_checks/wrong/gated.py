"""Known wrong versions of `GatedFeedForward` and of its packed form."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from layer_checks.checks.gated import gated_feed_forward, packed_gated_feed_forward


@gated_feed_forward.right_otherwise
class _Gated(nn.Module):
    """A right one in small steps, of which each wrong version changes one."""

    bias = False

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        activation: Callable[[Tensor], Tensor] | None = None,
        bias: bool = False,
    ) -> None:
        super().__init__()
        self.given = activation
        self.gate_proj = nn.Linear(d_model, d_ff, bias=bias or self.bias)
        self.up_proj = nn.Linear(d_model, d_ff, bias=bias or self.bias)
        self.down_proj = nn.Linear(d_ff, d_model, bias=bias or self.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(self.joined(self.gate_proj(x), self.up_proj(x)))

    def joined(self, gate: Tensor, up: Tensor) -> Tensor:
        return self.activation(gate) * up

    def activation(self, x: Tensor) -> Tensor:
        return functional.silu(x) if self.given is None else self.given(x)


@gated_feed_forward.wrong("take the activation that is given, SiLU where none is.")
class ActivationIgnored(_Gated):
    """Takes SiLU whatever is given."""

    def activation(self, x: Tensor) -> Tensor:
        return functional.silu(x)


@gated_feed_forward.wrong(
    "send the gate through the activation, not what passes it: w1 and w3 of Llama's own code are "
    "gate and up.",
    name="gate and up exchanged",
)
class GateAndUpExchanged(_Gated):
    """Sends what passes through the activation."""

    def joined(self, gate: Tensor, up: Tensor) -> Tensor:
        return gate * self.activation(up)


@gated_feed_forward.wrong("send the gate through the activation: without it the layer is bilinear.")
class Bilinear(_Gated):
    """Multiplies two linear maps."""

    def activation(self, x: Tensor) -> Tensor:
        return x


@gated_feed_forward.wrong(
    "take Swish, x times sigmoid(x): the bare sigmoid is the gate of the first GLU.",
    name="sigmoid for SiLU",
)
class SigmoidForSilu(_Gated):
    """Gates with a sigmoid."""

    def activation(self, x: Tensor) -> Tensor:
        return x.sigmoid()


@gated_feed_forward.wrong("take SiLU: GELU makes a GEGLU of it.", name="GELU for SiLU")
class GeluForSilu(_Gated):
    """Gates with GELU, as Gemma does."""

    def activation(self, x: Tensor) -> Tensor:
        return functional.gelu(x)


@gated_feed_forward.wrong("multiply the gate and what passes it: they are not added.")
class Added(_Gated):
    """Adds the gate to what it should multiply."""

    def joined(self, gate: Tensor, up: Tensor) -> Tensor:
        return self.activation(gate) + up


@gated_feed_forward.wrong("send the gate alone through the activation.")
class BothActivated(_Gated):
    """Sends both through the activation."""

    def joined(self, gate: Tensor, up: Tensor) -> Tensor:
        return self.activation(gate) * self.activation(up)


@gated_feed_forward.wrong(
    "multiply first, then map: the activation is of the gate, not of the product."
)
class ProductActivated(_Gated):
    """Sends the product through the activation."""

    def joined(self, gate: Tensor, up: Tensor) -> Tensor:
        return self.activation(gate * up)


@gated_feed_forward.wrong("add nothing to what passes: up + 1 belongs to gpt-oss.", name="up + 1")
class OneMore(_Gated):
    """Adds 1 to what passes, as gpt-oss does."""

    def joined(self, gate: Tensor, up: Tensor) -> Tensor:
        return self.activation(gate) * (up + 1)


@gated_feed_forward.wrong("leave out the biases: the three maps have none.")
class WithBiases(_Gated):
    """Has biases."""

    bias = True


@gated_feed_forward.wrong("return the map alone: the block adds x.")
class ResidualInside(_Gated):
    """Adds the input."""

    def forward(self, x: Tensor) -> Tensor:
        return x + super().forward(x)


@packed_gated_feed_forward.right_otherwise
class _Packed(nn.Module):
    """A right one in small steps, of which each wrong version changes one."""

    bias = False

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        activation: Callable[[Tensor], Tensor] = functional.silu,
        bias: bool = False,
    ) -> None:
        super().__init__()
        self.activation = activation
        self.gate_up_proj = nn.Linear(d_model, 2 * d_ff, bias=bias or self.bias)
        self.down_proj = nn.Linear(d_ff, d_model, bias=bias or self.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(self.joined(*self.cut(self.gate_up_proj(x))))

    def cut(self, both: Tensor) -> tuple[Tensor, ...]:
        return both.chunk(2, dim=-1)

    def joined(self, gate: Tensor, up: Tensor) -> Tensor:
        return self.activation(gate) * up


@packed_gated_feed_forward.wrong(
    "take the activation that is given, SiLU where none is.", name="activation ignored"
)
class PackedActivationIgnored(_Packed):
    """Takes SiLU whatever is given."""

    def joined(self, gate: Tensor, up: Tensor) -> Tensor:
        return functional.silu(gate) * up


@packed_gated_feed_forward.wrong(
    "take the first half as the gate: `torch.nn.functional.glu` takes the second.",
    name="second half as the gate",
)
class SecondHalfAsTheGate(_Packed):
    """Takes the second half as the gate."""

    def joined(self, gate: Tensor, up: Tensor) -> Tensor:
        return gate * self.activation(up)


@packed_gated_feed_forward.wrong(
    "cut in the middle: the rows of gate and up do not alternate, as those of gpt-oss do.",
    name="alternating rows",
)
class AlternatingRows(_Packed):
    """Takes every other feature."""

    def cut(self, both: Tensor) -> tuple[Tensor, ...]:
        return both[..., ::2], both[..., 1::2]


@packed_gated_feed_forward.wrong("cut the features: the last axis, not the positions.")
class CutByPositions(_Packed):
    """Cuts the features of a row after reading them as two rows."""

    def cut(self, both: Tensor) -> tuple[Tensor, ...]:
        return both.unflatten(-1, (-1, 2)).flip(-2).unbind(-1)


@packed_gated_feed_forward.wrong("send the gate through the activation.", name="bilinear")
class PackedBilinear(_Packed):
    """Multiplies two linear maps."""

    def joined(self, gate: Tensor, up: Tensor) -> Tensor:
        return gate * up


@packed_gated_feed_forward.wrong("take Swish, x times sigmoid(x).", name="sigmoid for SiLU")
class PackedSigmoid(_Packed):
    """Gates with a sigmoid."""

    def joined(self, gate: Tensor, up: Tensor) -> Tensor:
        return torch.sigmoid(gate) * up


@packed_gated_feed_forward.wrong("multiply the two halves.", name="added")
class PackedAdded(_Packed):
    """Adds the two halves."""

    def joined(self, gate: Tensor, up: Tensor) -> Tensor:
        return functional.silu(gate) + up


@packed_gated_feed_forward.wrong("leave out the biases.", name="with biases")
class PackedWithBiases(_Packed):
    """Has biases."""

    bias = True


@packed_gated_feed_forward.wrong("return the map alone: the block adds x.", name="residual inside")
class PackedResidualInside(_Packed):
    """Adds the input."""

    def forward(self, x: Tensor) -> Tensor:
        return x + super().forward(x)
