"""The checks of `l1_penalty`, `l2_penalty` and `soft_threshold`."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from layer_checks.evidence.evidence import Evidence, equivalent
from layer_checks.evidence.gradients import same_gradients
from layer_checks.kit.candidates import outputs_and_gradients, randn64, same
from layer_checks.kit.definitions import Candidate, Family, Layer
from layer_checks.kit.probes import Probing, probe


@dataclass(frozen=True)
class _Penalty:
    """A candidate, and what it is to be."""

    candidate: Candidate
    oracle: Callable[[list[Tensor]], Tensor]


def _l1(parameters: list[Tensor]) -> Tensor:
    joined = torch.cat([parameter.flatten() for parameter in parameters])
    return torch.linalg.vector_norm(joined, ord=1)


def _l2(parameters: list[Tensor]) -> Tensor:
    joined = torch.cat([parameter.flatten() for parameter in parameters])
    return 0.5 * functional.mse_loss(joined, torch.zeros_like(joined), reduction="sum")


def _weights() -> list[Tensor]:
    return [randn64(3, 4), randn64(5), randn64(2, 3, 2)]


def _of_two(candidate: Candidate) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda weight, bias: candidate([weight, bias])


def _example_penalty(candidate: Candidate) -> object:
    return candidate([torch.ones(2, 3), torch.ones(3)])


def _probe_penalty(candidate: Candidate) -> list[Tensor]:
    return outputs_and_gradients(_of_two(candidate), {}, randn64(3, 4), randn64(5))


l1_penalty = Layer("l1_penalty", "l1_penalty(parameters)", _example_penalty, _probe_penalty)
l2_penalty = Layer("l2_penalty", "l2_penalty(parameters)", _example_penalty, _probe_penalty)
both = Family(
    {
        l1_penalty: lambda candidate: _Penalty(candidate, _l1),
        l2_penalty: lambda candidate: _Penalty(candidate, _l2),
    }
)


@both.check(
    {
        l1_penalty: "Of one tensor of four ones it is 4.",
        l2_penalty: "Of one tensor of four ones it is 2.",
    },
    weak=True,
)
def four_ones(penalty: _Penalty) -> Evidence:
    ones = [torch.ones(4)]
    return equivalent(penalty.candidate(ones), penalty.oracle(ones))


@both.check(
    {
        l1_penalty: "Of three tensors it is the sum of all absolute values.",
        l2_penalty: "Of three tensors it is half the sum of all squares.",
    }
)
def values(penalty: _Penalty) -> Evidence:
    weights = _weights()
    return equivalent(penalty.candidate(weights), penalty.oracle(weights), atol=1e-12)


@both.check("So is its gradient with respect to each tensor.")
def gradients(penalty: _Penalty) -> Evidence:
    ours, theirs = _of_two(penalty.candidate), _of_two(penalty.oracle)
    return same_gradients(ours, theirs, randn64(3, 4), randn64(5), atol=1e-12)


@both.check(
    {
        l1_penalty: "At a weight of 0 the gradient is 0, and at others their sign.",
        l2_penalty: "At a weight of 0 the gradient is 0, also where all are 0.",
    }
)
def gradient_at_zero(penalty: _Penalty) -> Evidence:
    ours, theirs = _of_two(penalty.candidate), _of_two(penalty.oracle)
    zeros = torch.zeros(5, dtype=torch.float64)
    some = randn64(3, 4) * torch.tensor([1.0, 0.0, 1.0, 0.0])
    same_gradients(ours, theirs, torch.zeros_like(some), zeros, atol=1e-12)
    return same_gradients(ours, theirs, some, zeros, atol=1e-12)


@both.check("A generator of tensors, such as layer.parameters(), gives the same.", kind="contract")
def generator(penalty: _Penalty) -> Evidence:
    weights = _weights()
    found = penalty.candidate(weight for weight in weights)
    return equivalent(found, penalty.oracle(weights), atol=1e-12)


@both.check("Of bfloat16 tensors it is a float32, summed up in float32.", kind="contract")
def bfloat16(penalty: _Penalty) -> Evidence:
    weights = [weight.bfloat16() for weight in _weights()]
    exact = penalty.oracle([weight.double() for weight in weights])
    return equivalent(penalty.candidate(weights), exact.float(), rtol=1e-6)


def _probe_threshold(candidate: Candidate) -> list[Tensor]:
    return outputs_and_gradients(lambda x: candidate(x, 0.7), {}, randn64(4, 6))


soft_threshold = Layer(
    "soft_threshold",
    "soft_threshold(x, threshold)",
    example=lambda candidate: candidate(torch.randn(2, 3), 0.5),
    probe=_probe_threshold,
    not_mistakes={"small values flushed to zero"},  # as they should be
)


@soft_threshold.check("The output has the shape of the input.", name="output shape", weak=True)
def threshold_shape(candidate: Candidate) -> Evidence:
    return same(tuple(candidate(torch.randn(2, 3, 4), 0.5).shape), (2, 3, 4))


@soft_threshold.check("Values within the threshold become 0.", weak=True)
def small_values(candidate: Candidate) -> Evidence:
    return equivalent(candidate(torch.tensor([0.25, 0.0, -0.25]), 0.5), 0.0)


@soft_threshold.check("The values are those of torch.nn.functional.softshrink.", name="values")
def threshold_values(candidate: Candidate) -> Evidence:
    x = 2 * randn64(4, 6)
    return equivalent(candidate(x, 0.7), functional.softshrink(x, 0.7), atol=1e-15)


@soft_threshold.check("So is the gradient.", name="gradients")
def threshold_gradients(candidate: Candidate) -> Evidence:
    return same_gradients(
        lambda x: candidate(x, 0.7),
        lambda x: functional.softshrink(x, 0.7),
        2 * randn64(4, 6),
        atol=1e-15,
    )


@soft_threshold.check("At 0 the value and the gradient are 0.")
def at_zero(candidate: Candidate) -> Evidence:
    return same_gradients(
        lambda x: candidate(x, 0.7),
        lambda x: functional.softshrink(x, 0.7),
        randn64(4, 6) * torch.tensor([1.0, 0.0, 2.0, 0.0, 0.5, 3.0]),
        atol=1e-15,
    )


@soft_threshold.check("With a threshold of 0 nothing moves, nor does a 0.")
def threshold_of_zero(candidate: Candidate) -> Evidence:
    x = randn64(4, 6)
    same_gradients(lambda x: candidate(x, 0.0), lambda x: x.clone(), x, atol=1e-15)
    with_zeros = x * torch.tensor([1.0, 0.0, 2.0, 0.0, 0.5, 3.0])
    return equivalent(candidate(with_zeros, 0.0), with_zeros, atol=1e-15)


@soft_threshold.check(
    "Writing into the result does not change the input, also where nothing moves.", kind="contract"
)
def memory_of_its_own(candidate: Candidate) -> Evidence:
    for threshold in (0.0, 0.7):
        x = randn64(4, 6)
        before = x.clone()
        candidate(x, threshold).zero_()
        evidence = equivalent(x, before, atol=0.0)
    return evidence


@soft_threshold.check("It is the z with the least (z - x)²/2 + threshold·|z|, found on a grid.")
def minimizer(candidate: Candidate) -> Evidence:
    x = 2 * randn64(24)
    grid = torch.linspace(-8, 8, 16_001, dtype=torch.float64)
    objective = 0.5 * (grid - x[:, None]).square() + 0.7 * grid.abs()
    # The grid has steps of 0.001.
    return equivalent(candidate(x, 0.7), grid[objective.argmin(dim=1)], atol=5.1e-4)


def _probing(view: Callable[[Candidate], _Penalty]) -> Probing:
    return Probing(
        pair=lambda candidate: (
            _of_two(candidate),
            _of_two(view(candidate).oracle),
        ),
        inputs=lambda batch, seq: (randn64(batch, seq), randn64(seq)),
        makes=lambda candidate: (_of_two(candidate), (randn64(3, 4), randn64(5))),
        half=False,  # they are summed up in float32
        batched=False,
    )


for _layer, _view in both.views.items():
    probe(_layer, _probing(_view))
probe(
    soft_threshold,
    Probing(
        pair=lambda candidate: (
            lambda x: candidate(x, 0.7),
            lambda x: functional.softshrink(x, 0.7),
        ),
        inputs=lambda batch, seq: (randn64(batch, seq, 5),),
    ),
)
