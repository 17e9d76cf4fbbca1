"""Attention with soft caps."""

import math
from types import SimpleNamespace

import pytest
import torch
from torch.nn.attention.flex_attention import flex_attention
from transformers.models.gemma2.modeling_gemma2 import eager_attention_forward

from tests.transformer_layers.comparisons import (
    assert_rounded_once,
    assert_same,
    values_and_gradients,
)
from transformer_layers import (
    causal_mask,
    padding_mask,
    scaled_dot_product_attention,
    soft_capped_attention,
)

BATCH, HEADS, Q_SEQ, KV_SEQ, D_K, D_V, CAP = 2, 3, 5, 7, 11, 4, 2.5


def random_inputs(scale=1.0, dtype=torch.float64):
    """Query, key and value; with a scale of 8 scores reach some hundreds."""
    return (
        scale * torch.randn(BATCH, HEADS, Q_SEQ, D_K, dtype=dtype),
        scale * torch.randn(BATCH, HEADS, KV_SEQ, D_K, dtype=dtype),
        torch.randn(BATCH, HEADS, KV_SEQ, D_V, dtype=dtype),
    )


def mask_with_dead_rows():
    """A random mask in which the second query may attend to nothing, and the others to a key."""
    mask = torch.rand(Q_SEQ, KV_SEQ) < 0.5
    mask[:, 0] = True
    mask[1] = False
    return mask


def flat(tensors):
    return torch.cat([x.flatten() for x in tensors])


def test_by_hand():
    # A score of log 3 under a cap of log 3: tanh(1), so that the weights are as 1 to 3^tanh(1).
    query = torch.ones(1, 1, dtype=torch.float64)
    key = torch.tensor([[0.0], [math.log(3)]], dtype=torch.float64)
    weights = soft_capped_attention(query, key, torch.eye(2).double(), math.log(3))
    ratio = 3 ** math.tanh(1)
    expected = torch.tensor([[1 / (1 + ratio), ratio / (1 + ratio)]], dtype=torch.float64)
    torch.testing.assert_close(weights, expected)


MASKS = {
    "none": lambda: None,
    "causal": lambda: causal_mask(Q_SEQ, KV_SEQ - Q_SEQ),
    "padding": lambda: padding_mask(torch.tensor([2, 7]), KV_SEQ)[:, None],
}


@pytest.mark.parametrize("scale", [1.0, 8.0])
@pytest.mark.parametrize("make_mask", MASKS.values(), ids=MASKS.keys())
def test_equals_that_of_gemma_2(make_mask, scale):
    inputs, mask = random_inputs(scale), make_mask()
    module = SimpleNamespace(num_key_value_groups=1, training=False)
    added = None if mask is None else torch.zeros(mask.shape).masked_fill(~mask, -math.inf)

    def theirs(query, key, value):
        found, _ = eager_attention_forward(
            module, query, key, value, added, scaling=D_K**-0.5, softcap=CAP
        )
        return found.transpose(1, 2)

    ours = values_and_gradients(lambda *x: soft_capped_attention(*x, CAP, mask), inputs, [])
    expected = values_and_gradients(theirs, inputs, [])
    # Its softmax is in float32, also of float64. The gradients are measured together.
    assert_same([ours[0], flat(ours[1:])], [expected[0], flat(expected[1:])], tolerance=2e-6)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_equals_flex_attention():
    inputs = random_inputs(scale=3.0)

    def capped(score, *places):
        return CAP * torch.tanh(score / CAP)

    expected = flex_attention(*inputs, score_mod=capped)
    assert_same([soft_capped_attention(*inputs, CAP)], [expected])


def test_with_a_cap_far_above_the_scores_it_is_attention():
    inputs, mask = random_inputs(), mask_with_dead_rows()
    ours = values_and_gradients(lambda *x: soft_capped_attention(*x, 1e8, mask), inputs, [])
    expected = values_and_gradients(lambda *x: scaled_dot_product_attention(*x, mask), inputs, [])
    assert_same(ours, expected)  # s³ / (3 cap²) is less than 1e-13


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_low_precision_is_rounded_once(dtype):
    inputs, mask = random_inputs(dtype=dtype), mask_with_dead_rows()
    exact = soft_capped_attention(*(x.double() for x in inputs), CAP, mask)
    assert_rounded_once(soft_capped_attention(*inputs, CAP, mask), exact)


def test_a_dead_row_gives_zero_and_no_nan_on_the_way_back():
    inputs = [x.requires_grad_() for x in random_inputs()]
    output = soft_capped_attention(*inputs, CAP, mask_with_dead_rows())
    assert (output[..., 1, :] == 0).all()
    with torch.autograd.set_detect_anomaly(True):  # an error at any NaN, even one cut off later
        output.sum().backward()
    assert (inputs[0].grad[..., 1, :] == 0).all()


def test_no_keys_give_zeros():
    query, key, value = random_inputs()
    output = soft_capped_attention(query, key[..., :0, :], value[..., :0, :], CAP)
    assert torch.equal(output, torch.zeros(BATCH, HEADS, Q_SEQ, D_V, dtype=torch.float64))


def zeros(*shape, dtype=torch.float32):
    return torch.zeros(shape, dtype=dtype)


QKV = (zeros(2, 3, 5, 8), zeros(2, 3, 7, 8), zeros(2, 3, 7, 4))


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize("cap", [0.0, -1.5, math.nan, math.inf])
def test_a_cap_that_is_none_is_refused(cap):
    message = f"cap must be greater than 0 and finite, got {cap}; for attention without one call"
    with pytest.raises(ValueError, match="^" + message):
        soft_capped_attention(*QKV, cap)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        (
            (QKV[0], zeros(2, 3, 7, 9), QKV[2], CAP),
            ValueError,
            "query and key must have the same d_k > 0 as last axis",
        ),
        ((*QKV, CAP, zeros(5, 7)), TypeError, "mask must be boolean"),
        (
            (*QKV, CAP, zeros(5, 6, dtype=torch.bool)),
            ValueError,
            r"mask must have the shape of the scores \(2, 3, 5, 7\)",
        ),
    ],
)
def test_errors(inputs, error, message):
    with pytest.raises(error, match="^" + message):
        soft_capped_attention(*inputs)
