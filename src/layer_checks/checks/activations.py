"""The checks of `gelu` and `gelu_tanh`, against `torch.nn.functional.gelu`."""

from typing import Literal, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

from layer_checks.candidates import outputs_and_gradients, same
from layer_checks.definitions import Candidate, Check, Layer
from layer_checks.evidence import Evidence, equivalent
from layer_checks.gradients import same_gradients
from layer_checks.wrong.activations import WRONG_GELUS, WRONG_TANH_GELUS

Form: TypeAlias = Literal["none", "tanh"]


def _authority(x: Tensor, form: Form) -> Tensor:
    return functional.gelu(x, approximate=form)


def _range() -> Tensor:
    # Moved at random, so that no point is 0, where several wrong forms agree.
    moved = torch.linspace(-6, 6, 59, dtype=torch.float64) + 0.1 * torch.randn(1).item()
    return moved.clamp(-6, 6)


def _example(candidate: Candidate) -> object:
    return candidate(torch.randn(2, 3))


def _probe(candidate: Candidate) -> list[Tensor]:
    return outputs_and_gradients(candidate, {}, _range())


def _output_shape(candidate: Candidate) -> Evidence:
    return same(tuple(candidate(torch.randn(2, 3, 4)).shape), (2, 3, 4))


def _limits(candidate: Candidate) -> Evidence:
    x = torch.tensor([-20.0, 0.0, 20.0])
    return equivalent(candidate(x), [0.0, 0.0, 20.0], atol=1e-6)


def _close(candidate: Candidate, form: Form) -> Evidence:
    x = torch.randn(1000)
    return equivalent(candidate(x), _authority(x, form), atol=1e-3)


def _values(candidate: Candidate, form: Form) -> Evidence:
    x = _range()
    return equivalent(candidate(x), _authority(x, form), atol=1e-14)


def _gradients(candidate: Candidate, form: Form) -> Evidence:
    return same_gradients(candidate, lambda x: _authority(x, form), _range(), atol=1e-13)


def _dtype(candidate: Candidate) -> Evidence:
    found = [candidate(torch.ones(2, dtype=dtype)).dtype for dtype in (torch.half, torch.double)]
    return same(found, [torch.half, torch.double])


def _checks(form: Form, formula: str) -> tuple[Check, ...]:
    return (
        Check("output shape", "The output has the shape of the input.", _output_shape, weak=True),
        Check("limits", "It is 0 at -20 and at 0, and 20 at 20.", _limits, weak=True),
        Check(
            "randn, atol 1e-3",
            "For 1,000 normal numbers the values are torch's, up to 0.001.",
            lambda candidate: _close(candidate, form),
            weak=True,
        ),
        Check(
            "values",
            f"Between -6 and 6, in float64, it is {formula}.",
            lambda candidate: _values(candidate, form),
        ),
        Check(
            "gradients",
            "So is its derivative that of the formula.",
            lambda candidate: _gradients(candidate, form),
        ),
        Check("dtype", "The output has the dtype of the input.", _dtype),
    )


GELU = Layer(
    name="gelu",
    signature="gelu(x)",
    example=_example,
    probe=_probe,
    wrong_versions=WRONG_GELUS,
    checks=_checks("none", "x·Φ(x)"),
)

GELU_TANH = Layer(
    name="gelu_tanh",
    signature="gelu_tanh(x)",
    example=_example,
    probe=_probe,
    wrong_versions=WRONG_TANH_GELUS,
    checks=_checks("tanh", "x/2·(1 + tanh[√(2/π)·(x + 0.044715x³)])"),
)
