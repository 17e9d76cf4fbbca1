"""The checks of `PositionwiseFeedForward` and `FeedForward`, against `torch.nn.functional`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

import transformer_layers
from layer_checks.checks.conv1d import TransposedLinear
from layer_checks.evidence.evidence import Evidence, equivalent
from layer_checks.kit.candidates import (
    built,
    has_parameters,
    outputs_and_gradients,
    randn64,
    randomized,
    same,
    weights_of,
)
from layer_checks.kit.definitions import Candidate, Family, Layer, Layout
from layer_checks.kit.dropping import independent, seen_in_training
from layer_checks.kit.initial import starts_as
from layer_checks.kit.oracles import agreeing_gradients, with_weights_of
from layer_checks.kit.probes import DROPPED, Probing, probe
from layer_checks.kit.weight_maps import same_names

_D_MODEL, _D_FF = 5, 7
# Of `FeedForward`, as they are published.
WEIGHTS = ("c_fc.weight", "c_fc.bias", "c_proj.weight", "c_proj.bias")


class TorchPositionwiseFeedForward(nn.Module):
    """`torch.nn.Linear` twice, around a ReLU."""

    def __init__(self, d_model: int, d_ff: int, std: float) -> None:
        super().__init__()
        self.linear1 = randomized(nn.Linear(d_model, d_ff), std).double()
        self.linear2 = randomized(nn.Linear(d_ff, d_model), std).double()

    def forward(self, x: Tensor) -> Tensor:
        """Maps each position."""
        return self.linear2(functional.relu(self.linear1(x)))


class TorchFeedForward(nn.Module):
    """torch's linear layer twice, around the tanh form of GELU, on weights held as (in, out)."""

    def __init__(self, d_model: int, d_ff: int, std: float = 0.2) -> None:
        super().__init__()
        self.c_fc = TransposedLinear(d_model, d_ff, std)
        self.c_proj = TransposedLinear(d_ff, d_model, std)

    def forward(self, x: Tensor) -> Tensor:
        """Maps each position."""
        return self.c_proj(functional.gelu(self.c_fc(x), approximate="tanh"))


@dataclass(frozen=True)
class _Network:
    """A candidate, and what it is held against."""

    candidate: Candidate
    oracle: Callable[[int, int, float], nn.Module]

    def pair(self, dropout: float = 0.0, std: float = 1.0) -> tuple[nn.Module, nn.Module]:
        theirs = self.oracle(_D_MODEL, _D_FF, std)
        return with_weights_of(theirs, self.candidate, _D_MODEL, _D_FF, dropout=dropout), theirs


def _positionwise(candidate: Candidate) -> _Network:
    return _Network(candidate, TorchPositionwiseFeedForward)


def _gpt2(candidate: Candidate) -> _Network:
    return _Network(candidate, TorchFeedForward)


def _probe(network: _Network, default_size: int) -> Iterator[Tensor]:
    ours, theirs = network.pair()
    yield torch.tensor(default_size)
    yield from outputs_and_gradients(ours, weights_of(theirs), randn64(2, 3, _D_MODEL))
    dropping, _ = network.pair(dropout=0.3)
    yield from seen_in_training(dropping, randn64(800, _D_MODEL))


def _default_size(candidate: Candidate) -> int:
    return sum(weight.numel() for weight in weights_of(built(candidate, _D_MODEL)).values())


def _output_shape(network: _Network, d_ff: int) -> Evidence:
    layer = built(network.candidate, _D_MODEL, d_ff)
    return same(tuple(layer(torch.randn(2, 3, _D_MODEL)).shape), (2, 3, _D_MODEL))


positionwise_feed_forward = Layer(
    "PositionwiseFeedForward",
    "PositionwiseFeedForward(d_model, d_ff, dropout=0.1)",
    example=lambda candidate: built(candidate, _D_MODEL, _D_FF, dropout=0.5),
    probe=lambda candidate: _probe(_positionwise(candidate), 0),
)
feed_forward = Layer(
    "FeedForward",
    "FeedForward(d_model, d_ff=None, dropout=0.1)",
    example=lambda candidate: (
        built(candidate, _D_MODEL),
        built(candidate, _D_MODEL, _D_FF, dropout=0.5),
    ),
    probe=lambda candidate: _probe(_gpt2(candidate), _default_size(candidate)),
    layout=Layout(in_out=frozenset({"c_fc", "c_proj"})),
    weight_maps={"transformers.GPT2MLP": same_names(*WEIGHTS)},
)
both = Family({positionwise_feed_forward: _positionwise, feed_forward: _gpt2})


@both.check(
    "With d_ff as large as d_model the output has the shape of the input.",
    name="output shape, d_ff = d_model",
    weak=True,
)
def square_output_shape(network: _Network) -> Evidence:
    return _output_shape(network, _D_MODEL)


@both.check(
    "With weights of standard deviation 0.02 the values are torch's, up to 0.001.",
    name="small weights, atol 1e-3",
    weak=True,
)
def small_weights(network: _Network) -> Evidence:
    ours, theirs = network.pair(std=0.02)
    x = randn64(2, 3, _D_MODEL)
    return equivalent(ours(x), theirs(x), atol=1e-3)


@both.check("With another d_ff the output has the shape of the input.")
def output_shape(network: _Network) -> Evidence:
    return _output_shape(network, _D_FF)


