"""Layer normalization: by hand, against `torch.nn.LayerNorm`, by its laws, and its errors."""

import pytest
import torch
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

# By hand


def test_a_row_by_hand():
    layer_norm = LayerNorm(2, eps=5.0)
    with torch.no_grad():
        layer_norm.weight.copy_(torch.tensor([3.0, 6.0]))
        layer_norm.bias.copy_(torch.tensor([10.0, 20.0]))
    # mean 3, variance 4, root of 4 + 5 is 3: the normalized row is -2/3, 2/3
    y = layer_norm(torch.tensor([1.0, 5.0]))
    torch.testing.assert_close(y, torch.tensor([8.0, 24.0]))


@pytest.mark.parametrize("bias", [True, False])
def test_without_the_affine_map_there_are_no_parameters(bias):
    layer_norm = LayerNorm(3, bias=bias, elementwise_affine=False)
    assert layer_norm.weight is None
    assert layer_norm.bias is None
    assert list(layer_norm.state_dict()) == list(layer_norm.parameters()) == []
    layer_norm.reset_parameters()
    with pytest.raises(RuntimeError, match=r"Unexpected key\(s\) in state_dict: \"weight\""):
        layer_norm.load_state_dict({"weight": torch.ones(3)})


@pytest.mark.parametrize("width", [3, 768])
def test_a_constant_row_of_any_size_gives_the_bias_in_float32(width):
    layer_norm = with_random_weights(LayerNorm(width))
    constants = torch.cat([torch.tensor([1e3, 1e4, 1e5, 1e6, 3e10]), 10 ** (6 * torch.rand(100))])
    y = layer_norm(constants[:, None].expand(-1, width))
    assert torch.equal(y, layer_norm.bias.expand(len(constants), width))


def test_squares_that_overflow_give_the_bias():
    x = torch.tensor([1e20, -1e20, 2e20])
    assert nn.LayerNorm(3)(x).isnan().all()
    assert torch.equal(LayerNorm(3)(x), torch.zeros(3))


def test_the_printed_form_names_the_arguments():
    assert repr(LayerNorm(3, bias=False)) == "LayerNorm(3, eps=1e-05, bias=False)"
    expected = "LayerNorm(3, eps=1e-05, elementwise_affine=False)"
    assert repr(LayerNorm(3, elementwise_affine=False)) == expected


# Against torch


@pytest.mark.parametrize("shape", [(7,), (2, 3, 5, 7)])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("offset", "eps"), [(0.0, 1e-5), (100.0, 0.1)])
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


def test_without_the_affine_map_it_equals_torch():
    ours = LayerNorm(7, 0.1, elementwise_affine=False)
    theirs = nn.LayerNorm(7, 0.1, elementwise_affine=False)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    x = torch.randn(2, 3, 7, dtype=torch.float64) + 2
    assert_same(values_and_gradients(ours, [x], []), values_and_gradients(theirs, [x], []))


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_float32_is_as_near_to_float64_as_rounding_allows(offset):
    layer_norm = with_random_weights(LayerNorm(768))
    x = torch.randn(5, 768) + offset
    y = layer_norm(x)
    exact = layer_norm.double()(x.double())
    # However large the offset is: what the rounding of the mean leaves is subtracted too.
    assert relative_error(y, exact) <= 8 * unit_roundoff(torch.float32)


# Low precision


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("parameters", ["of the same dtype", "of float32"])
def test_low_precision_is_one_rounding_from_float64(dtype, parameters):
    layer_norm = with_random_weights(LayerNorm(64))
    if parameters == "of the same dtype":
        layer_norm = layer_norm.to(dtype)
    # A spread of 20: squares of the deviations overflow float16 when they are summed there.
    x = (20 * torch.randn(5, 64) + 600).to(dtype).requires_grad_()
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

    def test_no_floating_point(self):
        with pytest.raises(TypeError, match=r"^x must be a floating-point tensor, got torch.int64"):
            LayerNorm(8)(torch.zeros(2, 8, dtype=torch.int64))

    def test_another_dtype(self):
        message = "x is torch.float64 but the layer's parameters are torch.float32"
        with pytest.raises(TypeError, match="^" + message):
            LayerNorm(8)(torch.zeros(2, 8, dtype=torch.float64))

    def test_eps_that_is_not_positive(self):
        with pytest.raises(ValueError, match=r"^eps must be greater than 0, got 0\.0"):
            LayerNorm(8, eps=0.0)
