"""GPT-2's linear layer: by hand, against torch and transformers, by its laws, and its errors."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
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


def test_no_features_leave_the_bias():
    conv = with_random_weights(Conv1D(0, 3))
    assert torch.equal(conv(torch.zeros(2, 0)), conv.bias.expand(2, 3))
    assert Conv1D(3, 0)(torch.zeros(2, 3)).shape == (2, 0)


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


def test_equals_a_convolution_of_width_one():
    ours = with_random_weights(Conv1D(5, 7)).double()
    conv = nn.Conv1d(5, 7, kernel_size=1).double()
    conv.load_state_dict({"weight": ours.weight.T[..., None], "bias": ours.bias}, strict=True)
    x = torch.randn(2, 3, 5, dtype=torch.float64)
    assert_same([ours(x)], [conv(x.transpose(1, 2)).transpose(1, 2)])


@pytest.mark.parametrize("width", [5, 768])
def test_float32_is_as_near_to_float64_as_rounding_allows(width):
    conv = with_random_weights(Conv1D(width, 7))
    x = torch.randn(11, width)
    y = conv(x)
    exact = conv.double()(x.double())
    # After k of n random terms the sum has grown to the root of k, and is rounded at that size: all
    # roundings together are the root of n / 2 times that of the result.
    assert relative_error(y, exact) <= (4 + math.sqrt(width)) * unit_roundoff(torch.float32)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_low_precision_is_two_roundings_from_float64(dtype):
    conv = with_random_weights(Conv1D(64, 7)).to(dtype)
    x = torch.randn(11, 64).to(dtype)
    y = conv(x)
    assert y.dtype == dtype
    exact = conv.double()(x.double())  # one rounding after the product, one after the bias
    assert relative_error(y, exact) <= 2.05 * unit_roundoff(dtype)


# Laws


@given(st.integers(0, 4), st.integers(1, 9), st.integers(1, 9), st.floats(-10, 10))
def test_it_is_affine(leading, in_features, out_features, scale):
    conv = with_random_weights(Conv1D(in_features, out_features)).double()
    x, y = torch.randn(2, *range(2, 2 + leading), in_features, dtype=torch.float64)
    linear = conv(scale * x + y) - conv.bias
    parts = scale * (conv(x) - conv.bias) + (conv(y) - conv.bias)
    torch.testing.assert_close(linear, parts, rtol=1e-12, atol=1e-11)


def test_each_position_is_mapped_by_itself():
    conv = with_random_weights(Conv1D(5, 7)).double()
    x = torch.randn(2, 3, 5, dtype=torch.float64)
    together = conv(x)
    for i in range(2):
        for j in range(3):
            assert_same([together[i, j]], [conv(x[i, j])])


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
