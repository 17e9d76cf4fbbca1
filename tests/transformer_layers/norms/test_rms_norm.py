"""RMS normalization: by hand, against `torch.nn.RMSNorm`, by its laws, and its errors."""

import math

import pytest
import torch
from torch import nn
from transformers.models.gemma.modeling_gemma import GemmaRMSNorm as TheirGemmaRMSNorm
from transformers.models.llama.modeling_llama import LlamaRMSNorm as TheirLlamaRMSNorm
from transformers.models.olmo2.modeling_olmo2 import Olmo2RMSNorm

from tests.transformer_layers.comparisons import (
    assert_rounded_once,
    assert_same,
    values_and_gradients,
    with_random_weights,
)
from transformer_layers import (
    GemmaRMSNorm,
    Llama,
    LlamaConfig,
    LlamaRMSNorm,
    RMSNorm,
)

# By hand


def test_a_row_by_hand():
    rms_norm = RMSNorm(2, eps=5.0)
    with torch.no_grad():
        rms_norm.weight.copy_(torch.tensor([3.0, 6.0]))
    # the mean of 4 and 18 is 11, the root of 11 + 5 is 4
    y = rms_norm(torch.tensor([2.0, math.sqrt(18)]))
    torch.testing.assert_close(y, torch.tensor([1.5, 1.5 * math.sqrt(18)]))


@pytest.mark.parametrize("kind", [RMSNorm, LlamaRMSNorm, GemmaRMSNorm])
def test_without_the_gain_there_is_no_parameter(kind):
    rms_norm = kind(3, elementwise_affine=False)
    assert rms_norm.weight is None
    assert list(rms_norm.state_dict()) == list(rms_norm.parameters()) == []
    rms_norm.reset_parameters()
    assert repr(rms_norm) == f"{kind.__name__}(3, eps=1e-06, elementwise_affine=False)"


def test_squares_that_overflow_give_zeros():
    assert torch.equal(RMSNorm(3)(torch.tensor([1e20, -1e20, 2e20])), torch.zeros(3))


def test_the_printed_form_names_the_arguments():
    assert repr(RMSNorm(3)) == "RMSNorm(3, eps=1e-06)"


# Against torch


@pytest.mark.parametrize("shape", [(7,), (2, 3, 5, 7)])
@pytest.mark.parametrize(("offset", "eps"), [(0.0, 1e-6), (100.0, 0.1)])
def test_equals_torch_in_float64(shape, offset, eps):
    ours = with_random_weights(RMSNorm(7, eps)).double()
    theirs = nn.RMSNorm(7, eps).double()
    theirs.load_state_dict(ours.state_dict(), strict=True)
    x = torch.randn(shape, dtype=torch.float64) + offset
    assert_same(
        values_and_gradients(ours, [x], list(ours.parameters())),
        values_and_gradients(theirs, [x], list(theirs.parameters())),
    )


@pytest.mark.parametrize("kind", [RMSNorm, LlamaRMSNorm, GemmaRMSNorm])
def test_without_the_gain_each_kind_equals_torch(kind):
    ours = kind(7, 0.1, elementwise_affine=False)
    theirs = nn.RMSNorm(7, 0.1, elementwise_affine=False)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    x = torch.randn(2, 3, 7, dtype=torch.float64) + 2
    assert_same(values_and_gradients(ours, [x], []), values_and_gradients(theirs, [x], []))


# Low precision


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("parameters", ["of the same dtype", "of float32"])
def test_low_precision_is_one_rounding_from_float64(dtype, parameters):
    rms_norm = with_random_weights(RMSNorm(64))
    if parameters == "of the same dtype":
        rms_norm = rms_norm.to(dtype)
    x = (torch.randn(5, 64) + 600).to(dtype).requires_grad_()  # 600 squared overflows float16
    y = rms_norm(x)
    assert y.dtype == dtype
    y.sum().backward()
    assert x.grad.dtype == dtype
    assert x.grad.isfinite().all()
    assert_rounded_once(y, rms_norm.double()(x.detach().double()))


