"""GPT-2's linear layer: by hand, against torch and transformers, by its laws, and its errors."""

import pytest
import torch
from torch import nn
from transformers.pytorch_utils import Conv1D as TransformersConv1D

from tests.transformer_layers.comparisons import (
    assert_same,
    relative_error,
    unit_roundoff,
    values_and_gradients,
    with_random_weights,
)
from transformer_layers import Conv1D

# By hand


def test_a_row_by_hand():
    conv = Conv1D(3, 2)
    with torch.no_grad():
        conv.weight.copy_(torch.tensor([[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]))
        conv.bias.copy_(torch.tensor([0.5, -0.5]))
    # 1 + 20 + 300 + 0.5 and 4 + 50 + 600 - 0.5
    assert conv(torch.tensor([1.0, 10.0, 100.0])).tolist() == [321.5, 653.5]


# Against torch and transformers


@pytest.mark.parametrize("shape", [(5,), (2, 3, 4, 5)])
def test_equals_transformers_in_float64(shape):
    ours = with_random_weights(Conv1D(5, 7)).double()
    theirs = TransformersConv1D(7, 5).double()  # output first
    theirs.load_state_dict(ours.state_dict(), strict=True)
    x = torch.randn(shape, dtype=torch.float64)
    assert_same(
        values_and_gradients(ours, [x], list(ours.parameters())),
        values_and_gradients(theirs, [x], list(theirs.parameters())),
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_low_precision_is_two_roundings_from_float64(dtype):
    conv = with_random_weights(Conv1D(64, 7)).to(dtype)
    x = torch.randn(11, 64).to(dtype)
    y = conv(x)
    assert y.dtype == dtype
    exact = conv.double()(x.double())  # one rounding after the product, one after the bias
    assert relative_error(y, exact) <= 2.05 * unit_roundoff(dtype)


# Laws


def test_expanded_input_which_transformers_refuses():
    conv = with_random_weights(Conv1D(5, 7)).double()
    x = torch.randn(2, 1, 5, dtype=torch.float64)
    expanded = x.expand(2, 3, 5)
    with pytest.raises(RuntimeError, match=r"^view size is not compatible"):
        TransformersConv1D(7, 5).double()(expanded)
    assert_same([conv(expanded)], [conv(x).expand(2, 3, 7)])


# Autocast


def test_autocast_gives_the_dtype_that_linear_gives():
    conv, linear = Conv1D(5, 7), nn.Linear(5, 7)
    x = torch.randn(3, 5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for given_dtype in (torch.float32, torch.bfloat16):
            assert conv(x.to(given_dtype)).dtype == linear(x.to(given_dtype)).dtype


# Errors


@pytest.mark.usefixtures("as_users_run_it")
class TestErrors:
    def test_another_width(self):
        message = r"x must have a last axis of in_features = 5, got a last axis of 7: its shape is"
        with pytest.raises(ValueError, match="^" + message):
            Conv1D(5, 7)(torch.zeros(2, 7))

    @pytest.mark.parametrize("dtype", [torch.int64])
    def test_no_floating_point(self, dtype):
        with pytest.raises(TypeError, match=f"^x must be a floating-point tensor, got {dtype}"):
            Conv1D(5, 7)(torch.zeros(2, 5, dtype=dtype))

    @pytest.mark.parametrize("of_input", [torch.float64, torch.bfloat16])
    def test_dtypes_that_differ(self, of_input):
        message = rf"x is {of_input} but .* are torch\.float32; .* layer\.to\({of_input}\)"
        with pytest.raises(TypeError, match="^" + message):
            Conv1D(5, 7)(torch.zeros(2, 5, dtype=of_input))

    def test_float64_under_autocast_which_converts_it_to_nothing(self):
        with (
            torch.autocast("cpu", dtype=torch.bfloat16),
            pytest.raises(TypeError, match=r"^x is torch\.float64 but"),
        ):
            Conv1D(5, 7)(torch.zeros(2, 5, dtype=torch.float64))

    def test_a_size_that_is_no_int(self):
        with pytest.raises(
            TypeError, match=r"^out_features must be an int, got 2\.5 of type float"
        ):
            Conv1D(2, 2.5)
