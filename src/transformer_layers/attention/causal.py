"""Attention of a sequence to itself and to what a cache holds of it, as decoders have it."""

from jaxtyping import Float
from torch import Tensor

from transformer_layers.attention.cache import KeyValueCache, next_positions
from transformer_layers.attention.kernel import fused_attention
from transformer_layers.attention.masks import sliding_window_mask
from transformer_layers.positions.rotary import Positions


def causal_attention(
    query: Float[Tensor, "*batch num_heads seq d_k"],
    key: Float[Tensor, "*batch num_kv_heads seq d_k"],
    value: Float[Tensor, "*batch num_kv_heads seq d_v"],
    cache: KeyValueCache | None = None,
    positions: Positions | None = None,
    dropout_p: float = 0.0,
    window: int | None = None,
) -> Float[Tensor, "*batch num_heads seq d_v"]:
    """Attends from each position to itself, to those before it, and to those in a cache.

    Where there are fewer heads of keys than of queries, each is read by as many neighboring heads
    of queries: head h reads head `h // (num_heads // num_kv_heads)`, as in
    https://arxiv.org/abs/2305.13245, section 2.2.

    Args:
        query: Shape `(..., num_heads, seq, d_k)`.
        key: Shape `(..., num_kv_heads, seq, d_k)`; `num_kv_heads` divides `num_heads`.
        value: Shape `(..., num_kv_heads, seq, d_v)`.
        cache: Keys and values of the positions before; those given are added. Keys are kept with
            their positions in them.
        positions: Maps queries and keys, each with its positions, before they meet; none if not
            given.
        dropout_p: Share of the weights to drop.
        window: How many keys a query sees at most, the last ones, itself among them; all if not
            given.

    Returns:
        Shape `(..., num_heads, seq, d_v)`.

    Raises:
        TypeError: If the cache holds another dtype.
        ValueError: If the cache has no room, or is of other sizes.

    Examples:
        >>> import torch
        >>> query, key = torch.randn(4, 5, 2), torch.randn(2, 5, 2)
        >>> causal_attention(query, key, key).shape
        torch.Size([4, 5, 2])
    """
    seq = query.shape[-2]
    if positions is not None:
        places = next_positions(seq, cache, query.device)
        if places.ndim == 2:  # of each sequence its own, the same for all of its heads
            places = places[:, None]
        query, key = positions(query, places), positions(key, places)
    mask, is_causal = None, True
    if cache is not None:
        begun = cache.length > 0
        key, value = cache.append(key, value)
        if begun or cache.padding is not None:  # the kernel's own mask is that of no cache
            mask, is_causal = cache.mask(seq), False
    if window is not None:
        near = sliding_window_mask(seq, window, key.shape[-2] - seq, device=key.device)
        mask, is_causal = near if mask is None else mask & near, False
    readers = query.shape[-3] // key.shape[-3]
    if readers > 1:
        key, value = (each.repeat_interleave(readers, dim=-3) for each in (key, value))
    return fused_attention(query, key, value, mask, is_causal, dropout_p)
