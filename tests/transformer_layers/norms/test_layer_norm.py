"""Layer normalization: by hand, against `torch.nn.LayerNorm`, by its laws, and its errors."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tests.transformer_layers.comparisons import (
    FLOAT64_TOLERANCE,
    assert_rounded_once,
    assert_same,
    relative_error,
    unit_roundoff,
    values_and_gradients,
    with_random_weights,
)
from transformer_layers import LayerNorm

rows = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=9).map(
    lambda row: torch.tensor(row, dtype=torch.float64)
)


# By hand


def test_a_row_by_hand():
    layer_norm = LayerNorm(2, eps=5.0)
    with torch.no_grad():
        layer_norm.weight.copy_(torch.tensor([3.0, 6.0]))
        layer_norm.bias.copy_(torch.tensor([10.0, 20.0]))
    # mean 3, variance 4, root of 4 + 5 is 3: the normalized row is -2/3, 2/3
    y = layer_norm(torch.tensor([1.0, 5.0]))
    torch.testing.assert_close(y, torch.tensor([8.0, 24.0]))


def test_the_gradient_by_hand():
    x = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    layer_norm = with_random_weights(LayerNorm(5, eps=0.1)).double()
    cotangent = torch.randn(3, 5, dtype=torch.float64)
    layer_norm(x).backward(cotangent)
    std = torch.sqrt(x.var(dim=-1, correction=0, keepdim=True) + 0.1)
    x_hat = (x - x.mean(dim=-1, keepdim=True)) / std
    g = cotangent * layer_norm.weight
    along_ones = g.mean(dim=-1, keepdim=True)
    along_x_hat = x_hat * (g * x_hat).mean(dim=-1, keepdim=True)
    assert_same([x.grad], [(g - along_ones - along_x_hat) / std])
    assert_same([layer_norm.weight.grad], [(cotangent * x_hat).sum(dim=0)])
    assert_same([layer_norm.bias.grad], [cotangent.sum(dim=0)])


def test_parameters_start_as_ones_and_zeros():
    state = LayerNorm(3).state_dict()
    assert list(state) == ["weight", "bias"]
    assert torch.equal(state["weight"], torch.ones(3))
    assert torch.equal(state["bias"], torch.zeros(3))
    assert list(LayerNorm(3, bias=False).state_dict()) == ["weight"]
    assert LayerNorm(3, bias=False).bias is None


@pytest.mark.parametrize("bias", [True, False])
def test_without_the_affine_map_there_are_no_parameters(bias):
    layer_norm = LayerNorm(3, bias=bias, elementwise_affine=False)
    assert layer_norm.weight is None
    assert layer_norm.bias is None
    assert list(layer_norm.state_dict()) == list(layer_norm.parameters()) == []
    layer_norm.reset_parameters()
    with pytest.raises(RuntimeError, match=r"Unexpected key\(s\) in state_dict: \"weight\""):
        layer_norm.load_state_dict({"weight": torch.ones(3)})


def test_a_constant_row_gives_the_bias():
    layer_norm = with_random_weights(LayerNorm(4))
    assert torch.equal(layer_norm(torch.full((2, 4), 7.0)), layer_norm.bias.expand(2, 4))


@pytest.mark.parametrize("width", [1, 2, 3, 7, 100, 768, 1600, 4096])
def test_a_constant_row_of_any_size_gives_the_bias_in_float32(width):
    layer_norm = with_random_weights(LayerNorm(width))
    constants = torch.cat([torch.tensor([1e3, 1e4, 1e5, 1e6, 3e10]), 10 ** (6 * torch.rand(100))])
    y = layer_norm(constants[:, None].expand(-1, width))
    assert torch.equal(y, layer_norm.bias.expand(len(constants), width))


def test_one_feature_gives_the_bias_and_none_gives_nothing():
    layer_norm = with_random_weights(LayerNorm(1))
    assert torch.equal(layer_norm(torch.randn(3, 1)), layer_norm.bias.expand(3, 1))
    assert LayerNorm(0)(torch.zeros(2, 0)).shape == (2, 0)


def test_squares_that_overflow_give_the_bias():
    x = torch.tensor([1e20, -1e20, 2e20])
    assert nn.LayerNorm(3)(x).isnan().all()
    assert torch.equal(LayerNorm(3)(x), torch.zeros(3))


def test_the_printed_form_names_the_arguments():
    assert repr(LayerNorm(3, bias=False)) == "LayerNorm(3, eps=1e-05, bias=False)"
    expected = "LayerNorm(3, eps=1e-05, elementwise_affine=False)"
    assert repr(LayerNorm(3, elementwise_affine=False)) == expected


# Against torch


@pytest.mark.parametrize("shape", [(7,), (5, 7), (2, 3, 5, 7), (0, 7), (1025, 7)])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("offset", "eps"), [(0.0, 1e-5), (100.0, 0.1), (1e3, 1e-5)])
def test_equals_torch_in_float64(shape, bias, offset, eps):
    ours = with_random_weights(LayerNorm(7, eps, bias)).double()
    theirs = nn.LayerNorm(7, eps, bias=bias).double()
    theirs.load_state_dict(ours.state_dict(), strict=True)
    x = torch.randn(shape, dtype=torch.float64) + offset
    # Both round the mean, at the size of the offset, and divide by the spread of a row.
    rounding = 0.0
    if x.numel():
        smallest = (x.var(dim=-1, correction=0) + eps).sqrt().min().item()
        rounding = 8 * unit_roundoff(torch.float64) * offset / smallest
    assert_same(
        values_and_gradients(ours, [x], list(ours.parameters())),
        values_and_gradients(theirs, [x], list(theirs.parameters())),
        max(FLOAT64_TOLERANCE, rounding),
    )


@pytest.mark.parametrize("shape", [(7,), (2, 3, 7), (0, 7)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_without_the_affine_map_it_equals_torch(shape, dtype):
    ours = LayerNorm(7, 0.1, elementwise_affine=False)
    theirs = nn.LayerNorm(7, 0.1, elementwise_affine=False)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    x = torch.randn(shape, dtype=dtype) + 2
    for training in (True, False):
        assert_same(
            values_and_gradients(ours.train(training), [x], []),
            values_and_gradients(theirs.train(training), [x], []),
            FLOAT64_TOLERANCE if dtype == torch.float64 else 1e-5,
        )


@pytest.mark.parametrize("d_model", [4, 768])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
def test_float32_is_as_near_to_float64_as_rounding_allows(d_model, offset):
    layer_norm = with_random_weights(LayerNorm(d_model))
    x = torch.randn(5, d_model) + offset
    y = layer_norm(x)
    exact = layer_norm.double()(x.double())
    # However large the offset is: what the rounding of the mean leaves is subtracted too.
    assert relative_error(y, exact) <= 8 * unit_roundoff(torch.float32)


# Laws


@given(rows, st.floats(-1e3, 1e3))
def test_a_shift_of_the_row_changes_nothing(row, shift):
    layer_norm = LayerNorm(len(row)).double()
    spread = math.sqrt(row.var(correction=0) + layer_norm.eps)
    rounding = 8 * unit_roundoff(torch.float64) * 2e3 / spread  # of elements up to 2e3
    difference = layer_norm(row + shift) - layer_norm(row)
    assert difference.abs().max() <= rounding * (1 + layer_norm(row).abs().max())


@given(rows, st.floats(0.01, 100))
def test_a_scale_of_the_row_is_a_scale_of_eps(row, scale):
    scaled = LayerNorm(len(row), eps=1e-5 * scale**2).double()(row * scale)
    torch.testing.assert_close(scaled, LayerNorm(len(row)).double()(row), rtol=1e-9, atol=1e-9)


# Low precision


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("offset", [0.0, 600.0])
@pytest.mark.parametrize("parameters", ["of the same dtype", "of float32"])
def test_low_precision_is_one_rounding_from_float64(dtype, offset, parameters):
    layer_norm = with_random_weights(LayerNorm(64))
    if parameters == "of the same dtype":
        layer_norm = layer_norm.to(dtype)
    # A spread of 20: squares of the deviations overflow float16 when they are summed there.
    x = (20 * torch.randn(5, 64) + offset).to(dtype).requires_grad_()
    y = layer_norm(x)
    assert y.dtype == dtype
    y.sum().backward()
    assert x.grad.dtype == dtype
    assert x.grad.isfinite().all()
    assert_rounded_once(y, layer_norm.double()(x.detach().double()))


# Errors


@pytest.mark.usefixtures("as_users_run_it")
class TestErrors:
    def test_another_width(self):
        message = (
            r"x must have a last axis of d_model = 8, got a last axis of 7: its shape is \(2, 7\)"
        )
        with pytest.raises(ValueError, match="^" + message):
            LayerNorm(8)(torch.zeros(2, 7))

    def test_no_axes(self):
        with pytest.raises(
            ValueError,
            match=r"^x must have a last axis of d_model = 8, got no axes: its shape is \(\)",
        ):
            LayerNorm(8)(torch.tensor(1.0))

    @pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
    def test_no_floating_point(self, dtype):
        with pytest.raises(TypeError, match=f"^x must be a floating-point tensor, got {dtype}"):
            LayerNorm(8)(torch.zeros(2, 8, dtype=dtype))

    @pytest.mark.parametrize(
        ("of_input", "of_layer"),
        [
            (torch.float64, torch.float32),
            (torch.float32, torch.float64),
            (torch.float16, torch.float64),
            (torch.float32, torch.bfloat16),
            (torch.float16, torch.bfloat16),
        ],
    )
    def test_dtypes_that_do_not_go_together(self, of_input, of_layer):
        message = (
            rf"x is {of_input} but the layer's parameters are {of_layer}; .* x\.to\({of_layer}\)"
        )
        with pytest.raises(TypeError, match="^" + message):
            LayerNorm(8).to(of_layer)(torch.zeros(2, 8, dtype=of_input))

    @pytest.mark.parametrize("eps", [0.0, -1e-5, math.nan])
    def test_eps_that_is_not_positive(self, eps):
        with pytest.raises(ValueError, match=f"^eps must be greater than 0, got {eps}"):
            LayerNorm(8, eps=eps)

    def test_a_negative_width(self):
        with pytest.raises(ValueError, match=r"^d_model must be at least 0, got -1"):
            LayerNorm(-1)

    @pytest.mark.parametrize("d_model", [8.0, (8,), True])
    def test_a_width_that_is_no_int(self, d_model):
        kind = type(d_model).__name__
        with pytest.raises(TypeError, match=f"^d_model must be an int, got .* of type {kind}"):
            LayerNorm(d_model)
