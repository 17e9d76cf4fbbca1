"""The checks of `RMSNorm`, against `torch.nn.RMSNorm`."""

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
from layer_checks.kit.initial import starts_as
from layer_checks.kit.oracles import agreeing_gradients, with_weights_of
from layer_checks.kit.probes import Probing, probe


def _pair(candidate: Candidate, d_model: int, **options: Any) -> tuple[nn.Module, nn.RMSNorm]:
    theirs = randomized(nn.RMSNorm(d_model, **options), std=1.0).double()
    return with_weights_of(theirs, candidate, d_model, **options), theirs


def _rows(d_model: int) -> Tensor:
    return randn64(3, 2, d_model) + 0.5


def _example(candidate: Candidate) -> object:
    return built(candidate, 5), built(candidate, 5, eps=0.1)


def _probe(candidate: Candidate) -> list[Tensor]:
    ours, theirs = _pair(candidate, 5, eps=0.1)
    return outputs_and_gradients(ours, weights_of(theirs), _rows(5))


def _close(candidate: Candidate, atol: float) -> Evidence:
    x = torch.randn(2, 3, 768)
    return equivalent(built(candidate, 768)(x), functional.rms_norm(x, (768,), eps=1e-6), atol=atol)


rms_norm = Layer(
    "RMSNorm",
    "RMSNorm(d_model, eps=1e-6)",
    example=_example,
    probe=_probe,
    attributes=("eps",),
)


@rms_norm.check("The output has the shape of the input.", weak=True)
def output_shape(candidate: Candidate) -> Evidence:
    x = torch.randn(2, 3, 768)
    return same(tuple(built(candidate, 768)(x).shape), tuple(x.shape))


@rms_norm.check(
    "With fresh weights and width 768 the values are torch's, up to 0.1.",
    name="width 768, atol 0.1",
    weak=True,
)
def width_768_atol_0_1(candidate: Candidate) -> Evidence:
    return _close(candidate, 0.1)


@rms_norm.check(
    "With fresh weights and width 768 the values are torch's, up to 0.00001.",
    name="width 768, atol 1e-5",
    weak=True,
)
def width_768_atol_1e_5(candidate: Candidate) -> Evidence:
    return _close(candidate, 1e-5)


@rms_norm.check("There is a weight, and no bias.", kind="contract")
def parameters(candidate: Candidate) -> Evidence:
    return has_parameters(built(candidate, 5), weight=(5,))


@rms_norm.check("At width 5, with eps = 0.1 and random weights, the values in float64 are torch's.")
def values(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate, 5, eps=0.1)
    x = _rows(5)
    return equivalent(ours(x), theirs(x), atol=1e-12)


@rms_norm.check("So are the gradients of the input and the weight.")
def gradients(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate, 5, eps=0.1)
    return agreeing_gradients(ours, theirs, _rows(5))


@rms_norm.check("Changing one position changes no other.")
def each_position_by_itself(candidate: Candidate) -> Evidence:
    ours, _ = _pair(candidate, 5)
    x = _rows(5)
    changed = x.clone()
    changed[0, 0] = randn64(5)
    return equivalent(ours(changed).flatten(0, 1)[1:], ours(x).flatten(0, 1)[1:], atol=0.0)


@rms_norm.check("A row of zeros gives zeros.")
def row_of_zeros(candidate: Candidate) -> Evidence:
    ours, _ = _pair(candidate, 5)
    x = torch.zeros(2, 5, dtype=torch.float64)
    return equivalent(ours(x), x, atol=0.0)


@rms_norm.check("In float16, rows with a root mean square of 600 are normalized.", kind="contract")
def half_precision(candidate: Candidate) -> Evidence:
    x = (600 * torch.randn(3, 4, 7)).half()
    expected = functional.rms_norm(x.double(), (7,)).half()
    # Values up to sqrt(7): a rounding error of 1e-3 in the result.
    return equivalent(built(candidate, 7, eps=1e-6).half()(x), expected, atol=4e-3)


@rms_norm.check("In bfloat16, rows are normalized in float32, and rounded once.", kind="contract")
def bfloat16(candidate: Candidate) -> Evidence:
    x = torch.randn(3, 4, 7).bfloat16()
    exact = functional.rms_norm(x.double(), (7,), eps=1e-6)
    return rounded_once(built(candidate, 7, eps=1e-6).bfloat16()(x), exact, atol=1e-6)


@rms_norm.check(
    "With parameters in float32, input in float16 or bfloat16 gives a result of its own dtype, "
    "computed in float32 and rounded once.",
    kind="contract",
)
def float32_parameters(candidate: Candidate) -> Evidence:
    return rounds_once_with_float32_parameters(*_pair(candidate, 64, eps=0.1), 16, 64)


@rms_norm.check("The weight starts from ones.", kind="start")
def initial_values(candidate: Candidate) -> Evidence:
    return starts_as(built(candidate, 5), transformer_layers.RMSNorm(5))


@rms_norm.check("Without an eps, it is 1e-6.", kind="start")
def default_eps(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate, 5)
    x = 3e-4 * _rows(5)  # a mean square of 1e-7
    theirs.eps = 1e-6
    return equivalent(ours(x), theirs(x), atol=1e-11)


probe(
    rms_norm,
    Probing(
        pair=lambda candidate: _pair(candidate, 5, eps=0.1),
        inputs=lambda batch, seq: (randn64(batch, seq, 5) + 0.5,),
        sizes=(5,),
        narrow=lambda candidate: (*_pair(candidate, 1, eps=0.1), (randn64(3, 2, 1),)),
    ),
)
