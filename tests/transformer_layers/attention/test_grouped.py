"""Grouped queries: against two authorities, by their laws, with caches, and their errors."""

import pytest
import torch
from torch import nn
from transformers import Qwen3Config
from transformers.models.qwen3.modeling_qwen3 import Qwen3Attention

from tests.transformer_layers.comparisons import (
    assert_same,
    values_and_gradients,
    with_random_weights,
)
from transformer_layers import (
    GroupedQueryAttention,
    KeyValueCache,
    LlamaRMSNorm,
    RMSNorm,
    RotaryPositions,
    sliding_window_mask,
)


def random(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def layer_of(*sizes, **options):
    return with_random_weights(GroupedQueryAttention(*sizes, **options)).double()


def by_torch(layer, x, mask=None):
    """The same with torch's own kernel for grouped queries."""
    heads = {"query": layer.num_heads, "key": layer.num_kv_heads, "value": layer.num_kv_heads}
    projections = (layer.q_proj, layer.k_proj, layer.v_proj)
    query, key, value = (
        projection(x).unflatten(-1, (count, layer.d_k)).transpose(1, 2)
        for projection, count in zip(projections, heads.values(), strict=True)
    )
    if layer.positions is not None:
        places = torch.arange(x.shape[1])
        query, key = layer.positions(query, places), layer.positions(key, places)
    attended = nn.functional.scaled_dot_product_attention(
        query, key, value, mask, is_causal=mask is None, enable_gqa=True
    )
    return layer.o_proj(attended.transpose(1, 2).flatten(2))


@pytest.mark.parametrize(("kv_heads", "seq"), [(1, 5), (2, 5), (4, 5), (2, 512), (2, 1025)])
def test_values_and_gradients_equal_those_of_torchs_kernel(kv_heads, seq):
    layer, x = layer_of(6, 4, kv_heads, 10, RotaryPositions(10), bias=True), random(1, seq, 6)
    parameters = list(layer.parameters())
    found = values_and_gradients(layer, [x], parameters)
    expected = values_and_gradients(lambda x: by_torch(layer, x), [x], parameters)
    assert_same(found, expected)


def test_a_query_reads_the_head_of_its_group():
    layer, x = layer_of(6, 4, 2, 3), random(1, 5, 6)
    with torch.no_grad():
        layer.v_proj.weight[:3] = 0.0  # of the first head of values
        layer.o_proj.weight.copy_(torch.eye(12)[:6])  # the first two heads of queries
    assert layer(x).eq(0).all()
    with torch.no_grad():
        layer.o_proj.weight.copy_(torch.eye(12)[6:])  # the last two
    assert layer(x).ne(0).all()


def test_norms_of_heads_equal_those_of_qwen_3_in_transformers():
    config = Qwen3Config(
        hidden_size=6, num_attention_heads=4, num_key_value_heads=2, head_dim=8, num_hidden_layers=1
    )
    config._attn_implementation = "sdpa"
    ours = layer_of(6, 4, 2, 8, RotaryPositions(8), head_norm=lambda size: LlamaRMSNorm(size, 1e-6))
    theirs = Qwen3Attention(config, layer_idx=0).double()
    theirs.load_state_dict(ours.state_dict())
    x = random(2, 5, 6)
    angles = torch.arange(5)[:, None] * ours.positions.frequencies().repeat(2)
    expected, _ = theirs(x, (angles.cos()[None], angles.sin()[None]), None)
    assert_same([ours(x)], [expected], 1e-6)  # their norm is in float32


def test_norms_over_all_heads_are_of_the_whole_projection():
    layer = layer_of(6, 4, 2, 3, projection_norm=RMSNorm)
    assert layer.q_norm.weight.shape == (12,)
    assert layer.k_norm.weight.shape == (6,)
    x = random(2, 5, 6)
    seen = []
    layer.q_norm.register_forward_hook(lambda *called: seen.append(called[1][0].shape))
    layer(x)
    assert seen == [(2, 5, 12)]


@pytest.mark.parametrize("window", [1, 3, 5, 9])
@pytest.mark.parametrize("pieces", [[9], [1] * 9, [4, 5], [2, 0, 7]], ids=str)
def test_a_window_with_a_cache_is_that_of_the_whole(window, pieces):
    layer, x = layer_of(6, 4, 2, 4, RotaryPositions(4), window), random(2, 9, 6)
    expected = by_torch(layer, x, sliding_window_mask(9, window))
    assert_same([layer(x)], [expected])
    cache = KeyValueCache(2, 2, 9, 4, dtype=torch.float64)
    found = [layer(piece, cache) for piece in x.split(pieces, dim=1)]
    assert_same([torch.cat(found, dim=1)], [expected])


def test_the_bytes_of_a_cache_are_those_of_the_heads_of_keys():
    layer = layer_of(64, 8, 2)
    cache = KeyValueCache(3, layer.num_kv_heads, 10, layer.d_k, dtype=torch.float16)
    assert cache.nbytes == 3 * 10 * 2 * 2 * 8 * 2


@pytest.mark.parametrize("window", [None, 3])
def test_each_sequence_behind_its_own_padding_is_as_alone(window):
    layer, x = layer_of(6, 4, 2, 4, RotaryPositions(4), window), random(3, 9, 6)
    padding = torch.tensor([0, 4, 2])
    cache = KeyValueCache(3, 2, 9, 4, dtype=torch.float64, padding=padding)
    found = torch.cat([layer(piece, cache) for piece in x.split([5, 1, 1, 2], dim=1)], dim=1)
    for each, given, begin in zip(found, x, padding.tolist(), strict=True):
        assert_same([each[begin:]], [layer(given[None, begin:])[0]])


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("ask", "error", "said"),
    [
        (lambda: GroupedQueryAttention(6, 4, 3, 2), ValueError, "divisible by num_kv_heads, got"),
        (lambda: GroupedQueryAttention(6, 4, 2), ValueError, "d_model must be divisible by num_h"),
        (lambda: GroupedQueryAttention(6, 4, 2, 2, window=0), ValueError, "window must be at lea"),
        (
            lambda: GroupedQueryAttention(6, 2, 1, head_norm=RMSNorm, projection_norm=RMSNorm),
            ValueError,
            "either head_norm or projection_norm, got both",
        ),
        (lambda: layer_of(6, 2, 1)(torch.ones(2, 6)), TypeError, "x is torch.float32 but the"),
        (lambda: layer_of(6, 2, 1)(random(6)), ValueError, "x must have two axes or more"),
        (lambda: sliding_window_mask(3, 0), ValueError, "window must be at least 1, got 0"),
    ],
)
def test_what_it_cannot_attend_is_refused(ask, error, said):
    with pytest.raises(error, match=said):
        ask()
