"""The checks of `RMSNorm`, against `torch.nn.RMSNorm`, and of the two that round elsewhere."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
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
from layer_checks.kit.definitions import Candidate, Family, Layer
from layer_checks.kit.functions import forms_of_norms
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
    forms=forms_of_norms,
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
        wide=lambda candidate, size: (*_pair(candidate, size, eps=0.1), (_rows(size),)),
    ),
)


# The readings of Llama and of Gemma: the same law, and another rounding, or another gain.


class OnePlusRMSNorm(nn.Module):
    """`torch.nn.functional.rms_norm` with the gain 1 + w."""

    def __init__(self, d_model: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        """Normalizes each row."""
        return functional.rms_norm(x, self.weight.shape, 1 + self.weight, self.eps)


@dataclass(frozen=True)
class _Reading:
    """A candidate, what it is held against, and how half precision is to be rounded."""

    candidate: Candidate
    oracle: Callable[..., nn.Module]
    exact: Callable[[Tensor, Tensor], Tensor]

    def pair(self, d_model: int = 5, **options: Any) -> tuple[nn.Module, nn.Module]:
        theirs = randomized(self.oracle(d_model, **options), std=1.0).double()
        return with_weights_of(theirs, self.candidate, d_model, **options), theirs


def _rounded_before_the_gain(x_hat: Tensor, weight: Tensor) -> Tensor:
    return weight * x_hat.to(weight.dtype)


def _one_more_in_float32(x_hat: Tensor, weight: Tensor) -> Tensor:
    return ((1 + weight.float()) * x_hat).to(weight.dtype)


def _llama(candidate: Candidate) -> _Reading:
    return _Reading(candidate, nn.RMSNorm, _rounded_before_the_gain)


def _gemma(candidate: Candidate) -> _Reading:
    return _Reading(candidate, OnePlusRMSNorm, _one_more_in_float32)


def _half(reading: _Reading, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """What a reading makes in a half precision, and what it should, bit by bit."""
    ours, theirs = reading.pair(64, eps=1e-6)
    x = (20 * torch.randn(40, 64)).to(dtype)
    weight = weights_of(theirs)["weight"].to(dtype)
    wide = x.float()
    x_hat = wide * torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + 1e-6)
    return ours.to(dtype)(x), reading.exact(x_hat, weight)


def _reading_probe(reading: _Reading) -> Iterator[Tensor]:
    ours, theirs = reading.pair(eps=0.1)
    yield from outputs_and_gradients(ours, weights_of(theirs), _rows(5))
    for dtype in (torch.float16, torch.bfloat16):
        yield _half(reading, dtype)[0].double()
    yield built(reading.candidate, 5)(3e-4 * _rows(5).float()).double()
    yield from weights_of(built(reading.candidate, 5, eps=0.1)).values()


def _reading(name: str, view: Callable[[Candidate], _Reading]) -> Layer:
    return Layer(
        name,
        f"{name}(d_model, eps=1e-6)",
        example=_example,
        probe=lambda candidate: _reading_probe(view(candidate)),
        attributes=("eps",),
        forms=forms_of_norms,
    )


llama_rms_norm = _reading("LlamaRMSNorm", _llama)
gemma_rms_norm = _reading("GemmaRMSNorm", _gemma)
readings = Family({llama_rms_norm: _llama, gemma_rms_norm: _gemma})


@readings.check("The output has the shape of the input.", name="output shape", weak=True)
def shape_of_output(reading: _Reading) -> Evidence:
    x = torch.randn(2, 3, 768)
    return same(tuple(built(reading.candidate, 768)(x).shape), tuple(x.shape))


@readings.check(
    "With fresh weights and width 768 the values are torch's, up to 0.00001.",
    name="width 768, atol 1e-5",
    weak=True,
)
def fresh_weights(reading: _Reading) -> Evidence:
    return _close(reading.candidate, 1e-5)


@readings.check("There is a weight, and no bias.", name="parameters", kind="contract")
def one_weight(reading: _Reading) -> Evidence:
    return has_parameters(built(reading.candidate, 5), weight=(5,))


@readings.check(
    {
        llama_rms_norm: "With eps = 0.1 and random weights, the values in float64 are torch's.",
        gemma_rms_norm: "With eps = 0.1 and random weights, the values in float64 are torch's with "
        "the gain 1 + weight.",
    },
    name="values",
)
def values_of_reading(reading: _Reading) -> Evidence:
    ours, theirs = reading.pair(eps=0.1)
    x = _rows(5)
    return equivalent(ours(x), theirs(x), atol=1e-12)


@readings.check("So are the gradients of the input and the weight.", name="gradients")
def gradients_of_reading(reading: _Reading) -> Evidence:
    ours, theirs = reading.pair(eps=0.1)
    return agreeing_gradients(ours, theirs, _rows(5))


@readings.check("Changing one position changes no other.", name="each position by itself")
def positions_of_reading(reading: _Reading) -> Evidence:
    ours, _ = reading.pair()
    x = _rows(5)
    changed = x.clone()
    changed[0, 0] = randn64(5)
    return equivalent(ours(changed).flatten(0, 1)[1:], ours(x).flatten(0, 1)[1:], atol=0.0)


def _says(dtype: str) -> dict[Layer, str]:
    return {
        llama_rms_norm: f"In {dtype}, rows are normalized in float32, rounded, and then multiplied "
        "by the gain, which rounds again: all but a hundredth to the last bit.",
        gemma_rms_norm: f"In {dtype}, rows are normalized and multiplied by 1 + weight in float32, "
        "and rounded once: all but a hundredth to the last bit.",
    }


def _bits(reading: _Reading, dtype: torch.dtype) -> Evidence:
    found, expected = _half(reading, dtype)
    same(found.dtype, dtype)
    return equivalent((found != expected).double().mean(), 0.0, atol=0.01)


@readings.check(_says("float16"), name="half precision", kind="contract")
def float16_of_reading(reading: _Reading) -> Evidence:
    return _bits(reading, torch.float16)


@readings.check(_says("bfloat16"), name="bfloat16", kind="contract")
def bfloat16_of_reading(reading: _Reading) -> Evidence:
    return _bits(reading, torch.bfloat16)


@readings.check(
    {
        llama_rms_norm: "The weight starts from ones.",
        gemma_rms_norm: "The weight starts from zeros.",
    },
    name="initial values",
    kind="start",
)
def start_of_reading(reading: _Reading) -> Evidence:
    kind = (
        transformer_layers.LlamaRMSNorm
        if reading.oracle is nn.RMSNorm
        else transformer_layers.GemmaRMSNorm
    )
    return starts_as(built(reading.candidate, 5), kind(5))


@readings.check("Without an eps, it is 1e-6.", name="default eps", kind="start")
def eps_of_reading(reading: _Reading) -> Evidence:
    ours, theirs = reading.pair()
    x = 3e-4 * _rows(5)  # a mean square of 1e-7
    norm: Any = theirs
    norm.eps = 1e-6
    return equivalent(ours(x), theirs(x), atol=1e-11)


def _probing_of(view: Callable[[Candidate], _Reading]) -> Probing:
    return Probing(
        pair=lambda candidate: view(candidate).pair(eps=0.1),
        inputs=lambda batch, seq: (randn64(batch, seq, 5) + 0.5,),
        sizes=(5,),
        narrow=lambda candidate: (*view(candidate).pair(1, eps=0.1), (randn64(3, 2, 1),)),
        wide=lambda candidate, size: (*view(candidate).pair(size, eps=0.1), (_rows(size),)),
    )


probe(llama_rms_norm, _probing_of(_llama))
probe(gemma_rms_norm, _probing_of(_gemma))
