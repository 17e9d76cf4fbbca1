"""Multi-head attention against torch's, and by its laws."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
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
    causal_mask,
    padding_mask,
    scaled_dot_product_attention,
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


@pytest.mark.parametrize(("bias", "kinds"), [(True, ["weight", "bias"]), (False, ["weight"])])
def test_parameters_are_those_of_four_linear_layers(bias, kinds):
    names = [name for name, _ in MultiHeadAttention(4, 2, bias=bias).named_parameters()]
    assert names == [f"{proj}.{kind}" for proj in (*PROJECTIONS, "output_proj") for kind in kinds]


@pytest.mark.parametrize("bias", [True, False])
def test_each_head_is_attention_of_its_features(bias):
    layer, inputs = random_layer(bias), random_inputs(BATCH)
    mask = random_mask(BATCH, Q_SEQ, KV_SEQ)
    q, k, v = (getattr(layer, name)(x) for name, x in zip(PROJECTIONS, inputs, strict=True))
    d_k = D_MODEL // NUM_HEADS
    heads = [
        scaled_dot_product_attention(*features, mask)
        for features in zip(q.split(d_k, -1), k.split(d_k, -1), v.split(d_k, -1), strict=True)
    ]
    assert_same([layer(*inputs, mask)], [layer.output_proj(torch.cat(heads, dim=-1))])


# Against torch


@pytest.mark.parametrize("bias", [True, False])
def test_equals_torch_without_a_mask(bias):
    compare_with_torch(random_layer(bias), random_inputs(BATCH), None)


@pytest.mark.parametrize("bias", [True, False])
def test_equals_torch_with_a_mask_for_all(bias):
    mask = random_mask(Q_SEQ, KV_SEQ)
    compare_with_torch(random_layer(bias), random_inputs(BATCH), mask, attn_mask=~mask)


def test_equals_torch_with_a_mask_for_each_sequence():
    mask = random_mask(BATCH, Q_SEQ, KV_SEQ)
    theirs = ~mask.repeat_interleave(NUM_HEADS, dim=0)  # one for each head of each sequence
    compare_with_torch(random_layer(), random_inputs(BATCH), mask, attn_mask=theirs)


def test_equals_torch_with_padding_also_of_a_whole_sequence():
    mask = padding_mask(torch.tensor([3, 7, 0, 1]), KV_SEQ)
    theirs = ~mask[:, 0]
    compare_with_torch(random_layer(), random_inputs(BATCH), mask, key_padding_mask=theirs)


@pytest.mark.parametrize(("q_seq", "kv_seq"), [(1025, 5), (4, 1025), (513, 512)])
def test_equals_torch_with_many_queries_or_keys_of_which_some_are_padding(q_seq, kv_seq):
    mask = padding_mask(torch.tensor([kv_seq - 3, 2]), kv_seq)
    inputs = random_inputs(2, q_seq=q_seq, kv_seq=kv_seq)
    compare_with_torch(random_layer(), inputs, mask, key_padding_mask=~mask[:, 0])


def test_equals_torch_with_a_query_that_may_attend_to_nothing():
    mask = random_mask(Q_SEQ, KV_SEQ)
    mask[1] = False
    compare_with_torch(random_layer(), random_inputs(BATCH), mask, attn_mask=~mask)


def test_equals_torch_unbatched():
    mask = random_mask(Q_SEQ, KV_SEQ)
    compare_with_torch(random_layer(), random_inputs(), mask, attn_mask=~mask)


def test_equals_torch_causal():
    mask = causal_mask(Q_SEQ)
    inputs = random_inputs(BATCH, kv_seq=Q_SEQ)
    compare_with_torch(random_layer(), inputs, mask, attn_mask=~mask, is_causal=True)


def test_equals_torch_on_an_empty_batch_and_on_empty_sequences():
    for inputs in (random_inputs(0), random_inputs(BATCH, q_seq=0, kv_seq=0)):
        compare_with_torch(random_layer(), inputs, None)


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


def test_two_axes_are_queries_and_keys_also_with_as_many_sequences_as_queries():
    layer, inputs = random_layer(), random_inputs(Q_SEQ, kv_seq=Q_SEQ)
    allowed = random_mask(Q_SEQ, Q_SEQ)
    compare_with_torch(layer, inputs, allowed, attn_mask=~allowed)
    # The same numbers as a padding mask have one more axis, and mean something else.
    compare_with_torch(layer, inputs, allowed[:, None], key_padding_mask=~allowed)
    assert relative_error(layer(*inputs, allowed), layer(*inputs, allowed[:, None])) > 0.01


def test_the_first_of_three_axes_is_the_batch_also_with_as_many_heads():
    layer, inputs = random_layer(), random_inputs(NUM_HEADS)
    mask = random_mask(NUM_HEADS, Q_SEQ, KV_SEQ)
    output = layer(*inputs, mask)
    for b in range(NUM_HEADS):
        alone = layer(*(x[b] for x in inputs), mask[b])
        assert_same([output[b]], [alone])


@given(st.lists(st.integers(0, 6), min_size=1, max_size=4), st.integers(0, 2**16))
def test_padded_sequences_give_what_they_give_alone(lengths, seed):
    torch.manual_seed(seed)
    layer = random_layer()
    x = torch.randn(len(lengths), 6, D_MODEL, dtype=torch.float64)
    output = layer(x, x, x, padding_mask(torch.tensor(lengths), seq=6))
    for sequence, length, result in zip(x, lengths, output, strict=True):
        real = sequence[:length]
        torch.testing.assert_close(result[:length], layer(real, real, real), rtol=0, atol=1e-12)


# Laws


@given(st.permutations(range(Q_SEQ)), st.permutations(range(KV_SEQ)))
def test_the_order_of_queries_carries_over_and_that_of_keys_does_not_matter(queries, keys):
    layer, (query, key, value) = random_layer(), random_inputs(BATCH)
    shuffled = layer(query[:, queries], key[:, keys], value[:, keys])
    assert_same([shuffled], [layer(query, key, value)[:, queries]])


@given(st.lists(st.integers(0, 3), max_size=3), st.booleans())
def test_any_leading_axes_are_sequences_by_themselves(leading, with_mask):
    layer, inputs = random_layer(), random_inputs(*leading)
    mask = random_mask(*leading, Q_SEQ, KV_SEQ) if with_mask else None
    output = layer(*inputs, mask)
    assert output.shape == inputs[0].shape
    for index in torch.cartesian_prod(*map(torch.arange, leading)) if len(leading) > 1 else []:
        at = tuple(index.tolist())
        alone = layer(*(x[at] for x in inputs), None if mask is None else mask[at])
        torch.testing.assert_close(output[at], alone, rtol=0, atol=1e-12)


# Dropout, dtypes, other input


def test_dropout_acts_on_the_weights_and_in_training_only():
    layer, inputs = random_layer(dropout=1.0), random_inputs(BATCH)
    expected = MultiHeadAttention(D_MODEL, NUM_HEADS).double()
    expected.load_state_dict(layer.state_dict())
    assert torch.equal(layer.eval()(*inputs), expected(*inputs))
    output = layer.train()(*inputs)  # all weights dropped: only the bias of the output is left
    assert torch.equal(output, layer.output_proj.bias.expand(output.shape))


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
        ({"d_model": 0, "num_heads": 1}, ValueError, "d_model must be at least 1, got 0"),
        ({"d_model": 8.0, "num_heads": 2}, TypeError, "d_model must be an int, got 8.0"),
        ({"d_model": 8, "num_heads": 2.0}, TypeError, "num_heads must be an int, got 2.0"),
        (
            {"d_model": 8, "num_heads": 2, "dropout": 1.5},
            ValueError,
            "dropout must be between 0 and 1, got 1.5",
        ),
        (
            {"d_model": 8, "num_heads": 2, "dropout": math.nan},
            ValueError,
            "dropout must be between 0 and 1, got nan",
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
            (zeros(4, 5, 12), zeros(7, 12), zeros(7, 12)),
            ValueError,
            r"query, key, value must have the same leading axes, "
            r"got shapes \(4, 5, 12\), \(7, 12\), \(7, 12\)",
        ),
        (
            (zeros(12), zeros(12), zeros(12)),
            ValueError,
            r"query, key, value must have two axes or more, \(..., seq, d_model\), "
            r"got shapes \(12,\), \(12,\), \(12,\)",
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
        (
            (zeros(4, 5, 12, dtype=torch.complex64), zeros(4, 7, 12), zeros(4, 7, 12)),
            TypeError,
            "query must be a floating-point tensor, got torch.complex64",
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
            zeros(4, 1, 7, dtype=torch.int64),
            TypeError,
            "mask must be boolean with True = may attend, got torch.int64; pass mask == 0 if",
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
            zeros(4, 3, 5, 7, dtype=torch.bool),
            ValueError,
            "mask must have the shape .* it has no axis for the heads",
        ),
        (zeros(7, 5, dtype=torch.bool), ValueError, r"mask must have the shape .*, got \(7, 5\)$"),
        (zeros(1, 7, dtype=torch.bool), ValueError, r"mask must have the shape .*, got \(1, 7\)$"),
        (zeros(7, dtype=torch.bool), ValueError, r"mask must have the shape .*, got \(7,\)$"),
        (
            zeros(3, 5, 7, dtype=torch.bool),
            ValueError,
            r"mask must have the shape .*, got \(3, 5, 7\)$",
        ),  # one for each head
        (
            zeros(1, 5, 7, dtype=torch.bool),
            ValueError,
            r"mask must have the shape .*, got \(1, 5, 7\)$",
        ),
        (
            zeros(4, 5, 1, dtype=torch.bool),
            ValueError,
            r"mask must have the shape .*, got \(4, 5, 1\)$",
        ),
    ],
)
def test_errors_of_masks(mask, error, message):
    with pytest.raises(error, match="^" + message):
        MultiHeadAttention(12, 3)(zeros(4, 5, 12), zeros(4, 7, 12), zeros(4, 7, 12), mask)


@of_layer
def test_a_mask_of_a_batch_does_not_enlarge_one_sequence():
    layer = MultiHeadAttention(12, 3)
    with pytest.raises(ValueError, match=r"^mask must have the shape .* got \(2, 1, 7\)$"):
        layer(zeros(1, 5, 12), zeros(1, 7, 12), zeros(1, 7, 12), zeros(2, 1, 7, dtype=torch.bool))
    with pytest.raises(
        ValueError,
        match=r"^mask must have the shape \(5, 7\) for query \(5, 12\) .* got \(2, 1, 7\)",
    ):
        layer(zeros(5, 12), zeros(7, 12), zeros(7, 12), zeros(2, 1, 7, dtype=torch.bool))
    with pytest.raises(
        ValueError, match=r"^mask must have the shape \(5, 7\) for .* got \(1, 7\)$"
    ):
        layer(zeros(5, 12), zeros(7, 12), zeros(7, 12), zeros(1, 7, dtype=torch.bool))


@of_layer
def test_a_mask_of_one_axis_for_one_sequence_has_no_remedy():
    x, memory = zeros(5, 12), zeros(7, 12)
    message = r"mask must have the shape \(5, 7\) for query \(5, 12\) and key \(7, 12\), got \(7,\)"
    with pytest.raises(ValueError, match=f"^{message}$"):
        MultiHeadAttention(12, 3)(x, memory, memory, zeros(7, dtype=torch.bool))
