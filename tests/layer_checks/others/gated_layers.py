"""A package of somebody's: a gated feed-forward layer, its checks and two wrong versions of it."""

from torch import Tensor, nn
from torch.nn import functional

from layer_checks.kit.candidates import randn64
from layer_checks.kit.right_version import layer_of


class Gated(nn.Module):
    def __init__(self, d_model: int, d_ff: int, bias: bool = False) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(d_model, d_ff, bias)
        self.up_proj = nn.Linear(d_model, d_ff, bias)
        self.down_proj = nn.Linear(d_ff, d_model, bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(self.inner(self.gate_proj(x), self.up_proj(x)))

    def inner(self, gate: Tensor, up: Tensor) -> Tensor:
        return functional.silu(gate) * up


WORDS = {"gate_proj": {"gate", "1"}, "up_proj": {"up", "3"}, "down_proj": {"down", "2"}}
gated = layer_of(Gated, 5, 7, inputs=lambda batch, seq: (randn64(batch, seq, 5),), words=WORDS)


@gated.wrong("apply the activation to the gate: it is the other factor.")
class ActivationOnTheWrongHalf(Gated):
    def inner(self, gate: Tensor, up: Tensor) -> Tensor:
        return gate * functional.silu(up)


@gated.wrong("apply the activation to one factor.")
class ActivationOnTheProduct(Gated):
    def inner(self, gate: Tensor, up: Tensor) -> Tensor:
        return functional.silu(gate * up)
