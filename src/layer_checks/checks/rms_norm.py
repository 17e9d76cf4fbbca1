"""The checks of `RMSNorm`, against `torch.nn.RMSNorm`."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from layer_checks.candidates import (
    built,
    counterparts,
    has_parameters,
    load,
    outputs_and_gradients,
    randn64,
    randomized,
    same,
    weights_of,
)
from layer_checks.definitions import Candidate, Check, Layer
from layer_checks.evidence import Evidence, equivalent
from layer_checks.gradients import same_gradients
from layer_checks.wrong.rms_norm import WRONG_RMS_NORMS


def _pair(candidate: Candidate, d_model: int, **options: Any) -> tuple[nn.Module, nn.RMSNorm]:
    theirs = randomized(nn.RMSNorm(d_model, **options), std=1.0).double()
    return load(built(candidate, d_model, **options).double(), weights_of(theirs)), theirs


def _rows(d_model: int) -> Tensor:
    return randn64(3, 2, d_model) + 0.5


def _example(candidate: Candidate) -> object:
    return built(candidate, 5), built(candidate, 5, eps=0.1)


def _probe(candidate: Candidate) -> list[Tensor]:
    ours, theirs = _pair(candidate, 5, eps=0.1)
    return outputs_and_gradients(ours, weights_of(theirs), _rows(5))


def _output_shape(candidate: Candidate) -> Evidence:
    x = torch.randn(2, 3, 768)
    return same(tuple(built(candidate, 768)(x).shape), tuple(x.shape))


def _close(candidate: Candidate, atol: float) -> Evidence:
    x = torch.randn(2, 3, 768)
    return equivalent(built(candidate, 768)(x), functional.rms_norm(x, (768,), eps=1e-6), atol=atol)


def _parameters(candidate: Candidate) -> Evidence:
    layer = built(candidate, 5)
    has_parameters(layer, weight=(5,))
    return equivalent(weights_of(layer)["weight"], torch.ones(5), atol=0.0)


def _values(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate, 5, eps=0.1)
    x = _rows(5)
    return equivalent(ours(x), theirs(x), atol=1e-12)


def _gradients(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate, 5, eps=0.1)
    names = counterparts(ours, weights_of(theirs))
    return same_gradients(ours, theirs, _rows(5), atol=1e-11, parameters=names)


def _each_position_by_itself(candidate: Candidate) -> Evidence:
    ours, _ = _pair(candidate, 5)
    x = _rows(5)
    changed = x.clone()
    changed[0, 0] = randn64(5)
    return equivalent(ours(changed).flatten(0, 1)[1:], ours(x).flatten(0, 1)[1:], atol=0.0)


def _row_of_zeros(candidate: Candidate) -> Evidence:
    ours, _ = _pair(candidate, 5)
    x = torch.zeros(2, 5, dtype=torch.float64)
    return equivalent(ours(x), x, atol=0.0)


def _half_precision(candidate: Candidate) -> Evidence:
    x = (600 * torch.randn(3, 4, 7)).half()
    expected = functional.rms_norm(x.double(), (7,)).half()
    # Values up to sqrt(7): a rounding error of 1e-3 in the result.
    return equivalent(built(candidate, 7).half()(x), expected, atol=4e-3)


RMS_NORM = Layer(
    name="RMSNorm",
    signature="RMSNorm(d_model, eps=1e-6)",
    example=_example,
    probe=_probe,
    wrong_versions=WRONG_RMS_NORMS,
    checks=(
        Check("output shape", "The output has the shape of the input.", _output_shape, weak=True),
        Check(
            "width 768, atol 0.1",
            "With fresh weights and width 768 the values are torch's, up to 0.1.",
            lambda candidate: _close(candidate, 0.1),
            weak=True,
        ),
        Check(
            "width 768, atol 1e-5",
            "With fresh weights and width 768 the values are torch's, up to 0.00001.",
            lambda candidate: _close(candidate, 1e-5),
            weak=True,
        ),
        Check("parameters", "There is a weight of ones, and no bias.", _parameters),
        Check(
            "values",
            "At width 5, with eps = 0.1 and random weights, the values in float64 are torch's.",
            _values,
        ),
        Check("gradients", "So are the gradients of the input and the weight.", _gradients),
        Check(
            "each position by itself",
            "Changing one position changes no other.",
            _each_position_by_itself,
        ),
        Check("row of zeros", "A row of zeros gives zeros.", _row_of_zeros),
        Check(
            "half precision",
            "In float16, rows with a root mean square of 600 are normalized.",
            _half_precision,
        ),
    ),
)
