"""The definition of scaled dot-product attention."""

import math

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from tests.transformer_layers.comparisons import (
    assert_same,
    relative_error,
    unit_roundoff,
    values_and_gradients,
)
from transformer_layers import (
    attention_weights,
    causal_mask,
    padding_mask,
    scaled_dot_product_attention,
)

BATCH, HEADS, Q_SEQ, KV_SEQ, D_K, D_V = 2, 3, 5, 7, 11, 4


def random_inputs(*leading, q_seq=Q_SEQ, kv_seq=KV_SEQ, dtype=torch.float64, scale=1.0):
    """Query, key and value; `scale` makes scores of a few hundred."""
    return (
        scale * torch.randn(*leading, q_seq, D_K, dtype=dtype),
        scale * torch.randn(*leading, kv_seq, D_K, dtype=dtype),
        torch.randn(*leading, kv_seq, D_V, dtype=dtype),
    )


def mask_with_dead_rows(*shape):
    """A random mask in which the second query may attend to nothing, and the others to a key."""
    mask = torch.rand(shape) < 0.5
    mask[..., 0] = True
    mask[..., 1, :] = False
    return mask


def flat(tensors):
    return torch.cat([x.flatten() for x in tensors])


MASKS = {
    "none": lambda: None,
    "queries and keys": lambda: mask_with_dead_rows(Q_SEQ, KV_SEQ),
    "each": lambda: mask_with_dead_rows(BATCH, HEADS, Q_SEQ, KV_SEQ),
    "causal": lambda: causal_mask(Q_SEQ, KV_SEQ - Q_SEQ),
    "an empty sequence": lambda: padding_mask(torch.tensor([0, 7]), KV_SEQ)[:, None],
}


# By hand


