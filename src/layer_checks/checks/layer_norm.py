"""The checks of `LayerNorm`, against `torch.nn.LayerNorm`."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

import transformer_layers
from layer_checks.evidence.evidence import Evidence, equivalent
from layer_checks.kit.candidates import (
    built,
    has_parameters,
    outputs_and_gradients,
    randn64,
    randomized,
    rounded_once,
    rounds_once_with_float32_parameters,
    same,
    weights_of,
)
from layer_checks.kit.definitions import Candidate, Layer
from layer_checks.kit.functions import forms_of_norms
from layer_checks.kit.initial import starts_as
from layer_checks.kit.oracles import agreeing_gradients, with_weights_of
from layer_checks.kit.probes import Probing, probe


def _example(candidate: Candidate) -> object:
    """Builds the layer with each of its arguments."""
    return built(candidate, 5), built(candidate, 5, eps=0.1), built(candidate, 5, bias=False)


def _probe(candidate: Candidate) -> Iterator[Tensor]:
    """Outputs and gradients in float64, where eps counts, and what bias=False leaves."""
    ours, theirs = _pair(candidate, 5, eps=0.1)
    yield from outputs_and_gradients(ours, weights_of(theirs), _rows(5))
    yield torch.tensor(len(weights_of(built(candidate, 5, bias=False))))


def _pair(candidate: Candidate, d_model: int, **options: Any) -> tuple[nn.Module, nn.LayerNorm]:
    theirs = randomized(nn.LayerNorm(d_model, **options), std=1.0).double()
    return with_weights_of(theirs, candidate, d_model, **options), theirs


def _rows(d_model: int) -> Tensor:
    return randn64(3, 2, d_model) + 0.5


def _close(candidate: Candidate, atol: float, rtol: float = 0.0) -> Evidence:
    x = torch.randn(2, 3, 768)
    return equivalent(
        built(candidate, 768)(x), functional.layer_norm(x, (768,)), atol=atol, rtol=rtol
    )


layer_norm = Layer(
    "LayerNorm",
    "LayerNorm(d_model, eps=1e-5, bias=True)",
    example=_example,
    probe=_probe,
    attributes=("eps",),
    forms=forms_of_norms,
)


@layer_norm.check("The output has the shape of the input.", weak=True)
def output_shape(candidate: Candidate) -> Evidence:
    x = torch.randn(2, 3, 768)
    return same(tuple(built(candidate, 768)(x).shape), tuple(x.shape))


@layer_norm.check(
    "With fresh weights and width 768 each row has mean 0 and variance 1, up to 0.01.",
    name="mean 0, variance 1",
    weak=True,
)
def mean_and_variance(candidate: Candidate) -> Evidence:
    y = built(candidate, 768)(torch.randn(2, 3, 768))
    found = torch.stack([y.mean(dim=-1), y.var(dim=-1, correction=0)])
    return equivalent(found, torch.stack([torch.zeros(2, 3), torch.ones(2, 3)]), atol=1e-2)


@layer_norm.check(
    "With fresh weights and width 768 the values are torch's, up to 0.01.",
    name="width 768, atol 1e-2",
    weak=True,
)
def width_768_atol_1e_2(candidate: Candidate) -> Evidence:
    return _close(candidate, 1e-2)


@layer_norm.check(
    "With fresh weights and width 768 the values are torch's, up to 0.00001·(1 + |value|).",
    name="width 768, atol 1e-5",
    weak=True,
)
def width_768_atol_1e_5(candidate: Candidate) -> Evidence:
    return _close(candidate, 1e-5, rtol=1e-5)


@layer_norm.check("There is a weight and, unless `bias=False`, a bias.", kind="contract")
def parameters(candidate: Candidate) -> Evidence:
    evidence = has_parameters(built(candidate, 5), weight=(5,), bias=(5,))
    has_parameters(built(candidate, 5, bias=False), weight=(5,))
    return evidence


@layer_norm.check(
    "At width 5, with eps = 0.1 and random weights, the values in float64 are torch's."
)
def values(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate, 5, eps=0.1)
    x = _rows(5)
    return equivalent(ours(x), theirs(x), atol=1e-12)


@layer_norm.check("So are the gradients of the input, the weight and the bias.")
def gradients(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate, 5, eps=0.1)
    return agreeing_gradients(ours, theirs, _rows(5))


@layer_norm.check("With 1000 added to the input, float32 gives the values of float64, up to 0.001.")
def large_mean(candidate: Candidate) -> Evidence:
    x = torch.randn(3, 4, 7) + 1000
    expected = functional.layer_norm(x.double(), (7,)).float()
    # One rounding of the mean, 1000 * 6e-8, divided by a standard deviation of 0.1 or more.
    return equivalent(built(candidate, 7, eps=1e-5)(x), expected, atol=1e-3)


@layer_norm.check("Changing one position changes no other.")
def each_position_by_itself(candidate: Candidate) -> Evidence:
    ours, _ = _pair(candidate, 5)
    x = _rows(5)
    changed = x.clone()
    changed[0, 0] = torch.randn(5)
    return equivalent(ours(changed).flatten(0, 1)[1:], ours(x).flatten(0, 1)[1:], atol=0.0)


@layer_norm.check("A row whose values are all equal gives the bias.")
def constant_row(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate, 5)
    x = torch.full((2, 5), 0.75, dtype=torch.float64)  # its mean is exact
    return equivalent(ours(x), theirs.bias.expand(2, 5), atol=1e-12)


@layer_norm.check(
    "In float16, rows with a standard deviation of 600 are normalized.", kind="contract"
)
def half_precision(candidate: Candidate) -> Evidence:
    x = (600 * torch.randn(3, 4, 7)).half()
    expected = functional.layer_norm(x.double(), (7,)).half()
    # Values up to sqrt(6): a rounding error of 1e-3 in the result.
    return equivalent(built(candidate, 7, eps=1e-5).half()(x), expected, atol=4e-3)


@layer_norm.check(
    "In bfloat16, values around 10 are normalized in float32, and rounded once.", kind="contract"
)
def bfloat16(candidate: Candidate) -> Evidence:
    x = (torch.randn(3, 4, 7) + 10).bfloat16()
    exact = functional.layer_norm(x.double(), (7,))
    return rounded_once(built(candidate, 7, eps=1e-5).bfloat16()(x), exact, atol=1e-4)


@layer_norm.check(
    "With parameters in float32, input in float16 or bfloat16 gives a result of its own dtype, "
    "computed in float32 and rounded once.",
    kind="contract",
)
def float32_parameters(candidate: Candidate) -> Evidence:
    return rounds_once_with_float32_parameters(*_pair(candidate, 64, eps=0.1), 16, 64)


@layer_norm.check("The weight starts from ones, the bias from zeros.", kind="start")
def initial_values(candidate: Candidate) -> Evidence:
    return starts_as(built(candidate, 5), transformer_layers.LayerNorm(5))


@layer_norm.check("Without an eps, it is 1e-5.", kind="start")
def default_eps(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate, 5)
    x = 1e-3 * _rows(5)  # a variance of 1e-6
    return equivalent(ours(x), theirs(x), atol=1e-11)


probe(
    layer_norm,
    Probing(
        pair=lambda candidate: _pair(candidate, 5, eps=0.1),
        inputs=lambda batch, seq: (randn64(batch, seq, 5) + 0.5,),
        sizes=(5,),
        narrow=lambda candidate: (*_pair(candidate, 1, eps=0.1), (randn64(3, 2, 1),)),
        wide=lambda candidate, size: (
            *_pair(candidate, size, eps=0.1),
            (randn64(3, 2, size) + 0.5,),
        ),
    ),
)
