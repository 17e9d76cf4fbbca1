"""Dropout: by hand, against torch's distribution, by its laws, and its errors."""

import math

import pytest
import torch
from torch import nn

from tests.transformer_layers.comparisons import unit_roundoff
from transformer_layers import Dropout, dropout

N = 1_000_000


def sigmas(successes: int, draws: int, probability: float) -> float:
    """How many standard deviations a binomial count is from its expected value."""
    deviation = math.sqrt(draws * probability * (1 - probability))
    return abs(successes - draws * probability) / deviation


# By hand


@pytest.mark.parametrize("arguments", [{"p": 0.0}, {"p": 0.5, "training": False}])
def test_off_it_returns_its_input_itself(arguments):
    x = torch.randn(3, 5)
    assert dropout(x, **arguments) is x


@pytest.mark.parametrize("value", [1.0, math.inf, math.nan])
def test_p_of_one_gives_zero_and_gradient_zero(value):
    x = torch.full((100,), value, requires_grad=True)
    y = dropout(x, p=1.0)
    assert torch.equal(y, torch.zeros(100))
    y.sum().backward()
    assert torch.equal(x.grad, torch.zeros(100))


@pytest.mark.parametrize("value", [math.inf, math.nan])
@pytest.mark.parametrize("form", [dropout, Dropout()], ids=["function", "layer"])
def test_a_dropped_infinity_is_zero_with_gradient_zero(form, value):
    x = torch.full((100,), value, requires_grad=True)
    y = form(x)
    y.sum().backward()
    zeros = y == 0
    assert 20 < int(zeros.sum()) < 80
    assert torch.equal(x.grad, torch.where(zeros, 0.0, 2.0))


def test_the_layer_is_the_function_in_training_and_the_identity_in_evaluation():
    x = torch.randn(3, 5)
    layer = Dropout(0.25)
    torch.manual_seed(3)
    expected = dropout(x, 0.25)
    torch.manual_seed(3)
    assert torch.equal(layer(x), expected)
    assert layer.eval()(x) is x


def test_defaults_are_those_of_torch():
    assert Dropout().p == nn.Dropout().p == 0.5
    x = torch.ones(1000)
    torch.manual_seed(3)
    assert 400 < int((dropout(x) == 2).sum()) < 600


def test_the_printed_form_names_p():
    assert repr(Dropout(0.25)) == "Dropout(p=0.25)"


# Against torch: the draws differ, their distribution must not


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
@pytest.mark.parametrize("p", [0.1, 0.9])
def test_values_gradients_and_share_are_those_of_torch(dtype, p):
    x = torch.ones(N, dtype=dtype, requires_grad=True)
    results = []
    for function in (dropout, nn.functional.dropout):
        y = function(x, p)
        (gradient,) = torch.autograd.grad(y.sum(), x)
        assert torch.equal(gradient, y)
        results.append(y)
    ours, theirs = results
    assert ours.dtype == theirs.dtype == dtype
    scale = 1 / (1 - p)
    # One rounding of the scale to float32, and one to the dtype.
    rounding = 2 * unit_roundoff(dtype) + unit_roundoff(torch.float32)
    for y in results:
        assert sorted(y.unique().tolist()) == [0, pytest.approx(scale, rel=rounding)]
        assert sigmas(int((y != 0).sum()), N, 1 - p) < 5


# Low precision


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_low_precision_draws_are_those_of_float32(dtype):
    x = torch.ones(N)
    torch.manual_seed(3)
    expected = dropout(x, 0.999) != 0
    torch.manual_seed(3)
    actual = dropout(x.to(dtype), 0.999) != 0
    assert torch.equal(actual, expected)
    assert sigmas(int(actual.sum()), N, 0.001) < 5
    # Drawn in the dtype itself, nothing, or half as much, would be kept.
    assert sigmas(int((torch.rand(N, dtype=dtype) > 0.999).sum()), N, 0.001) > 10


# Errors


@pytest.mark.usefixtures("as_users_run_it")
class TestErrors:
    @pytest.mark.parametrize("p", [-0.5, math.nan])
    def test_p_outside_zero_to_one(self, p):
        with pytest.raises(ValueError, match=f"^p must be between 0 and 1, got {p}"):
            dropout(torch.zeros(3), p, training=False)
        with pytest.raises(ValueError, match=f"^p must be between 0 and 1, got {p}"):
            Dropout(p)

    @pytest.mark.parametrize("training", [True, False])
    def test_no_floating_point(self, training):
        message = r"^x must be a floating-point tensor, got torch\.int64"
        with pytest.raises(TypeError, match=message):
            dropout(torch.zeros(3, dtype=torch.int64), 0.5, training)
        with pytest.raises(TypeError, match=message):
            Dropout().train(training)(torch.zeros(3, dtype=torch.int64))