def test_weights_by_hand():
    # d_k = 4, so that the scores are half the products: 0 and log 3; the weights are as 1 to 3.
    query = torch.tensor([[2.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    key = torch.tensor([[0.0, 9.0, 9.0, 9.0], [math.log(3), 5.0, 5.0, 5.0]], dtype=torch.float64)
    weights = attention_weights(query, key)
    torch.testing.assert_close(weights, torch.tensor([[0.25, 0.75]], dtype=torch.float64))
    value = torch.tensor([[4.0, 0.0, 8.0], [0.0, 4.0, 8.0]], dtype=torch.float64)
    output = scaled_dot_product_attention(query, key, value)
    torch.testing.assert_close(output, torch.tensor([[1.0, 3.0, 8.0]], dtype=torch.float64))


# Against torch's kernels


@pytest.mark.parametrize("make_mask", MASKS.values(), ids=MASKS.keys())
def test_equals_torchs_kernel(make_mask):
    # 8: scores of 200, a softmax that is nearly one-hot
    inputs, mask = random_inputs(BATCH, HEADS, scale=8.0), make_mask()
    with sdpa_kernel(SDPBackend.MATH):
        expected = values_and_gradients(
            lambda q, k, v: nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask),
            inputs,
            [],
        )
    ours = values_and_gradients(
        lambda q, k, v: scaled_dot_product_attention(q, k, v, mask), inputs, []
    )
    # The gradients are measured together: with one key those of query and key are 0.
    assert_same([ours[0], flat(ours[1:])], [expected[0], flat(expected[1:])])


@pytest.mark.parametrize(
    ("query", "key", "value"),
    [
        ((2, 3), (2, 1), (1, 3)),
        ((2, 1), (3,), (2, 3)),
        ((0, 3), (0, 3), (0, 3)),
    ],
)
def test_leading_axes_broadcast_as_torchs_do(query, key, value):
    inputs = (
        torch.randn(*query, Q_SEQ, D_K, dtype=torch.float64),
        torch.randn(*key, KV_SEQ, D_K, dtype=torch.float64),
        torch.randn(*value, KV_SEQ, D_V, dtype=torch.float64),
    )
    ours = values_and_gradients(scaled_dot_product_attention, inputs, [])
    with sdpa_kernel(SDPBackend.MATH):
        expected = values_and_gradients(nn.functional.scaled_dot_product_attention, inputs, [])
    assert_same(ours, expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_low_precision_is_rounded_once(dtype):
    inputs, mask = random_inputs(BATCH, HEADS, dtype=dtype), mask_with_dead_rows(Q_SEQ, KV_SEQ)
    exact = [x.double() for x in inputs]
    weights = attention_weights(*inputs[:2], mask)
    output = scaled_dot_product_attention(*inputs, mask)
    assert weights.dtype == output.dtype == dtype
    # One rounding of at most u, and float32's errors, which are a thousandth of it.
    tolerance = 1.01 * unit_roundoff(dtype)
    assert relative_error(weights, attention_weights(*exact[:2], mask)) <= tolerance
    assert relative_error(output, scaled_dot_product_attention(*exact, mask)) <= tolerance


# Queries that may attend to nothing


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_a_dead_row_gives_zero_and_gradient_zero_beside_live_rows(dtype):
    inputs = random_inputs(BATCH, HEADS, dtype=dtype)
    mask = mask_with_dead_rows(Q_SEQ, KV_SEQ)
    weights, *weights_gradients = values_and_gradients(
        lambda q, k: attention_weights(q, k, mask), inputs[:2], []
    )
    output, *gradients = values_and_gradients(
        lambda *qkv: scaled_dot_product_attention(*qkv, mask), inputs, []
    )
    assert (weights[..., 1, :] == 0).all()
    assert (output[..., 1, :] == 0).all()
    assert (gradients[0][..., 1, :] == 0).all()
    assert (weights_gradients[0][..., 1, :] == 0).all()
    assert all(x.isfinite().all() for x in (*gradients, *weights_gradients))
    live = [i for i in range(Q_SEQ) if i != 1]
    assert (output[..., live, :] != 0).any(dim=-1).all()
    # The live rows are what they are without the dead one.
    alone = values_and_gradients(
        lambda q, k, v: scaled_dot_product_attention(q, k, v, mask[live]),
        (inputs[0][..., live, :], *inputs[1:]),
        [],
    )
    torch.testing.assert_close(output[..., live, :], alone[0])


def test_no_nan_arises_on_the_way_back_from_a_dead_row():
    inputs = [x.requires_grad_() for x in random_inputs(BATCH)]
    output = scaled_dot_product_attention(*inputs, mask_with_dead_rows(Q_SEQ, KV_SEQ))
    with torch.autograd.set_detect_anomaly(True):  # an error at any NaN, even one cut off later
        output.sum().backward()


@pytest.mark.parametrize("mask", [None, torch.ones(Q_SEQ, 0, dtype=torch.bool)])
def test_no_keys_give_zeros(mask):
    query, key, value = random_inputs(BATCH, kv_seq=0)
    assert attention_weights(query, key, mask).shape == (BATCH, Q_SEQ, 0)
    output = scaled_dot_product_attention(query, key, value, mask)
    assert torch.equal(output, torch.zeros(BATCH, Q_SEQ, D_V, dtype=torch.float64))


# Errors


def zeros(*shape, dtype=torch.float32):
    return torch.zeros(shape, dtype=dtype)


QKV = (zeros(2, 3, 5, 8), zeros(2, 3, 7, 8), zeros(2, 3, 7, 4))


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        (
            (zeros(5, 8), zeros(7, 8, dtype=torch.float64), zeros(7, 4)),
            TypeError,
            "query, key, value must be of one floating dtype, got torch.float32, torch.float64, "
            r"torch.float32; convert them, for example with .to\(torch.float32\)",
        ),
        (
            (zeros(8), zeros(7, 8), zeros(7, 4)),
            ValueError,
            r"query, key, value must have two axes or more, got shapes \(8,\), \(7, 8\), \(7, 4\)",
        ),
        (
            (zeros(5, 8), zeros(7, 9), zeros(7, 4)),
            ValueError,
            r"query and key must have the same d_k > 0 as last axis, "
            r"got shapes \(5, 8\), \(7, 9\), \(7, 4\)",
        ),
        (
            (zeros(5, 8), zeros(7, 8), zeros(6, 4)),
            ValueError,
            r"key and value must have the same kv_seq, got shapes \(5, 8\), \(7, 8\), \(6, 4\)",
        ),
        (
            (zeros(2, 5, 8), zeros(3, 7, 8), zeros(3, 7, 4)),
            ValueError,
            r"the leading axes of query, key, value must broadcast, "
            r"got shapes \(2, 5, 8\), \(3, 7, 8\), \(3, 7, 4\)",
        ),
        (
            (*QKV, None, 1.5),
            ValueError,
            "dropout_p must be between 0 and 1, got 1.5",
        ),
    ],
)
def test_errors_of_inputs(inputs, error, message):
    with pytest.raises(error, match="^" + message):
        scaled_dot_product_attention(*inputs)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("query", "key", "error", "message"),
    [
        (
            zeros(5, 8),
            zeros(7, 8, dtype=torch.float64),
            TypeError,
            "query, key must be of one floating dtype, got torch.float32, torch.float64; convert",
        ),
        (
            zeros(5, 8),
            zeros(7, 9),
            ValueError,
            r"query and key must have the same d_k > 0 as last axis, "
            r"got shapes \(5, 8\), \(7, 9\)$",
        ),
        (
            zeros(2, 5, 8),
            zeros(3, 7, 8),
            ValueError,
            r"the leading axes of query, key must broadcast, "
            r"got shapes \(2, 5, 8\), \(3, 7, 8\)$",
        ),
    ],
)
def test_errors_of_the_weights(query, key, error, message):
    with pytest.raises(error, match="^" + message):
        attention_weights(query, key)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("mask", "error", "message"),
    [
        (
            zeros(5, 7),
            TypeError,
            "mask must be boolean with True = may attend, got torch.float32; pass mask == 0 if it "
            r"was to be added to the scores \(0 or -inf\), mask == 1 if it holds ones and zeros",
        ),
        (
            zeros(7, dtype=torch.bool),
            ValueError,
            r"mask must have the shape of the scores \(2, 3, 5, 7\), \(..., q_seq, kv_seq\), or "
            r"broadcast to it with two axes or more, got \(7,\)",
        ),
        (zeros(5, 6, dtype=torch.bool), ValueError, r"mask must have the shape .*, got \(5, 6\)"),
        (
            zeros(4, 1, 3, 5, 7, dtype=torch.bool),
            ValueError,
            r"mask must have the shape .*, got \(4, 1, 3, 5, 7\)",
        ),
    ],
)
def test_errors_of_masks(mask, error, message):
    with pytest.raises(error, match="^" + message):
        scaled_dot_product_attention(*QKV, mask)
    with pytest.raises(error, match="^" + message):
        attention_weights(*QKV[:2], mask)


@pytest.mark.usefixtures("as_users_run_it")
def test_a_mask_for_batch_or_heads_is_never_guessed():
    # As many sequences as heads: (3, 5, 5) could be a mask for each sequence or for each head.
    query = torch.randn(3, 3, 5, 8)
    mask = mask_with_dead_rows(3, 5, 5)
    message = (
        r"mask of shape \(3, 5, 5\) fits the scores \(3, 3, 5, 5\) in two ways, its first axis "
        "being axis 0 or axis 1 of theirs; give it 4 axes, with 1 where it is shared"
    )
    with pytest.raises(ValueError, match="^" + message):
        attention_weights(query, query, mask)
    for_heads = attention_weights(query, query, mask[None])
    for_batch = attention_weights(query, query, mask[:, None])
    one = query[1, 2]
    torch.testing.assert_close(for_heads[1, 2], attention_weights(one, one, mask[2]))
    torch.testing.assert_close(for_batch[1, 2], attention_weights(one, one, mask[1]))
    # Where only one reading fits, broadcasting is that of torch.
    query = query[:2]
    assert torch.equal(attention_weights(query, query, mask), for_heads[:2])
    shared = attention_weights(query, query, mask[:1])
    assert torch.equal(shared, attention_weights(query, query, mask[0]))
