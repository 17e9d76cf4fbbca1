"""Attention with a sink for each head."""

import math
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from transformers.models.gpt_oss.modeling_gpt_oss import eager_attention_forward

from tests.transformer_layers.comparisons import (
    assert_rounded_once,
    assert_same,
    values_and_gradients,
)
from transformer_layers import causal_mask, padding_mask, sink_attention

BATCH, HEADS, Q_SEQ, KV_SEQ, D_K, D_V = 2, 3, 5, 7, 11, 4


def random_inputs(scale=1.0, dtype=torch.float64):
    """Query, key, value and sinks; with a scale of 8 scores reach some hundreds."""
    return (
        scale * torch.randn(BATCH, HEADS, Q_SEQ, D_K, dtype=dtype),
        scale * torch.randn(BATCH, HEADS, KV_SEQ, D_K, dtype=dtype),
        torch.randn(BATCH, HEADS, KV_SEQ, D_V, dtype=dtype),
        scale**2 * torch.randn(HEADS, dtype=dtype),
    )


def mask_with_dead_rows():
    """A random mask in which the second query may attend to nothing, and the others to a key."""
    mask = torch.rand(Q_SEQ, KV_SEQ) < 0.5
    mask[:, 0] = True
    mask[1] = False
    return mask


def as_gpt_oss(query, key, value, sinks, mask=None):
    """The function of `transformers`, whose masks are added."""
    module = SimpleNamespace(num_key_value_groups=1, sinks=sinks, training=False)
    added = None
    if mask is not None:
        added = torch.zeros(mask.shape, dtype=query.dtype).masked_fill(~mask, -math.inf)
    scale = query.shape[-1] ** -0.5
    return eager_attention_forward(module, query, key, value, added, scale)[0].transpose(1, 2)


def test_by_hand():
    # d_k = 4: scores are half the products, 0 and log 3, and the sink is log 4. Of 1 + 3 + 4
    # the keys get an eighth and three eighths.
    query = torch.tensor([[[2.0, 0.0, 0.0, 0.0]]], dtype=torch.float64)
    rows = [[[0.0, 9.0, 9.0, 9.0], [math.log(3), 5.0, 5.0, 5.0]]]
    key = torch.tensor(rows, dtype=torch.float64)
    sinks = torch.tensor([math.log(4)], dtype=torch.float64)
    weights = sink_attention(query, key, torch.eye(2).double()[None], sinks)
    expected = torch.tensor([[[0.125, 0.375]]], dtype=torch.float64)
    torch.testing.assert_close(weights, expected)


MASKS = {
    "none": lambda: None,
    "dead rows": mask_with_dead_rows,
    "causal": lambda: causal_mask(Q_SEQ, KV_SEQ - Q_SEQ),
    "an empty sequence": lambda: padding_mask(torch.tensor([0, 7]), KV_SEQ)[:, None],
}


@pytest.mark.parametrize("scale", [1.0, 8.0])
@pytest.mark.parametrize("make_mask", MASKS.values(), ids=MASKS.keys())
def test_equals_that_of_gpt_oss(make_mask, scale):
    inputs, mask = random_inputs(scale), make_mask()
    ours = values_and_gradients(lambda *x: sink_attention(*x, mask), inputs, [])
    theirs = values_and_gradients(lambda *x: as_gpt_oss(*x, mask), inputs, [])
    assert_same(ours, theirs)


def test_a_sink_of_zero_is_torchs_zero_attention():
    # nn.MultiheadAttention appends a key and a value of zeros, whose score is 0.
    torchs = nn.MultiheadAttention(6, HEADS, bias=False, batch_first=True, add_zero_attn=True)
    torchs = torchs.double()
    x = torch.randn(BATCH, Q_SEQ, 6, dtype=torch.float64)
    query, key, value = (
        each.unflatten(-1, (HEADS, 2)).transpose(1, 2)
        for each in (x @ torchs.in_proj_weight.T).chunk(3, dim=-1)
    )
    heads = sink_attention(query, key, value, torch.zeros(HEADS, dtype=torch.float64))
    ours = heads.transpose(1, 2).flatten(2) @ torchs.out_proj.weight.T
    theirs, weights = torchs(x, x, x)
    assert_same([ours], [theirs])
    assert (weights[..., :-1].sum(-1) < 1).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_low_precision_is_rounded_once(dtype):
    inputs, mask = random_inputs(dtype=dtype), mask_with_dead_rows()
    assert_rounded_once(
        sink_attention(*inputs, mask), sink_attention(*(x.double() for x in inputs), mask)
    )


