"""GPT-2's attention against that of `transformers`, and by its laws."""

import math

import pytest
import torch
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


def test_equals_the_layer_of_transformers():
    layer, x = random_layer(), random_input(BATCH)
    theirs = gpt2_attention(layer, "eager")
    added = torch.zeros(SEQ, SEQ, dtype=torch.float64).masked_fill(~causal_mask(SEQ), -math.inf)
    expected = values_and_gradients(
        lambda x: theirs(x, attention_mask=added[None, None])[0], [x], list(theirs.parameters())
    )
    names = [name for name, _ in layer.named_parameters()]
    assert names == [name for name, _ in theirs.named_parameters()]
    assert_same(values_and_gradients(layer, [x], list(layer.parameters())), expected)


# Cache


def test_in_pieces_with_a_cache_as_in_one():
    sizes = [4, 0, 1, 1, 3]
    layer, x = random_layer(), random_input(BATCH, seq=sum(sizes))
    cache = new_cache(max_seq=sum(sizes) + 3)
    pieces = [layer(piece, cache) for piece in x.split(sizes, dim=1)]
    whole = layer(x)
    torch.testing.assert_close(torch.cat([whole[:, :0], *pieces], dim=1), whole, rtol=0, atol=1e-12)
    assert cache.length == sum(sizes)


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
        ((8, 2, -0.5), ValueError, "dropout must be between 0 and 1, got -0.5"),
    ],
)
def test_errors_of_construction(arguments, error, message):
    with pytest.raises(error, match="^" + message):
        CausalSelfAttention(*arguments)


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