# Errors


@pytest.mark.usefixtures("as_users_run_it")
class TestErrors:
    def test_another_width(self):
        message = (
            r"x must have a last axis of d_model = 8, got a last axis of 7: its shape is \(2, 7\)"
        )
        with pytest.raises(ValueError, match="^" + message):
            RMSNorm(8)(torch.zeros(2, 7))

    def test_no_floating_point(self):
        with pytest.raises(TypeError, match=r"^x must be a floating-point tensor, got torch.int64"):
            RMSNorm(8)(torch.zeros(2, 8, dtype=torch.int64))

    def test_another_dtype(self):
        message = "x is torch.float64 but the layer's parameters are torch.float32"
        with pytest.raises(TypeError, match="^" + message):
            RMSNorm(8)(torch.zeros(2, 8, dtype=torch.float64))

    def test_eps_that_is_not_positive(self):
        with pytest.raises(ValueError, match=r"^eps must be greater than 0, got 0\.0"):
            RMSNorm(8, eps=0.0)


# Three functions of one name in half precision


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_each_reading_rounds_as_its_authority(dtype):
    x = torch.randn(50, 16).to(dtype)
    gain = torch.randn(16).to(dtype)
    pairs = [
        (RMSNorm(16), Olmo2RMSNorm(16)),
        (LlamaRMSNorm(16), TheirLlamaRMSNorm(16)),
        (GemmaRMSNorm(16), TheirGemmaRMSNorm(16)),
    ]
    results = []
    for ours, theirs in pairs:
        for norm in (ours.to(dtype), theirs.to(dtype)):
            norm.weight.data.copy_(gain)
        assert_within_one_place(ours(x), theirs(x))
        results.append(ours(x))
    torch_rms = nn.functional.rms_norm(x, (16,), gain, 1e-6)
    assert_within_one_place(results[0], torch_rms)
    assert not results[0].equal(results[1])
    assert not results[0].equal(results[2])


def assert_within_one_place(found, expected):
    """All but a hundredth are the same to the last digit: a root is rounded once or twice."""
    assert found.dtype == expected.dtype
    assert (found != expected).float().mean() <= 0.01
    torch.testing.assert_close(found, expected)


def test_in_float64_two_readings_are_one_and_the_third_adds_one():
    x, gain = torch.randn(5, 6, dtype=torch.float64), torch.randn(6, dtype=torch.float64)
    norms = [kind(6).double() for kind in (RMSNorm, LlamaRMSNorm, GemmaRMSNorm)]
    for norm, shift in zip(norms, (0, 0, 1), strict=True):
        norm.weight.data.copy_(gain - shift)
    first, *others = (norm(x) for norm in norms)
    for other in others:
        assert_same([other], [first])


def test_one_and_a_large_weight_are_added_in_float32():
    norm = GemmaRMSNorm(2, dtype=torch.bfloat16)
    norm.weight.data.fill_(15.8125)  # 16.8125 is no bfloat16
    x = torch.ones(1, 2, dtype=torch.bfloat16)
    assert norm(x)[0, 0] == torch.tensor(16.8125).bfloat16()
    assert GemmaRMSNorm(3).weight.eq(0).all()


# Autocast


@pytest.mark.parametrize("norm", [RMSNorm, LlamaRMSNorm, GemmaRMSNorm])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_float32_parameters_leave_the_dtype_of_the_input(norm, dtype):
    assert norm(4)(torch.randn(3, 4).to(dtype)).dtype == dtype


@pytest.mark.parametrize("family", ["qwen3", "olmo2"])
def test_normalized_keys_fit_a_cache_under_autocast(family):
    model = Llama(LlamaConfig(61, 16, 24, 2, 4, 2, model_type=family))
    ids = torch.randint(61, (2, 5))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert model.generate(ids, 3).shape == (2, 8)