def test_products_beyond_float16_do_not_overflow():
    query = torch.full((1, 1, 64), 40.0, dtype=torch.float16)  # products of 102,400
    key = torch.cat([query, -query], dim=-2)
    value = torch.eye(2, dtype=torch.float16)[None]
    weights = sink_attention(query, key, value, torch.zeros(1, dtype=torch.float16))
    assert weights.tolist() == [[[1.0, 0.0]]]


def test_a_dead_row_gives_zero_and_no_nan_on_the_way_back():
    inputs = [x.requires_grad_() for x in random_inputs()]
    output = sink_attention(*inputs, mask_with_dead_rows())
    assert (output[..., 1, :] == 0).all()
    with torch.autograd.set_detect_anomaly(True):  # an error at any NaN, even one cut off later
        output.sum().backward()
    assert (inputs[0].grad[..., 1, :] == 0).all()


def test_no_keys_give_zeros():
    query, key, value, sinks = random_inputs()
    output = sink_attention(query, key[..., :0, :], value[..., :0, :], sinks)
    assert torch.equal(output, torch.zeros(BATCH, HEADS, Q_SEQ, D_V, dtype=torch.float64))


def test_one_sequence_and_shared_keys_broadcast():
    query, key, value, sinks = random_inputs()
    shared, values = key[:1, :1], value[:1, :1]
    full = (x.expand(BATCH, HEADS, -1, -1) for x in (shared, values))
    expected = sink_attention(query, *full, sinks)
    assert_same([sink_attention(query, shared, values, sinks)], [expected])
    assert_same([sink_attention(query[0], shared[0], values[0], sinks)], [expected[0]])


def zeros(*shape, dtype=torch.float32):
    return torch.zeros(shape, dtype=dtype)


QKV = (zeros(2, 3, 5, 8), zeros(2, 3, 7, 8), zeros(2, 3, 7, 4))


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        (
            (*QKV, zeros(2)),
            ValueError,
            r"sinks must be one for each head, of shape \(num_heads,\), for scores of shape "
            r"\(..., num_heads, q_seq, kv_seq\); got \(2,\) for \(2, 3, 5, 7\)",
        ),
        ((*QKV, zeros(1)), ValueError, r"sinks must be .*; got \(1,\) for \(2, 3, 5, 7\)"),
        ((*QKV, zeros(3, 1)), ValueError, r"sinks must be .*; got \(3, 1\) for \(2, 3, 5, 7\)"),
        (
            (zeros(5, 8), zeros(7, 8), zeros(7, 4), zeros(5)),
            ValueError,
            r"sinks must be .*; got \(5,\) for \(5, 7\)",
        ),
        (
            (*QKV, zeros(3, dtype=torch.float64)),
            TypeError,
            "sinks must have the dtype of query, torch.float32, got torch.float64; convert them "
            r"with sinks.to\(torch.float32\)",
        ),
        (
            (QKV[0], zeros(2, 3, 7, 9), QKV[2], zeros(3)),
            ValueError,
            "query and key must have the same d_k > 0 as last axis",
        ),
        ((*QKV, zeros(3), zeros(5, 7)), TypeError, "mask must be boolean"),
        (
            (*QKV, zeros(3), zeros(5, 6, dtype=torch.bool)),
            ValueError,
            r"mask must have the shape of the scores \(2, 3, 5, 7\)",
        ),
    ],
)
def test_errors(inputs, error, message):
    with pytest.raises(error, match="^" + message):
        sink_attention(*inputs)
