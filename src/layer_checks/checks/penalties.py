"""The checks of `l1_penalty`, `l2_penalty` and `soft_threshold`."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from layer_checks.candidates import outputs_and_gradients, randn64, same
from layer_checks.definitions import Candidate, Check, Layer
from layer_checks.evidence import Evidence, equivalent
from layer_checks.gradients import same_gradients
from layer_checks.wrong.penalties import (
    WRONG_L1_PENALTIES,
    WRONG_L2_PENALTIES,
    WRONG_SOFT_THRESHOLDS,
)

Penalty = Callable[[list[Tensor]], Tensor]


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


def _ones(candidate: Candidate, expected: float) -> Evidence:
    return equivalent(candidate([torch.ones(4)]), expected)


def _values(candidate: Candidate, authority: Penalty) -> Evidence:
    weights = _weights()
    return equivalent(candidate(weights), authority(weights), atol=1e-12)


def _gradients(candidate: Candidate, authority: Penalty) -> Evidence:
    weights = randn64(3, 4), randn64(5)
    return same_gradients(_of_two(candidate), _of_two(authority), *weights, atol=1e-12)


def _generator(candidate: Candidate, authority: Penalty) -> Evidence:
    weights = _weights()
    found = candidate(weight for weight in weights)
    return equivalent(found, authority(weights), atol=1e-12)


def _penalty_checks(authority: Penalty, of_four_ones: float, formula: str) -> tuple[Check, ...]:
    return (
        Check(
            "four ones",
            f"Of one tensor of four ones it is {of_four_ones:g}.",
            lambda candidate: _ones(candidate, of_four_ones),
            weak=True,
        ),
        Check(
            "values",
            f"Of three tensors it is {formula}.",
            lambda candidate: _values(candidate, authority),
        ),
        Check(
            "gradients",
            "So is its gradient with respect to each tensor.",
            lambda candidate: _gradients(candidate, authority),
        ),
        Check(
            "generator",
            "A generator of tensors, such as layer.parameters(), gives the same.",
            lambda candidate: _generator(candidate, authority),
        ),
    )


L1_PENALTY = Layer(
    name="l1_penalty",
    signature="l1_penalty(parameters)",
    example=_example_penalty,
    probe=_probe_penalty,
    wrong_versions=WRONG_L1_PENALTIES,
    checks=_penalty_checks(_l1, 4.0, "the sum of all absolute values"),
)

L2_PENALTY = Layer(
    name="l2_penalty",
    signature="l2_penalty(parameters)",
    example=_example_penalty,
    probe=_probe_penalty,
    wrong_versions=WRONG_L2_PENALTIES,
    checks=_penalty_checks(_l2, 2.0, "half the sum of all squares"),
)


def _probe_threshold(candidate: Candidate) -> list[Tensor]:
    return outputs_and_gradients(lambda x: candidate(x, 0.7), {}, randn64(4, 6))


def _threshold_shape(candidate: Candidate) -> Evidence:
    return same(tuple(candidate(torch.randn(2, 3, 4), 0.5).shape), (2, 3, 4))


def _small_values(candidate: Candidate) -> Evidence:
    return equivalent(candidate(torch.tensor([0.25, 0.0, -0.25]), 0.5), 0.0)


def _threshold_values(candidate: Candidate) -> Evidence:
    x = 2 * randn64(4, 6)
    return equivalent(candidate(x, 0.7), functional.softshrink(x, 0.7), atol=1e-15)


def _threshold_gradients(candidate: Candidate) -> Evidence:
    return same_gradients(
        lambda x: candidate(x, 0.7),
        lambda x: functional.softshrink(x, 0.7),
        2 * randn64(4, 6),
        atol=1e-15,
    )


def _minimizer(candidate: Candidate) -> Evidence:
    x = 2 * randn64(24)
    grid = torch.linspace(-8, 8, 16_001, dtype=torch.float64)
    objective = 0.5 * (grid - x[:, None]).square() + 0.7 * grid.abs()
    # The grid has steps of 0.001.
    return equivalent(candidate(x, 0.7), grid[objective.argmin(dim=1)], atol=5.1e-4)


SOFT_THRESHOLD = Layer(
    name="soft_threshold",
    signature="soft_threshold(x, threshold)",
    example=lambda candidate: candidate(torch.randn(2, 3), 0.5),
    probe=_probe_threshold,
    wrong_versions=WRONG_SOFT_THRESHOLDS,
    checks=(
        Check(
            "output shape",
            "The output has the shape of the input.",
            _threshold_shape,
            weak=True,
        ),
        Check(
            "small values",
            "Values within the threshold become 0.",
            _small_values,
            weak=True,
        ),
        Check(
            "values",
            "The values are those of torch.nn.functional.softshrink.",
            _threshold_values,
        ),
        Check("gradients", "So is the gradient.", _threshold_gradients),
        Check(
            "minimizer",
            "It is the z with the least (z - x)²/2 + threshold·|z|, found on a grid.",
            _minimizer,
        ),
    ),
)
