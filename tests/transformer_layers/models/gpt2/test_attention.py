"""GPT-2's attention against that of `transformers`, and by its laws."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import GPT2Config
from transformers.models.gpt2.modeling_gpt2 import GPT2Attention

from tests.transformer_layers.comparisons import (
    assert_same,
    relative_error,
    unit_roundoff,
    values_and_gradients,
    with_random_weights,
)
from transformer_layers import (
    CausalSelfAttention,
    KeyValueCache,
    causal_mask,
    scaled_dot_product_attention,
)

# 5 features a head: of a square number a root in float32 would be exact.
BATCH, SEQ, D_MODEL, NUM_HEADS = 2, 7, 15, 3
D_K = D_MODEL // NUM_HEADS


def random_layer(dropout=0.0):
    return with_random_weights(CausalSelfAttention(D_MODEL, NUM_HEADS, dropout)).double()


def random_input(*leading, seq=SEQ):
    return torch.randn(*leading, seq, D_MODEL, dtype=torch.float64)


def new_cache(batch=BATCH, max_seq=SEQ, dtype=torch.float64):
    return KeyValueCache(batch, NUM_HEADS, max_seq, D_K, dtype=dtype)


def gpt2_attention(layer, implementation):
    config = GPT2Config(n_embd=D_MODEL, n_head=NUM_HEADS, attn_pdrop=0.0, resid_pdrop=0.0)
    config._attn_implementation = implementation
    theirs = GPT2Attention(config, layer_idx=0).double()
    theirs.load_state_dict(layer.state_dict(), strict=True)
    return theirs


def defined(layer, x):
    """The layer by the definition of attention, one head at a time."""
    query, key, value = layer.c_attn(x).split(D_MODEL, dim=-1)
    heads = [
        scaled_dot_product_attention(*features, causal_mask(x.shape[-2]))
        for features in zip(*(each.split(D_K, dim=-1) for each in (query, key, value)), strict=True)
    ]
    return layer.c_proj(torch.cat(heads, dim=-1))


# By hand


def test_by_hand():
    # Keys of 0: each position takes the mean of its own and all earlier values, here x and 10 x.
    layer = CausalSelfAttention(2, 2).eval()
    with torch.no_grad():
        layer.c_attn.weight.copy_(
            torch.tensor([[1.0, 0.0, 0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0, 10.0]])
        )
        layer.c_proj.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
        layer.c_proj.bias.copy_(torch.tensor([0.0, 0.5]))
    output = layer(torch.tensor([[3.0, 1.0], [5.0, 2.0], [1.0, 6.0]]))
    torch.testing.assert_close(output, torch.tensor([[3.0, 10.5], [4.0, 15.5], [3.0, 30.5]]))


# Against transformers


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_equals_the_layer_of_transformers(implementation):
    layer, x = random_layer(), random_input(BATCH)
    theirs = gpt2_attention(layer, implementation)
    added = torch.zeros(SEQ, SEQ, dtype=torch.float64).masked_fill(~causal_mask(SEQ), -math.inf)
    expected = values_and_gradients(
        lambda x: theirs(x, attention_mask=added[None, None])[0], [x], list(theirs.parameters())
    )
    names = [name for name, _ in layer.named_parameters()]
    assert names == [name for name, _ in theirs.named_parameters()]
    assert_same(values_and_gradients(layer, [x], list(layer.parameters())), expected)


def test_has_the_published_keys_and_no_others():
    keys = ["c_attn.weight", "c_attn.bias", "c_proj.weight", "c_proj.bias"]
    assert list(random_layer().state_dict()) == keys


# Against the definition


@pytest.mark.parametrize(
    ("leading", "seq"), [((BATCH,), SEQ), ((), SEQ), ((2, 3), SEQ), ((), 1025)]
)
def test_equals_the_definition(leading, seq):
    layer, x = random_layer(), random_input(*leading, seq=seq)
    parameters = list(layer.parameters())
    expected = values_and_gradients(lambda x: defined(layer, x), [x], parameters)
    assert_same(values_and_gradients(layer, [x], parameters), expected)


@pytest.mark.parametrize("shape", [(0, SEQ), (BATCH, 0), (0, 0)])
def test_empty_batches_and_sequences(shape):
    layer, x = random_layer(), torch.zeros(*shape, D_MODEL, dtype=torch.float64)
    output, *gradients = values_and_gradients(layer, [x], list(layer.parameters()))
    assert output.shape == x.shape
    assert all((gradient == 0).all() for gradient in gradients)


# Causality


@given(st.integers(0, SEQ - 1), st.integers(0, 2**16))
def test_the_future_changes_nothing(t, seed):
    torch.manual_seed(seed)
    layer, x = random_layer(), random_input(BATCH)
    changed = x.clone()
    changed[:, t:] += torch.randn(BATCH, SEQ - t, D_MODEL)
    before, after = layer(x), layer(changed)
    torch.testing.assert_close(after[:, :t], before[:, :t], rtol=0, atol=1e-14)
    assert ((after - before)[:, t:].abs() > 1e-6).any(dim=-1).all()


def test_a_nan_in_the_future_spreads_to_the_past():
    # 0 * NaN is NaN: the same in torch, and why causality is tested with finite numbers.
    layer, x = random_layer(), random_input(BATCH)
    x[0, -1] = math.nan
    output = layer(x)
    assert output[0].isnan().all()
    assert output[1].isfinite().all()


# Cache


@given(st.lists(st.integers(0, 4), max_size=6), st.integers(0, 2**16))
def test_in_pieces_with_a_cache_as_in_one(sizes, seed):
    torch.manual_seed(seed)
    layer, x = random_layer(), random_input(BATCH, seq=sum(sizes))
    cache = new_cache(max_seq=sum(sizes) + 3)
    pieces = [layer(piece, cache) for piece in x.split(sizes, dim=1)] if sizes else []
    whole = layer(x)
    torch.testing.assert_close(torch.cat([whole[:, :0], *pieces], dim=1), whole, rtol=0, atol=1e-12)
    assert cache.length == sum(sizes)


def test_a_cache_serves_in_evaluation_and_under_inference_mode():
    layer, x = random_layer(dropout=0.5).eval(), random_input(BATCH)
    with torch.inference_mode():
        cache = new_cache()
        pieces = [layer(x[:, t : t + 1], cache) for t in range(SEQ)]
        assert_same([torch.cat(pieces, dim=1)], [layer(x)])


def test_gradients_of_the_last_piece_reach_back_through_the_cache():
    layer, x = random_layer(), random_input(BATCH)

    def last_piece_with_cache(x):
        cache = new_cache()
        layer(x[:, :3], cache)
        layer(x[:, 3:5], cache)
        return layer(x[:, 5:], cache)

    parameters = list(layer.parameters())
    ours = values_and_gradients(last_piece_with_cache, [x], parameters)
    assert_same(ours, values_and_gradients(lambda x: layer(x)[:, 5:], [x], parameters))


def test_gradients_of_an_earlier_piece_are_refused():
    layer, x = random_layer(), random_input(BATCH)
    cache = new_cache()
    first = layer(x[:, :3], cache)
    layer(x[:, 3:], cache)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        first.sum().backward()


# Dropout


def test_dropout_acts_on_the_weights():
    layer = random_layer(dropout=1.0).train()
    layer.dropout.forward = lambda x: x  # leaves the dropout of the weights alone
    output = layer(random_input(BATCH))
    assert torch.equal(output, layer.c_proj.bias.expand(output.shape))


def test_dropout_acts_on_the_result_and_in_training_only():
    layer, x = random_layer(dropout=0.5), random_input(16)
    share = (layer.train()(x) == 0).double().mean()
    # 1680 draws: a share within five standard deviations of a half.
    assert abs(share - 0.5) < 5 * 0.5 / math.sqrt(x.numel())
    assert_same([layer.eval()(x)], [defined(layer, x)])


# Dtypes and derivatives


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_low_precision_stays_near_float64(dtype):
    layer, x = random_layer().to(dtype), random_input(BATCH).to(dtype)
    output = layer(x)
    assert output.dtype == dtype
    exact = layer.double()(x.double())
    # Product and bias of two maps, the weights and the heads: six roundings.
    assert relative_error(output, exact) <= 6 * unit_roundoff(dtype)


def test_repr_shows_the_arguments():
    assert repr(CausalSelfAttention(12, 3)).startswith("CausalSelfAttention(\n  12, 3\n")


# Errors


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            (10, 3),
            ValueError,
            "d_model must be divisible by num_heads, got d_model=10 and num_heads=3",
        ),
        ((10, 0), ValueError, "num_heads must be at least 1, got 0"),
        ((0, 1), ValueError, "d_model must be at least 1, got 0"),
        ((8, 2.0), TypeError, "num_heads must be an int, got 2.0"),
        ((8, 2, -0.5), ValueError, "dropout must be between 0 and 1, got -0.5"),
        ((8, 2, math.nan), ValueError, "dropout must be between 0 and 1, got nan"),
    ],
)
def test_errors_of_construction(arguments, error, message):
    with pytest.raises(error, match="^" + message):
        CausalSelfAttention(*arguments)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (
            torch.zeros(2, 5, 8),
            ValueError,
            "x must have a last axis of d_model = 12, got a last axis of 8: its shape is "
            r"\(2, 5, 8\)",
        ),
        (
            torch.zeros(12),
            ValueError,
            r"x must have two axes or more, \(..., seq, d_model\), got shape \(12,\)",
        ),
        (
            torch.zeros(2, 5, 12, dtype=torch.float64),
            TypeError,
            "x is torch.float64 but the layer's parameters are torch.float32",
        ),
        (
            torch.zeros(2, 5, 12, dtype=torch.int64),
            TypeError,
            "x must be a floating-point tensor, got torch.int64",
        ),
    ],
)
def test_errors_of_input(x, error, message):
    with pytest.raises(error, match="^" + message):
        CausalSelfAttention(12, 3)(x)


@pytest.mark.usefixtures("as_users_run_it")
def test_errors_of_the_cache():
    layer, x = random_layer(), random_input(BATCH)
    cache = new_cache(max_seq=9)
    layer(x, cache)
    with pytest.raises(
        ValueError, match=r"^the cache has room for max_seq = 9 positions, got 3 after 7"
    ):
        layer(x[:, :3], cache)
    with pytest.raises(ValueError, match=r"^.* of shape \(2, 3, seq, 5\), got \(1, 3, 7, 5\)"):
        layer(x[:1], cache)
    with pytest.raises(ValueError, match=r"^.* of shape \(2, 3, seq, 5\), got \(3, 7, 5\)"):
        layer(x[0], cache)
    with pytest.raises(TypeError, match=r"^.* holds torch.float32, got keys of torch.float64"):
        layer(x, new_cache(dtype=torch.float32))
