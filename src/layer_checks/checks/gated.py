"""The checks of `GatedFeedForward` and its packed form, against `torch.nn.functional`."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

import transformer_layers
from layer_checks.evidence.evidence import Evidence, equivalent, holds
from layer_checks.kit.candidates import (
    built,
    has_parameters,
    outputs_and_gradients,
    randn64,
    randomized,
    same,
    takes,
    weights_of,
)
from layer_checks.kit.definitions import Candidate, Family, Layer, Layout
from layer_checks.kit.initial import starts_as
from layer_checks.kit.oracles import agreeing_gradients, with_weights_of
from layer_checks.kit.probes import Probing, probe

_D_MODEL, _D_FF = 5, 7
Activation: TypeAlias = Callable[[Tensor], Tensor]


class _Oracle(nn.Module):
    """`torch.nn.Linear` for each map, and an activation of the gate; `sizes` are (in, out)."""

    def __init__(
        self,
        sizes: Mapping[str, tuple[int, int]],
        std: float,
        activation: Activation = functional.silu,
        bias: bool = False,
    ) -> None:
        super().__init__()
        self.activation = activation
        for name, size in sizes.items():
            self.add_module(name, randomized(nn.Linear(*size, bias), std).double())


class TorchGatedFeedForward(_Oracle):
    """Three maps: the gate, what it lets pass, and the way back."""

    gate_proj: nn.Linear
    up_proj: nn.Linear
    down_proj: nn.Linear

    def __init__(self, d_model: int, d_ff: int, std: float, **options: Any) -> None:
        into, back = (d_model, d_ff), (d_ff, d_model)
        super().__init__({"gate_proj": into, "up_proj": into, "down_proj": back}, std, **options)

    def forward(self, x: Tensor) -> Tensor:
        """Maps each position."""
        return self.down_proj(self.activation(self.gate_proj(x)) * self.up_proj(x))


class TorchPackedGatedFeedForward(_Oracle):
    """The same with both maps in one matrix, the gate first."""

    gate_up_proj: nn.Linear
    down_proj: nn.Linear

    def __init__(self, d_model: int, d_ff: int, std: float, **options: Any) -> None:
        sizes = {"gate_up_proj": (d_model, 2 * d_ff), "down_proj": (d_ff, d_model)}
        super().__init__(sizes, std, **options)

    def forward(self, x: Tensor) -> Tensor:
        """Maps each position."""
        both = self.gate_up_proj(x)
        half = both.shape[-1] // 2
        return self.down_proj(self.activation(both[..., :half]) * both[..., half:])


@dataclass(frozen=True)
class _Network:
    """A candidate, and what it is held against."""

    candidate: Candidate
    oracle: Callable[..., nn.Module]

    def pair(
        self, d_model: int = _D_MODEL, d_ff: int = _D_FF, std: float = 1.0, **options: Any
    ) -> tuple[nn.Module, nn.Module]:
        theirs = self.oracle(d_model, d_ff, std, **options)
        return with_weights_of(theirs, self.candidate, d_model, d_ff, **options), theirs


def _apart(candidate: Candidate) -> _Network:
    return _Network(candidate, TorchGatedFeedForward)


def _packed(candidate: Candidate) -> _Network:
    return _Network(candidate, TorchPackedGatedFeedForward)


def _probe(network: _Network) -> Iterator[Tensor]:
    ours, theirs = network.pair()
    yield torch.tensor(len(ours.state_dict()))
    yield from outputs_and_gradients(ours, weights_of(theirs), randn64(2, 3, _D_MODEL))


gated_feed_forward = Layer(
    "GatedFeedForward",
    "GatedFeedForward(d_model, d_ff)",
    example=lambda candidate: built(candidate, _D_MODEL, _D_FF),
    probe=lambda candidate: _probe(_apart(candidate)),
    words={
        "gate_proj": ("gate", "w1", "w_gate"),
        "up_proj": ("up", "w3", "w_up"),
        "down_proj": ("down", "w2", "w_down"),
    },
)
packed_gated_feed_forward = Layer(
    "PackedGatedFeedForward",
    "PackedGatedFeedForward(d_model, d_ff)",
    example=lambda candidate: built(candidate, _D_MODEL, _D_FF),
    probe=lambda candidate: _probe(_packed(candidate)),
    layout=Layout(packed={"gate_up_proj": ("gate", "up")}),
)
both = Family({gated_feed_forward: _apart, packed_gated_feed_forward: _packed})


@both.check("The output has the shape of the input.", weak=True)
def output_shape(network: _Network) -> Evidence:
    layer = built(network.candidate, _D_MODEL, _D_FF)
    return same(tuple(layer(torch.randn(2, 3, _D_MODEL)).shape), (2, 3, _D_MODEL))


@both.check(
    "With weights of standard deviation 0.02 the values are torch's, up to 0.00001.",
    name="small weights, atol 1e-5",
    weak=True,
)
def small_weights(network: _Network) -> Evidence:
    ours, theirs = network.pair(std=0.02)
    x = randn64(2, 3, _D_MODEL)
    return equivalent(ours(x), theirs(x), atol=1e-5)


@gated_feed_forward.check("There are three weights, and no bias.", kind="contract")
def parameters(candidate: Candidate) -> Evidence:
    return has_parameters(
        built(candidate, _D_MODEL, _D_FF),
        gate_proj__weight=(_D_FF, _D_MODEL),
        up_proj__weight=(_D_FF, _D_MODEL),
        down_proj__weight=(_D_MODEL, _D_FF),
    )


@packed_gated_feed_forward.check(
    "There are two weights, the first of twice the inner width, and no bias.",
    name="parameters",
    kind="contract",
)
def packed_parameters(candidate: Candidate) -> Evidence:
    return has_parameters(
        built(candidate, _D_MODEL, _D_FF),
        gate_up_proj__weight=(2 * _D_FF, _D_MODEL),
        down_proj__weight=(_D_MODEL, _D_FF),
    )


@both.check("With weights of standard deviation 1 the values in float64 are torch's.")
def values(network: _Network) -> Evidence:
    ours, theirs = network.pair()
    x = randn64(2, 3, _D_MODEL)
    return equivalent(ours(x), theirs(x), atol=1e-12, rtol=1e-12)


@both.check("So are the gradients of the input and the weights.")
def gradients(network: _Network) -> Evidence:
    ours, theirs = network.pair()
    return agreeing_gradients(ours, theirs, randn64(2, 3, _D_MODEL), atol=1e-10)


@both.check("Changing one position changes no other.")
def each_position_by_itself(network: _Network) -> Evidence:
    ours, _ = network.pair()
    x = randn64(2, 3, _D_MODEL)
    changed = x.clone()
    changed[0, 0] = randn64(_D_MODEL)
    return equivalent(ours(changed).flatten(0, 1)[1:], ours(x).flatten(0, 1)[1:], atol=1e-12)


@both.check("An input of zeros gives zeros: nothing is added on the way.")
def zeros(network: _Network) -> Evidence:
    ours, _ = network.pair()
    x = torch.zeros(2, 3, _D_MODEL, dtype=torch.float64)
    return equivalent(ours(x), x, atol=0.0)


@both.check(
    "Where it takes an `activation`, that one is applied to the gate; where it takes a `bias`, all "
    "three maps add one."
)
def options(network: _Network) -> Evidence:
    x, found = randn64(2, 3, _D_MODEL), []
    for activation in (functional.gelu, torch.relu):
        if takes(network.candidate, "activation"):
            ours, theirs = network.pair(activation=activation)
            found.append(equivalent(ours(x), theirs(x), atol=1e-12, rtol=1e-12))
    if takes(network.candidate, "bias"):
        ours, theirs = network.pair(bias=True)
        found.append(equivalent(ours(x), theirs(x), atol=1e-12, rtol=1e-12))
    return found[0] if found else holds(True, "it takes neither")


@gated_feed_forward.check("The weights start as those of `torch.nn.Linear`.", kind="start")
def initial_values(candidate: Candidate) -> Evidence:
    return starts_as(built(candidate, 64, 48), transformer_layers.GatedFeedForward(64, 48))


@packed_gated_feed_forward.check(
    "The weights start as those of `torch.nn.Linear`.", name="initial values", kind="start"
)
def packed_initial_values(candidate: Candidate) -> Evidence:
    return starts_as(built(candidate, 64, 48), transformer_layers.PackedGatedFeedForward(64, 48))


def _probing(view: Callable[[Candidate], _Network]) -> Probing:
    return Probing(
        pair=lambda candidate: view(candidate).pair(),
        inputs=lambda batch, seq: (randn64(batch, seq, _D_MODEL),),
        sizes=(_D_MODEL, _D_FF),
        narrow=lambda candidate: (*view(candidate).pair(1, 3), (randn64(3, 2, 1),)),
        wide=lambda candidate, size: (*view(candidate).pair(3, size), (randn64(2, 3, 3),)),
        drawn=lambda candidate: list(weights_of(built(candidate, _D_MODEL, _D_FF)).values()),
        scales=(1e-6, 1.0, 80.0),
    )


probe(gated_feed_forward, _probing(_apart))
probe(packed_gated_feed_forward, _probing(_packed))
