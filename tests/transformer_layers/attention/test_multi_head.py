"""Multi-head attention against torch's, and by its laws."""

import math

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
from transformer_layers import (
    MultiHeadAttention,
    padding_mask,
)

# 6 features a head: of a square number a root in float32 would be exact.
BATCH, Q_SEQ, KV_SEQ, D_MODEL, NUM_HEADS = 4, 5, 7, 18, 3
PROJECTIONS = ("query_proj", "key_proj", "value_proj")


def random_layer(bias=True, dropout=0.0):
    layer = MultiHeadAttention(D_MODEL, NUM_HEADS, dropout=dropout, bias=bias)
    return with_random_weights(layer).double()


def random_inputs(*leading, q_seq=Q_SEQ, kv_seq=KV_SEQ):
    return (
        torch.randn(*leading, q_seq, D_MODEL, dtype=torch.float64),
        torch.randn(*leading, kv_seq, D_MODEL, dtype=torch.float64),
        torch.randn(*leading, kv_seq, D_MODEL, dtype=torch.float64),
    )


def random_mask(*shape):
    """A mask in which each query may attend to a key."""
    mask = torch.rand(shape) < 0.5
    mask[..., 0] = True
    return mask


def torchs(layer):
    """Torch's layer with the same weights: its three input projections are stacked in one."""
    bias = layer.output_proj.bias is not None
    theirs = nn.MultiheadAttention(D_MODEL, NUM_HEADS, bias=bias, batch_first=True).double()
    inputs = [getattr(layer, name) for name in PROJECTIONS]
    state = {
        "in_proj_weight": torch.cat([each.weight for each in inputs]),
        "out_proj.weight": layer.output_proj.weight,
    }
    if bias:
        state["in_proj_bias"] = torch.cat([each.bias for each in inputs])
        state["out_proj.bias"] = layer.output_proj.bias
    theirs.load_state_dict(state)
    return theirs


def stacked(results, bias):
    """Output, gradients of query, key and value, and of torch's parameters in torch's order."""
    weights, biases = results[4::2] if bias else results[4:], results[5::2]
    parameters = [torch.cat(weights[:3]), weights[3]]
    if bias:
        parameters = [torch.cat(weights[:3]), torch.cat(biases[:3]), weights[3], biases[3]]
    return [*results[:4], *parameters]


def compare_with_torch(layer, inputs, mask, **theirs_options):
    """`mask` is ours; theirs has True where attention is not allowed, and is given as options."""
    theirs, bias = torchs(layer), layer.output_proj.bias is not None
    expected = values_and_gradients(
        lambda *qkv: theirs(*qkv, need_weights=False, **theirs_options)[0],
        inputs,
        list(theirs.parameters()),
    )
    parameters = [
        parameter
        for name in (*PROJECTIONS, "output_proj")
        for parameter in getattr(layer, name).parameters()
    ]
    ours = values_and_gradients(lambda *qkv: layer(*qkv, mask), inputs, parameters)
    assert_same(stacked(ours, bias), expected)


# By hand


def test_by_hand():
    # Two heads of one feature. All keys are 0, so that each head takes the mean of its values.
    layer = MultiHeadAttention(2, 2)
    with torch.no_grad():
        for name in PROJECTIONS:
            getattr(layer, name).weight.copy_(torch.eye(2))
            getattr(layer, name).bias.zero_()
        layer.output_proj.weight.copy_(torch.tensor([[1.0, 0.0], [1.0, 10.0]]))
        layer.output_proj.bias.copy_(torch.tensor([0.0, 0.5]))
    query = torch.tensor([[3.0, -1.0]])
    value = torch.tensor([[1.0, 4.0], [3.0, 8.0]])
    output = layer(query, torch.zeros(2, 2), value)
    torch.testing.assert_close(output, torch.tensor([[2.0, 2.0 + 60.0 + 0.5]]))
    # The second head's first key is larger by log 3, times its query -1: weights 3/4 and 1/4.
    key = torch.tensor([[0.0, 0.0], [0.0, math.log(3)]])
    output = layer(query, key, value)
    torch.testing.assert_close(output, torch.tensor([[2.0, 2.0 + 50.0 + 0.5]]))


# Against torch


@pytest.mark.parametrize("bias", [True, False])
def test_equals_torch_with_a_mask_for_all(bias):
    mask = random_mask(Q_SEQ, KV_SEQ)
    compare_with_torch(random_layer(bias), random_inputs(BATCH), mask, attn_mask=~mask)


def test_equals_torch_with_a_mask_for_each_sequence():
    lengths = torch.tensor([3, 7, 0, 1])  # nothing is left of the third
    mask = random_mask(BATCH, Q_SEQ, KV_SEQ) & padding_mask(lengths, KV_SEQ)
    theirs = ~mask.repeat_interleave(NUM_HEADS, dim=0)  # one for each head of each sequence
    compare_with_torch(random_layer(), random_inputs(BATCH), mask, attn_mask=theirs)


# Masks


