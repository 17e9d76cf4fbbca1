"""A package of somebody's: a gated feed-forward layer, its checks and two wrong versions of it."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from layer_checks.evidence.evidence import Evidence, equivalent
from layer_checks.kit.candidates import outputs_and_gradients, randn64, weights_of
from layer_checks.kit.definitions import Candidate, Layer
from layer_checks.kit.oracles import agreeing_gradients, with_weights_of
from layer_checks.kit.probes import Probing, probe


class Gated(nn.Module):
    """Multiplies one projection by the SiLU of another, and projects back."""

    def __init__(self, d_model: int, d_ff: int, bias: bool = False) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(d_model, d_ff, bias)
        self.up_proj = nn.Linear(d_model, d_ff, bias)
        self.down_proj = nn.Linear(d_ff, d_model, bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(self.inner(self.gate_proj(x), self.up_proj(x)))

    def inner(self, gate: Tensor, up: Tensor) -> Tensor:
        return functional.silu(gate) * up


def _pair(candidate: Candidate, bias: bool = False) -> tuple[nn.Module, nn.Module]:
    theirs = Gated(5, 7, bias).double()
    return with_weights_of(theirs, candidate, 5, 7, bias=bias), theirs


def _probe(candidate: Candidate) -> list[Tensor]:
    ours, theirs = _pair(candidate)
    return outputs_and_gradients(ours, weights_of(theirs), randn64(2, 3, 5))


gated = Layer(
    "Gated",
    "Gated(d_model, d_ff, bias=False)",
    example=lambda candidate: candidate(5, 7)(torch.randn(2, 3, 5)),
    probe=_probe,
    right=Gated,
    words={"gate_proj": {"gate", "1"}, "up_proj": {"up", "3"}, "down_proj": {"down", "2"}},
)


@gated.check("The values in float64 are those of the formula.")
def values(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    x = randn64(2, 3, 5)
    return equivalent(ours(x), theirs(x), atol=1e-12)


@gated.check("So they are with biases.")
def values_with_biases(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate, bias=True)
    x = randn64(2, 3, 5)
    return equivalent(ours(x), theirs(x), atol=1e-12)


@gated.check("So are the gradients.")
def gradients(candidate: Candidate) -> Evidence:
    return agreeing_gradients(*_pair(candidate), randn64(2, 3, 5))


probe(
    gated,
    Probing(pair=_pair, inputs=lambda batch, seq: (randn64(batch, seq, 5),), sizes=(5, 7)),
)


@gated.wrong("apply the activation to the gate: it is the other factor.")
class ActivationOnTheWrongHalf(Gated):
    """Applies the activation to what it should be multiplied by."""

    def inner(self, gate: Tensor, up: Tensor) -> Tensor:
        return gate * functional.silu(up)


@gated.wrong("apply the activation to one factor.")
class ActivationOnTheProduct(Gated):
    """Applies the activation to the product."""

    def inner(self, gate: Tensor, up: Tensor) -> Tensor:
        return functional.silu(gate * up)
