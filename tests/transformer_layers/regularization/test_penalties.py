"""Penalties and the soft threshold: by hand, against torch, by their laws, and their errors."""

import math

import pytest
import torch
from torch import nn

from tests.transformer_layers.comparisons import (
    assert_rounded_once,
    assert_same,
    relative_error,
    unit_roundoff,
    values_and_gradients,
    with_random_weights,
)
from transformer_layers import l1_penalty, l2_penalty, soft_threshold

PENALTIES = [l1_penalty, l2_penalty]
# By hand


def test_penalties_by_hand():
    parameters = [torch.tensor([[1.0, -2.0], [0.0, 3.0]]), torch.tensor([-4.0])]
    assert l1_penalty(parameters).item() == 1 + 2 + 0 + 3 + 4
    assert l2_penalty(parameters).item() == (1 + 4 + 0 + 9 + 16) / 2


def test_the_threshold_by_hand():
    x = torch.tensor([-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0], requires_grad=True)
    y = soft_threshold(x, 1.0)
    assert y.tolist() == [-2, 0, 0, 0, 0, 0, 2]
    assert not y.signbit()[1:].any()  # no negative zeros
    y.sum().backward()
    assert x.grad.tolist() == [1, 0, 0, 0, 0, 0, 1]


def test_infinities_and_nan():
    x = torch.tensor([math.inf, -math.inf, math.nan, 5.0])
    assert soft_threshold(x, 1.0)[:2].tolist() == [math.inf, -math.inf]
    assert soft_threshold(x, 1.0)[2].isnan()
    assert soft_threshold(x[3], math.inf) == 0


@pytest.mark.parametrize("penalty", PENALTIES)
def test_a_tensor_a_list_and_a_generator_are_the_same(penalty):
    layer = with_random_weights(nn.Linear(3, 2, bias=False))
    expected = penalty([layer.weight])
    assert penalty(layer.parameters()) == expected
    assert penalty(layer.weight) == expected


# Against torch


@pytest.mark.parametrize(
    ("penalty", "order", "scale", "power"), [(l1_penalty, 1, 1, 1), (l2_penalty, 2, 0.5, 2)]
)
def test_penalties_are_norms_of_all_parameters_together(penalty, order, scale, power):
    parameters = [torch.randn(shape, dtype=torch.float64) for shape in [(2, 3), (5,), ()]]

    def ours(*parameters):
        return penalty(parameters)

    def theirs(*parameters):
        flat = torch.cat([p.flatten() for p in parameters])
        return scale * torch.linalg.vector_norm(flat, ord=order) ** power

    assert_same(
        values_and_gradients(ours, parameters, []), values_and_gradients(theirs, parameters, [])
    )


@pytest.mark.parametrize("threshold", [0.0, 0.5])
def test_the_threshold_equals_softshrink(threshold):
    x = torch.randn(2, 3, 5, dtype=torch.float64)

    def ours(x):
        return soft_threshold(x, threshold)

    def theirs(x):
        return nn.functional.softshrink(x, threshold)

    assert_same(values_and_gradients(ours, [x], []), values_and_gradients(theirs, [x], []))


# Low precision


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_penalties_of_low_precision_are_summed_in_float32(penalty, dtype):
    w = (torch.randn(1000) * 30).to(dtype).requires_grad_()  # squares sum to 900,000
    value = penalty([w])
    assert value.dtype == torch.float32
    assert relative_error(value, penalty([w.double()])) <= 16 * unit_roundoff(torch.float32)
    value.backward()
    assert w.grad.dtype == dtype
    assert torch.equal(w.grad, w.sign() if penalty is l1_penalty else w)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_threshold_is_rounded_once(dtype):
    x = torch.randn(1000).to(dtype)
    y = soft_threshold(x, 0.1)
    assert y.dtype == dtype
    assert_rounded_once(y, soft_threshold(x.double(), 0.1))


# Errors


@pytest.mark.usefixtures("as_users_run_it")
class TestErrors:
    @pytest.mark.parametrize("penalty", PENALTIES)
    def test_no_parameters(self, penalty):
        read_already = nn.Linear(3, 2).parameters()
        penalty(read_already)
        with pytest.raises(ValueError, match=r"^no parameters to penalize, .* read only once"):
            penalty(read_already)

    @pytest.mark.parametrize("penalty", PENALTIES)
    def test_parameters_that_are_no_floating_point(self, penalty):
        with pytest.raises(
            TypeError, match=r"^each parameter must be a floating-point tensor, got torch\.int64"
        ):
            penalty([torch.zeros(3), torch.zeros(3, dtype=torch.int64)])

    @pytest.mark.parametrize("threshold", [-0.5])
    def test_a_negative_threshold(self, threshold):
        with pytest.raises(ValueError, match=f"^threshold must be at least 0, got {threshold}"):
            soft_threshold(torch.zeros(3), threshold)

    def test_no_floating_point(self):
        with pytest.raises(TypeError, match=r"^x must be a floating-point tensor, got torch.int64"):
            soft_threshold(torch.zeros(3, dtype=torch.int64), 0.5)