def test_a_dead_query_gives_the_output_bias_and_no_gradient():
    layer, inputs = random_layer(), random_inputs(BATCH)
    mask = random_mask(Q_SEQ, KV_SEQ)
    mask[1] = False
    output, *gradients = values_and_gradients(
        lambda *qkv: layer(*qkv, mask), inputs, list(layer.parameters())
    )
    assert torch.equal(output[:, 1], layer.output_proj.bias.expand(BATCH, -1))
    assert (gradients[0][:, 1] == 0).all()
    assert (gradients[0][:, 0] != 0).any()
    assert all(x.isfinite().all() for x in gradients)


# Dropout, dtypes, other input


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_low_precision_stays_near_float64(dtype):
    layer = MultiHeadAttention(D_MODEL, NUM_HEADS)
    with_random_weights(layer).to(dtype)
    inputs = [x.to(dtype) for x in random_inputs(BATCH)]
    mask = random_mask(BATCH, Q_SEQ, KV_SEQ)
    output = layer(*inputs, mask)
    assert output.dtype == dtype
    exact = layer.double()(*(x.double() for x in inputs), mask)
    # Each of four steps rounds: inputs' projections, scores and weights, heads, output projection.
    assert relative_error(output, exact) <= 8 * unit_roundoff(dtype)


def test_repr_shows_the_arguments():
    layer = MultiHeadAttention(12, 3, dropout=0.25, bias=False)
    assert repr(layer).startswith("MultiHeadAttention(\n  12, 3, dropout=0.25\n")
    assert repr(layer).count("bias=False") == 4


# Errors

of_layer = pytest.mark.usefixtures("as_users_run_it")


@of_layer
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"d_model": 10, "num_heads": 3},
            ValueError,
            "d_model must be divisible by num_heads, got d_model=10 and num_heads=3",
        ),
        ({"d_model": 10, "num_heads": 0}, ValueError, "num_heads must be at least 1, got 0"),
        ({"d_model": 8, "num_heads": 2.0}, TypeError, "num_heads must be an int, got 2.0"),
        (
            {"d_model": 8, "num_heads": 2, "dropout": 1.5},
            ValueError,
            "dropout must be between 0 and 1, got 1.5",
        ),
    ],
)
def test_errors_of_construction(arguments, error, message):
    with pytest.raises(error, match="^" + message):
        MultiHeadAttention(**arguments)


def zeros(*shape, dtype=torch.float32):
    return torch.zeros(shape, dtype=dtype)


@of_layer
@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        (
            (zeros(4, 5, 12), zeros(4, 7, 12), zeros(4, 6, 12)),
            ValueError,
            "key and value must have the same kv_seq, "
            r"got shapes \(4, 5, 12\), \(4, 7, 12\), \(4, 6, 12\)",
        ),
        (
            (zeros(4, 5, 12), zeros(1, 7, 12), zeros(1, 7, 12)),  # torch's matmul would broadcast
            ValueError,
            "query, key, value must have the same leading axes, "
            r"got shapes \(4, 5, 12\), \(1, 7, 12\), \(1, 7, 12\)",
        ),
        (
            (zeros(4, 5, 12), zeros(4, 7, 11), zeros(4, 7, 12)),
            ValueError,
            "key must have a last axis of d_model = 12, got a last axis of 11: its shape is "
            r"\(4, 7, 11\)",
        ),
        (
            (zeros(4, 5, 12), zeros(4, 7, 12), zeros(4, 7, 12, dtype=torch.float64)),
            TypeError,
            "value is torch.float64 but the layer's parameters are torch.float32",
        ),
        (
            (zeros(4, 5, 12, dtype=torch.int64), zeros(4, 7, 12), zeros(4, 7, 12)),
            TypeError,
            "query must be a floating-point tensor, got torch.int64",
        ),
    ],
)
def test_errors_of_inputs(inputs, error, message):
    with pytest.raises(error, match="^" + message):
        MultiHeadAttention(12, 3)(*inputs)


@of_layer
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
            zeros(4, 7, dtype=torch.bool),
            ValueError,
            r"mask must have the shape \(5, 7\) or \(4, 5, 7\) or \(4, 1, 7\) for query "
            r"\(4, 5, 12\) and key \(4, 7, 12\), got \(4, 7\); for padding pass "
            r"padding_mask\(lengths, kv_seq\) or mask\[..., None, :\], of shape \(4, 1, 7\)",
        ),
        (
            zeros(4, 1, 5, 7, dtype=torch.bool),
            ValueError,
            r"mask must have the shape .*, got \(4, 1, 5, 7\); "
            "it has no axis for the heads, which share it",
        ),
        (
            zeros(3, 5, 7, dtype=torch.bool),
            ValueError,
            r"mask must have the shape .*, got \(3, 5, 7\)$",
        ),
    ],
)
def test_errors_of_masks(mask, error, message):
    with pytest.raises(error, match="^" + message):
        MultiHeadAttention(12, 3)(zeros(4, 5, 12), zeros(4, 7, 12), zeros(4, 7, 12), mask)


@of_layer
def test_a_mask_of_one_axis_for_one_sequence_has_no_remedy():
    x, memory = zeros(5, 12), zeros(7, 12)
    message = r"mask must have the shape \(5, 7\) for query \(5, 12\) and key \(7, 12\), got \(7,\)"
    with pytest.raises(ValueError, match=f"^{message}$"):
        MultiHeadAttention(12, 3)(x, memory, memory, zeros(7, dtype=torch.bool))
