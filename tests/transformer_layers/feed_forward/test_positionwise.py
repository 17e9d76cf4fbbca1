"""The feed-forward layer of 2017."""

import pytest
import torch
from torch import nn

from tests.transformer_layers.comparisons import (
    assert_same,
    relative_error,
    unit_roundoff,
    values_and_gradients,
    with_random_weights,
)
from transformer_layers import PositionwiseFeedForward

BATCH, SEQ, D_MODEL, D_FF = 2, 5, 6, 11


def random_layer(dropout=0.0):
    return with_random_weights(PositionwiseFeedForward(D_MODEL, D_FF, dropout)).double()


def random_input(*leading):
    return torch.randn(*leading, D_MODEL, dtype=torch.float64)


def test_by_hand():
    layer = PositionwiseFeedForward(2, 3).eval()
    with torch.no_grad():
        layer.linear1.weight.copy_(torch.tensor([[1.0, 0.0], [-1.0, 0.0], [1.0, 1.0]]))
        layer.linear1.bias.copy_(torch.tensor([0.0, 0.0, -1.0]))
        layer.linear2.weight.copy_(torch.tensor([[1.0, 10.0, 100.0], [0.0, 0.0, 1.0]]))
        layer.linear2.bias.copy_(torch.tensor([0.5, 0.0]))
    # (2, 3): the hidden features are 2, -2 (cut to 0) and 2 + 3 - 1.
    output = layer(torch.tensor([[2.0, 3.0], [-1.0, 0.0]]))
    torch.testing.assert_close(output, torch.tensor([[402.5, 4.0], [10.5, 0.0]]))


@pytest.mark.parametrize("leading", [(BATCH, SEQ), (), (2, 3, SEQ)])
def test_equals_torchs_layers_in_sequence(leading):
    layer, x = random_layer(), random_input(*leading)
    sequence = nn.Sequential(nn.Linear(D_MODEL, D_FF), nn.ReLU(), nn.Linear(D_FF, D_MODEL)).double()
    names = {"0.weight": "linear1.weight", "0.bias": "linear1.bias"}
    names |= {"2.weight": "linear2.weight", "2.bias": "linear2.bias"}
    state = layer.state_dict()
    sequence.load_state_dict({theirs: state[ours] for theirs, ours in names.items()})
    ours = values_and_gradients(layer, [x], list(layer.parameters()))
    assert_same(ours, values_and_gradients(sequence, [x], list(sequence.parameters())))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_low_precision_stays_near_float64(dtype):
    layer, x = random_layer().to(dtype), random_input(BATCH, SEQ).to(dtype)
    output = layer(x)
    assert output.dtype == dtype
    exact = layer.double()(x.double())
    # Two maps, two roundings each; in float32 the sums of up to 11 terms are rounded, too: 4.01 has
    # been seen, of the largest element.
    assert relative_error(output, exact) <= 8 * unit_roundoff(dtype)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((4, 0), ValueError, "d_ff must be at least 1, got 0"),
        ((4, 8.0), TypeError, "d_ff must be an int, got 8.0"),
        ((4, 8, 1.5), ValueError, "dropout must be between 0 and 1, got 1.5"),
    ],
)
def test_errors_of_construction(arguments, error, message):
    with pytest.raises(error, match="^" + message):
        PositionwiseFeedForward(*arguments)


@pytest.mark.usefixtures("as_users_run_it")
def test_the_name_of_an_activation_is_refused():
    message = r"activation must be a function .*, such as .*gelu; got 'relu' of type str"
    with pytest.raises(TypeError, match="^" + message):
        PositionwiseFeedForward(4, 8, activation="relu")


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (
            torch.zeros(2, 5),
            ValueError,
            r"x must have a last axis of d_model = 4, got a last axis of 5: its shape is \(2, 5\)",
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
        PositionwiseFeedForward(4, 8)(x)