@positionwise_feed_forward.check(
    "There are two nn.Linear, linear1 and linear2, with biases.", kind="contract"
)
def parameters(candidate: Candidate) -> Evidence:
    return has_parameters(
        built(candidate, _D_MODEL, _D_FF),
        linear1__weight=(_D_FF, _D_MODEL),
        linear1__bias=(_D_FF,),
        linear2__weight=(_D_MODEL, _D_FF),
        linear2__bias=(_D_MODEL,),
    )


@feed_forward.check(
    "There are two Conv1D, c_fc and c_proj; the inner width is 4 d_model or d_ff.",
    name="parameters",
    kind="contract",
)
def gpt2_parameters(candidate: Candidate) -> Evidence:
    def of_width(layer: nn.Module, d_ff: int) -> Evidence:
        return has_parameters(
            layer,
            c_fc__weight=(_D_MODEL, d_ff),
            c_fc__bias=(d_ff,),
            c_proj__weight=(d_ff, _D_MODEL),
            c_proj__bias=(_D_MODEL,),
        )

    of_width(built(candidate, _D_MODEL), 4 * _D_MODEL)
    return of_width(built(candidate, _D_MODEL, _D_FF), _D_FF)


@both.check("With random weights the values in float64 are torch's.")
def values(network: _Network) -> Evidence:
    ours, theirs = network.pair()
    x = randn64(2, 3, _D_MODEL)
    return equivalent(ours(x), theirs(x), atol=1e-12)


@both.check("So are the gradients of the input and the weights.")
def gradients(network: _Network) -> Evidence:
    ours, theirs = network.pair()
    return agreeing_gradients(ours, theirs, randn64(2, 3, _D_MODEL))


@both.check("Changing one position changes no other.")
def each_position_by_itself(network: _Network) -> Evidence:
    ours, _ = network.pair()
    x = randn64(2, 3, _D_MODEL)
    changed = x.clone()
    changed[:, 0] = randn64(2, _D_MODEL)
    return equivalent(ours(changed)[:, 1:], ours(x)[:, 1:], atol=1e-13)


@both.check("In evaluation nothing is dropped.")
def evaluation(network: _Network) -> Evidence:
    ours, theirs = network.pair(dropout=0.5)
    x = randn64(2, 3, _D_MODEL)
    return equivalent(ours.eval()(x), theirs(x), atol=1e-12)


@both.check(
    "In training a quarter of the result is 0, each element by itself, and the rest is divided by "
    "0.75: once.",
    kind="contract",  # others drop the activations
)
def dropped_result(network: _Network) -> Evidence:
    ours, theirs = network.pair(dropout=0.25)
    x = randn64(2, 300, _D_MODEL)
    y = ours(x)
    kept = (y != 0).double()
    equivalent(1 - kept.mean(), 0.25, atol=0.05)  # six standard deviations
    independent(y == 0, 0.25)
    return equivalent(y, theirs(x) / 0.75 * kept, atol=1e-11)


@positionwise_feed_forward.check("Weights and biases start as those of nn.Linear do.", kind="start")
def initial_values(candidate: Candidate) -> Evidence:
    right = transformer_layers.PositionwiseFeedForward(64, 48)
    return starts_as(built(candidate, 64, 48), right)


@feed_forward.check(
    "Weights start with standard deviation 0.02, biases from zeros.",
    name="initial values",
    kind="start",
)
def gpt2_initial_values(candidate: Candidate) -> Evidence:
    return starts_as(built(candidate, 64, 48), transformer_layers.FeedForward(64, 48))


@both.check("Without a dropout, a tenth of the result is dropped in training.", kind="start")
def default_dropout(network: _Network) -> Evidence:
    layer = built(network.candidate, _D_MODEL, _D_FF)
    dropped = (layer(torch.randn(2, 800, _D_MODEL)) == 0).double().mean()
    return equivalent(dropped, 0.1, atol=0.02)  # six standard deviations


def _drawn(candidate: Candidate) -> list[Tensor]:
    layer = built(candidate, _D_MODEL, _D_FF, dropout=0.5)
    return [*weights_of(layer).values(), layer(torch.randn(2, 3, _D_MODEL))]


def _of_sizes(
    network: _Network, d_model: int, d_ff: int
) -> tuple[nn.Module, nn.Module, tuple[Tensor]]:
    theirs = network.oracle(d_model, d_ff, 1.0)
    ours = with_weights_of(theirs, network.candidate, d_model, d_ff, dropout=0.0)
    return ours, theirs, (randn64(2, 3, d_model),)


def _probing(view: Callable[[Candidate], _Network]) -> Probing:
    return Probing(
        pair=lambda candidate: view(candidate).pair(),
        inputs=lambda batch, seq: (randn64(batch, seq, _D_MODEL),),
        sizes=(_D_MODEL, _D_FF),
        narrow=lambda candidate: _of_sizes(view(candidate), 1, 1),
        wide=lambda candidate, size: _of_sizes(view(candidate), 3, size),
        drawn=_drawn,
        dropping=lambda candidate: (
            view(candidate).pair(dropout=DROPPED)[0],
            (randn64(3, 4, _D_MODEL),),
        ),
    )


for _layer, _view in both.views.items():
    probe(_layer, _probing(_view))
