"""GPT-2's feed-forward layer against that of `transformers`."""

import pytest
import torch
from transformers import GPT2Config
from transformers.models.gpt2.modeling_gpt2 import GPT2MLP

from tests.transformer_layers.comparisons import (
    assert_same,
    relative_error,
    unit_roundoff,
    values_and_gradients,
    with_random_weights,
)
from transformer_layers import FeedForward

BATCH, SEQ, D_MODEL, D_FF = 2, 5, 6, 11


def random_layer(dropout=0.0):
    return with_random_weights(FeedForward(D_MODEL, D_FF, dropout)).double()


def random_input(*leading):
    return torch.randn(*leading, D_MODEL, dtype=torch.float64)


def test_by_hand():
    layer = FeedForward(2, 3).eval()
    with torch.no_grad():
        layer.c_fc.weight.copy_(torch.tensor([[1.0, -1.0, 0.0], [0.0, 0.0, 0.0]]))
        layer.c_fc.bias.copy_(torch.tensor([0.0, 0.0, 50.0]))
        layer.c_proj.weight.copy_(torch.tensor([[1.0, 0.0], [10.0, 0.0], [0.0, 1.0]]))
        layer.c_proj.bias.copy_(torch.tensor([0.0, 0.25]))
    # GELU: 0.8412 at 1, -0.1588 at -1 (0.8413 and -0.1587 without the tanh), 50 at 50.
    output = layer(torch.tensor([[1.0, 7.0]]))
    expected = torch.tensor([[0.841192 - 1.588080, 50.25]])
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("leading", [(SEQ,), (2, 3, SEQ)])
def test_equals_the_layer_of_transformers(leading):
    config = GPT2Config(n_embd=D_MODEL, n_head=2, resid_pdrop=0.0)
    theirs = GPT2MLP(D_FF, config).double()
    layer, x = random_layer(), random_input(*leading)
    theirs.load_state_dict(layer.state_dict(), strict=True)
    assert [name for name, _ in layer.named_parameters()] == [
        name for name, _ in theirs.named_parameters()
    ]
    ours = values_and_gradients(layer, [x], list(layer.parameters()))
    assert_same(ours, values_and_gradients(theirs, [x], list(theirs.parameters())))


def test_is_four_times_as_wide_inside_by_default():
    layer = FeedForward(6)
    assert layer.c_fc.weight.shape == (6, 24)
    assert layer.c_proj.weight.shape == (24, 6)
    assert layer.dropout.p == 0.1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_low_precision_stays_near_float64(dtype):
    layer, x = random_layer().to(dtype), random_input(BATCH, SEQ).to(dtype)
    output = layer(x)
    assert output.dtype == dtype
    exact = layer.double()(x.double())
    # Product and bias of two maps, and the GELU between them: five roundings; in float32 those of
    # the sums add to them, 5.2 of the largest element have been seen.
    assert relative_error(output, exact) <= 10 * unit_roundoff(dtype)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0,), ValueError, "d_model must be at least 1, got 0"),
        ((4, 8.0), TypeError, "d_ff must be an int, got 8.0"),
        ((4, 8, -0.5), ValueError, "dropout must be between 0 and 1, got -0.5"),
    ],
)
def test_errors_of_construction(arguments, error, message):
    with pytest.raises(error, match="^" + message):
        FeedForward(*arguments)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (
            torch.zeros(2, 16),
            ValueError,
            r"x must have a last axis of in_features = 4, got a last axis of 16: its shape is "
            r"\(2, 16\)",
        ),
        (
            torch.zeros(2, 4, dtype=torch.float64),
            TypeError,
            "x is torch.float64 but the layer's parameters are torch.float32",
        ),
    ],
)
def test_errors_of_input(x, error, message):
    with pytest.raises(error, match="^" + message):
        FeedForward(4)(x)
