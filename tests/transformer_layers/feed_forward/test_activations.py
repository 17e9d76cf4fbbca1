"""GELU, exact and by tanh: by hand, against torch and transformers, by their laws, and errors."""

import math

import pytest
import torch
from torch import nn
from transformers.activations import NewGELUActivation

from tests.transformer_layers.comparisons import (
    assert_rounded_once,
    assert_same,
    values_and_gradients,
)
from transformer_layers import gelu, gelu_tanh

FORMS = [gelu, gelu_tanh]


def torchs_tanh(x):
    return nn.functional.gelu(x, approximate="tanh")


# By hand


@pytest.mark.parametrize(
    ("function", "at_one"),
    [
        (gelu, 0.8413447460685429),  # the share of a normal distribution below one deviation
        (gelu_tanh, 0.5 * (1 + math.tanh(math.sqrt(2 / math.pi) * 1.044715))),
    ],
)
def test_values_by_hand(function, at_one):
    y = function(torch.tensor([0.0, 1.0, -1.0], dtype=torch.float64))
    expected = torch.tensor([0.0, at_one, at_one - 1], dtype=torch.float64)
    torch.testing.assert_close(y, expected, rtol=1e-14, atol=0)


def test_the_two_forms_differ_by_what_the_docstring_says():
    x = torch.linspace(-8, 8, 160_001, dtype=torch.float64)
    difference = (gelu(x) - gelu_tanh(x)).abs()
    assert difference.max().item() == pytest.approx(4.732e-4, abs=5e-8)
    assert x[difference.argmax()].abs().item() == pytest.approx(2.699, abs=5e-4)


@pytest.mark.parametrize("function", FORMS)
def test_infinities(function):
    y = function(torch.tensor([math.inf, -math.inf, math.nan]))
    assert y[0] == math.inf
    assert y[1:].isnan().all()
    assert torch.equal(function(torch.tensor([1e20, -1e20])), torch.tensor([1e20, -0.0]))


# Against torch and transformers


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(gelu, nn.functional.gelu), (gelu_tanh, torchs_tanh), (gelu_tanh, NewGELUActivation())],
)
def test_equals_the_oracle_in_float64(ours, theirs):
    x = 3 * torch.randn(2, 3, 5, dtype=torch.float64)
    assert_same(values_and_gradients(ours, [x], []), values_and_gradients(theirs, [x], []))


def test_the_exact_form_is_exact_far_to_the_left():
    x = torch.linspace(-30, -1, 59, dtype=torch.float64)
    expected = [v / 2 * math.erfc(-v / math.sqrt(2)) for v in x.tolist()]
    expected = torch.tensor(expected, dtype=torch.float64)
    torch.testing.assert_close(gelu(x), expected, rtol=1e-12, atol=0)
    # torch adds 1 to erf: at -9 nothing is left of a number of size 1e-18
    assert nn.functional.gelu(torch.tensor(-9.0, dtype=torch.float64)) == 0
    assert gelu(torch.tensor(-9.0, dtype=torch.float64)) < 0


@pytest.mark.parametrize("function", FORMS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_low_precision_is_one_rounding_from_float64(function, dtype):
    x = torch.randn(1000).to(dtype)
    y = function(x)
    assert y.dtype == dtype
    assert_rounded_once(y, function(x.double()))


# Errors


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize("function", FORMS)
def test_no_floating_point(function):
    with pytest.raises(TypeError, match=r"^x must be a floating-point tensor, got torch\.int64"):
        function(torch.zeros(3, dtype=torch.int64))
