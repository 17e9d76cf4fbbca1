"""Grouped queries: against two authorities, by their laws, with caches, and their errors."""

import pytest
import torch
from torch import nn

from tests.transformer_layers.comparisons import (
    assert_same,
    values_and_gradients,
    with_random_weights,
)
from transformer_layers import (
    GroupedQueryAttention,
    KeyValueCache,
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


@pytest.mark.parametrize(("kv_heads", "seq"), [(1, 5), (2, 5)])
def test_values_and_gradients_equal_those_of_torchs_kernel(kv_heads, seq):
    layer, x = layer_of(6, 4, kv_heads, 10, RotaryPositions(10), bias=True), random(1, seq, 6)
    parameters = list(layer.parameters())
    found = values_and_gradients(layer, [x], parameters)
    expected = values_and_gradients(lambda x: by_torch(layer, x), [x], parameters)
    assert_same(found, expected)


@pytest.mark.parametrize("window", [1, 5])
@pytest.mark.parametrize("pieces", [[1] * 9, [2, 0, 7]], ids=str)
def test_a_window_with_a_cache_is_that_of_the_whole(window, pieces):
    layer, x = layer_of(6, 4, 2, 4, RotaryPositions(4), window), random(2, 9, 6)
    expected = by_torch(layer, x, sliding_window_mask(9, window))
    assert_same([layer(x)], [expected])
    cache = KeyValueCache(2, 2, 9, 4, dtype=torch.float64)
    found = [layer(piece, cache) for piece in x.split(pieces, dim=1)]
    assert_same([torch.cat(found, dim=1)], [expected])


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("ask", "error", "said"),
    [
        (lambda: GroupedQueryAttention(6, 4, 3, 2), ValueError, "divisible by num_kv_heads, got"),
        (lambda: GroupedQueryAttention(6, 4, 2, 2, window=0), ValueError, "window must be at lea"),
        (
            lambda: GroupedQueryAttention(6, 2, 1, head_norm=RMSNorm, projection_norm=RMSNorm),
            ValueError,
            "either head_norm or projection_norm, got both",
        ),
        (lambda: layer_of(6, 2, 1)(random(6)), ValueError, "x must have two axes or more"),
    ],
)
def test_what_it_cannot_attend_is_refused(ask, error, said):
    with pytest.raises(error, match=said):
        ask()
