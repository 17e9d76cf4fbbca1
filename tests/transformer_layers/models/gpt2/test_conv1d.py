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

SHAPES = [(5,), (3, 5), (2, 3, 4, 5), (0, 5), (1025, 5)]


# By hand


def test_a_row_by_hand():
    conv = Conv1D(3, 2)
    with torch.no_grad():
        conv.weight.copy_(torch.tensor([[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]))
        conv.bias.copy_(torch.tensor([0.5, -0.5]))
    # 1 + 20 + 300 + 0.5 and 4 + 50 + 600 - 0.5
    assert conv(torch.tensor([1.0, 10.0, 100.0])).tolist() == [321.5, 653.5]


def test_the_gradient_by_hand():
    x = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    conv = with_random_weights(Conv1D(5, 2)).double()
    cotangent = torch.randn(3, 2, dtype=torch.float64)
    conv(x).backward(cotangent)
    assert_same([x.grad], [cotangent @ conv.weight.T])
    assert_same([conv.weight.grad], [x.T @ cotangent])
    assert_same([conv.bias.grad], [cotangent.sum(dim=0)])


def test_the_weight_starts_normal_and_the_bias_zero():
    conv = Conv1D(300, 400)
    assert list(conv.state_dict()) == ["weight", "bias"]
    assert conv.weight.shape == (300, 400)
    # 120,000 draws: the mean is off by 0.02 / 346 on average, the deviation by 0.02 / 490
    assert abs(conv.weight.mean().item()) < 5 * 0.02 / 346
    assert abs(conv.weight.std().item() - 0.02) < 5 * 0.02 / 490
    share_within_one_std = (conv.weight.abs() < 0.02).double().mean().item()
    assert abs(share_within_one_std - 0.6827) < 0.007
    assert torch.equal(conv.bias, torch.zeros(400))


def test_the_printed_form_names_the_sizes():
    assert repr(Conv1D(3, 2)) == "Conv1D(3, 2)"


# Against torch and transformers


@pytest.mark.parametrize("shape", SHAPES)
def test_equals_transformers_in_float64(shape):
    ours = with_random_weights(Conv1D(5, 7)).double()
    theirs = TransformersConv1D(7, 5).double()  # output first
    theirs.load_state_dict(ours.state_dict(), strict=True)
    x = torch.randn(shape, dtype=torch.float64)
    assert_same(
        values_and_gradients(ours, [x], list(ours.parameters())),
        values_and_gradients(theirs, [x], list(theirs.parameters())),
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_equals_linear_with_the_transposed_weight(shape):
    ours = with_random_weights(Conv1D(5, 7)).double()
    linear = nn.Linear(5, 7).double()
    linear.load_state_dict({"weight": ours.weight.T, "bias": ours.bias}, strict=True)
    x = torch.randn(shape, dtype=torch.float64)
    y, x_grad, weight_grad, bias_grad = values_and_gradients(linear, [x], [*linear.parameters()])
    assert_same(
        values_and_gradients(ours, [x], list(ours.parameters())),
        [y, x_grad, weight_grad.T, bias_grad],
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

    def test_no_axes(self):
        with pytest.raises(
            ValueError, match=r"^x must have a last axis of in_features = 5, got no axes"
        ):
            Conv1D(5, 7)(torch.tensor(1.0))

    @pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
    def test_no_floating_point(self, dtype):
        with pytest.raises(TypeError, match=f"^x must be a floating-point tensor, got {dtype}"):
            Conv1D(5, 7)(torch.zeros(2, 5, dtype=dtype))

    @pytest.mark.parametrize("of_input", [torch.float64, torch.float16, torch.bfloat16])
    def test_dtypes_that_differ(self, of_input):
        message = rf"x is {of_input} but .* are torch\.float32; .* layer\.to\({of_input}\)"
        with pytest.raises(TypeError, match="^" + message):
            Conv1D(5, 7)(torch.zeros(2, 5, dtype=of_input))

    def test_dtypes_that_differ_on_a_device_without_autocast(self):
        with pytest.raises(TypeError, match=r"^x is torch\.float64 but"):
            Conv1D(5, 7).to("meta")(torch.zeros(2, 5, dtype=torch.float64, device="meta"))

    def test_float64_under_autocast_which_converts_it_to_nothing(self):
        with (
            torch.autocast("cpu", dtype=torch.bfloat16),
            pytest.raises(TypeError, match=r"^x is torch\.float64 but"),
        ):
            Conv1D(5, 7)(torch.zeros(2, 5, dtype=torch.float64))

    @pytest.mark.parametrize(
        ("sizes", "message"),
        [
            ((-1, 2), "in_features must be at least 0, got -1"),
            ((2, -1), "out_features must be at least 0, got -1"),
        ],
    )
    def test_a_negative_size(self, sizes, message):
        with pytest.raises(ValueError, match="^" + message):
            Conv1D(*sizes)

    def test_a_size_that_is_no_int(self):
        with pytest.raises(
            TypeError, match=r"^out_features must be an int, got 2\.5 of type float"
        ):
            Conv1D(2, 2.5)
