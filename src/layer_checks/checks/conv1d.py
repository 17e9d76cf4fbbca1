"""The checks of `Conv1D`, against `torch.nn.Linear`."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from layer_checks.evidence.evidence import Evidence, equivalent
from layer_checks.kit.candidates import (
    built,
    has_parameters,
    of_three_axes_alone,
    outputs_and_gradients,
    randn64,
    same,
    weights_of,
)
from layer_checks.kit.definitions import Candidate, Layer, Layout, Start
from layer_checks.kit.oracles import agreeing_gradients, with_weights_of
from layer_checks.kit.probes import Probing, probe
from layer_checks.kit.weight_maps import same_names


class TransposedLinear(nn.Module):
    """`torch.nn.functional.linear` with random float64 weights, the matrix held as (in, out)."""

    def __init__(self, in_features: int, out_features: int, std: float = 0.2) -> None:
        super().__init__()
        self.weight = nn.Parameter(std * randn64(in_features, out_features))
        self.bias = nn.Parameter(std * randn64(out_features))

    def forward(self, x: Tensor) -> Tensor:
        """Maps the last axis of `x`."""
        return functional.linear(x, self.weight.t(), self.bias)


def _pair(candidate: Candidate, in_features: int, out_features: int) -> tuple[nn.Module, nn.Module]:
    theirs = TransposedLinear(in_features, out_features)
    return with_weights_of(theirs, candidate, in_features, out_features), theirs


def _example(candidate: Candidate) -> object:
    return built(candidate, 5, 7)


def _probe(candidate: Candidate) -> Iterator[Tensor]:
    ours, theirs = _pair(candidate, 6, 6)  # a wrong order or layout shows in the failed checks
    initial = [*weights_of(built(candidate, 200, 200)).values(), torch.zeros(2)]
    yield initial[0].std().mul(100).round()
    yield from outputs_and_gradients(ours, weights_of(theirs), randn64(2, 3, 6))


def _values(candidate: Candidate, in_features: int, out_features: int) -> Evidence:
    ours, theirs = _pair(candidate, in_features, out_features)
    x = randn64(2, 3, in_features)
    return equivalent(ours(x), theirs(x), atol=1e-12)


conv1d = Layer(
    "Conv1D",
    "Conv1D(in_features, out_features)",
    example=_example,
    probe=_probe,
    synonyms={
        "in_features": "nx in_dim d_in input_dim n_in in_channels input_size".split(),
        "out_features": "nf out_dim d_out output_dim n_out out_channels output_size".split(),
    },
    layout=Layout(in_out=frozenset({"weight"})),
    not_mistakes={"view of the input"},  # "view of strides" is the same
    starts={"weight": Start(std=0.02), "bias": Start(0.0)},
    weight_maps={"transformers.Conv1D": same_names("weight", "bias")},
)


@conv1d.check(
    "A layer as wide as its input gives an output of the input's shape.",
    name="output shape, square",
    weak=True,
)
def square_output_shape(candidate: Candidate) -> Evidence:
    return same(tuple(built(candidate, 6, 6)(torch.randn(2, 3, 6)).shape), (2, 3, 6))


@conv1d.check(
    "With fresh weights a layer as wide as its input gives nn.Linear's values.",
    name="values, fresh",
    weak=True,
)
def square_values(candidate: Candidate) -> Evidence:
    layer = built(candidate, 6, 6)
    x = torch.randn(2, 3, 6)
    weight, bias = layer.get_parameter("weight"), layer.get_parameter("bias")
    return equivalent(layer(x), functional.linear(x, weight.t(), bias))


@conv1d.check("Conv1D(5, 7) maps a last axis of 5 to one of 7.")
def output_shape(candidate: Candidate) -> Evidence:
    return same(tuple(built(candidate, 5, 7)(torch.randn(2, 3, 5)).shape), (2, 3, 7))


@conv1d.check("The weight has shape (in, out), the bias (out,).", kind="contract")
def parameters(candidate: Candidate) -> Evidence:
    return has_parameters(built(candidate, 5, 7), weight=(5, 7), bias=(7,))


@conv1d.check(
    "The initial weight has mean 0 and standard deviation 0.02, the bias is 0.", kind="start"
)
def initial_values(candidate: Candidate) -> Evidence:
    weights = list(weights_of(built(candidate, 200, 100)).values())
    found = torch.stack([weights[0].std(), weights[0].mean()])
    equivalent(weights[-1], 0.0, atol=0.0)
    # From 20,000 draws the standard deviation is known to 1e-4 and the mean to 1.4e-4.
    return equivalent(found, [0.02, 0.0], atol=1e-3)


@conv1d.check("With random weights, 5 wide to 7 wide, the values in float64 are nn.Linear's.")
def values(candidate: Candidate) -> Evidence:
    return _values(candidate, 5, 7)


@conv1d.check("So they are where input and output are equally wide.", name="values, square")
def values_square(candidate: Candidate) -> Evidence:
    return _values(candidate, 6, 6)


@conv1d.check("So are the gradients of the input, the weight and the bias.")
def gradients(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate, 5, 7)
    return agreeing_gradients(ours, theirs, randn64(2, 3, 5), atol=1e-12)


@conv1d.check("A transposed input is mapped like any other.", kind="contract")
def not_contiguous(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate, 5, 5)
    x = randn64(3, 5, 2).transpose(1, 2)
    return equivalent(ours(x), theirs(x), atol=1e-12)


@conv1d.check("None, several or empty leading axes come back as they were.", kind="contract")
def leading_axes(candidate: Candidate) -> Evidence:
    layer = built(candidate, 5, 5)
    shapes = [(5,), (4, 5), (2, 1, 3, 5), (0, 3, 5)]
    with of_three_axes_alone(layer):
        found = [tuple(layer(torch.randn(shape)).shape) for shape in shapes]
    return same(found, shapes)


probe(
    conv1d,
    Probing(
        pair=lambda candidate: _pair(candidate, 5, 7),
        inputs=lambda batch, seq: (randn64(batch, seq, 5),),
        sizes=(5, 7),
        narrow=lambda candidate: (*_pair(candidate, 1, 1), (randn64(2, 3, 1),)),
        wide=lambda candidate, size: (*_pair(candidate, size, 3), (randn64(2, 3, size),)),
        drawn=lambda candidate: list(weights_of(built(candidate, 5, 7)).values()),
    ),
)
