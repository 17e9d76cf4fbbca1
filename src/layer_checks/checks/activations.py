"""The checks of `gelu` and `gelu_tanh`, against `torch.nn.functional.gelu`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from layer_checks.evidence.evidence import Evidence, equivalent
from layer_checks.evidence.gradients import same_gradients
from layer_checks.kit.candidates import outputs_and_gradients, randn64, rounded_once, same
from layer_checks.kit.definitions import Candidate, Family, Layer
from layer_checks.kit.probes import Probing, probe


@dataclass(frozen=True)
class _Activation:
    """A candidate, and which of torch's forms it is to be."""

    candidate: Candidate
    form: Literal["none", "tanh"]

    def __call__(self, x: Tensor) -> Tensor:
        return self.candidate(x)

    def oracle(self, x: Tensor) -> Tensor:
        return functional.gelu(x, approximate=self.form)


def _range() -> Tensor:
    # Moved at random, so that no point is 0, where several wrong forms agree.
    moved = torch.linspace(-6, 6, 59, dtype=torch.float64) + 0.1 * torch.randn(1).item()
    return moved.clamp(-6, 6)


def _example(candidate: Candidate) -> object:
    return candidate(torch.randn(2, 3))


def _probe(candidate: Candidate) -> list[Tensor]:
    return outputs_and_gradients(candidate, {}, _range())


gelu = Layer("gelu", "gelu(x)", _example, _probe)
gelu_tanh = Layer("gelu_tanh", "gelu_tanh(x)", _example, _probe)
both = Family(
    {
        gelu: lambda candidate: _Activation(candidate, "none"),
        gelu_tanh: lambda candidate: _Activation(candidate, "tanh"),
    }
)


@both.check("The output has the shape of the input.", weak=True)
def output_shape(activation: _Activation) -> Evidence:
    return same(tuple(activation(torch.randn(2, 3, 4)).shape), (2, 3, 4))


@both.check("It is 0 at -20 and at 0, and 20 at 20.", weak=True)
def limits(activation: _Activation) -> Evidence:
    x = torch.tensor([-20.0, 0.0, 20.0])
    return equivalent(activation(x), [0.0, 0.0, 20.0], atol=1e-6)


@both.check(
    "For 1,000 normal numbers the values are torch's, up to 0.001.",
    name="randn, atol 1e-3",
    weak=True,
)
def close(activation: _Activation) -> Evidence:
    x = torch.randn(1000)
    return equivalent(activation(x), activation.oracle(x), atol=1e-3)


@both.check(
    {
        gelu: "Between -6 and 6, in float64, it is x·Φ(x).",
        gelu_tanh: "Between -6 and 6, in float64, it is x/2·(1 + tanh[√(2/π)·(x + 0.044715x³)]).",
    }
)
def values(activation: _Activation) -> Evidence:
    x = _range()
    return equivalent(activation(x), activation.oracle(x), atol=1e-14)


@both.check("So is its derivative that of the formula.")
def gradients(activation: _Activation) -> Evidence:
    return same_gradients(activation, activation.oracle, _range(), atol=1e-13)


@both.check("The output has the dtype of the input.", kind="contract")
def dtype(activation: _Activation) -> Evidence:
    dtypes = [torch.half, torch.double]
    return same([activation(torch.ones(2, dtype=each)).dtype for each in dtypes], dtypes)


@both.check("In bfloat16 it is computed in float32, and rounded once.", kind="contract")
def bfloat16(activation: _Activation) -> Evidence:
    x = _range().bfloat16()
    return rounded_once(activation(x), activation.oracle(x.double()), atol=1e-6)


def _probing(view: Callable[[Candidate], _Activation]) -> Probing:
    return Probing(
        pair=lambda candidate: (candidate, view(candidate).oracle),
        inputs=lambda batch, seq: (randn64(batch, seq, 5),),
    )


for _layer, _view in both.views.items():
    probe(_layer, _probing(_view))
