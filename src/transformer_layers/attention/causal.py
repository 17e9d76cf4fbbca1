"""Attention of a sequence to itself and to what a cache holds of it, as decoders have it."""

from jaxtyping import Float
from torch import Tensor

from transformer_layers.attention.context import CacheOrContext, allowed_keys, context_of, of_heads
from transformer_layers.attention.definition import attention_weights
from transformer_layers.attention.kernel import fused_attention
from transformer_layers.attention.masks import causal_mask
from transformer_layers.positions.rotary import Positions


def causal_attention(
    query: Float[Tensor, "*batch num_heads seq d_k"],
    key: Float[Tensor, "*batch num_kv_heads seq d_k"],
    value: Float[Tensor, "*batch num_kv_heads seq d_v"],
    cache: CacheOrContext = None,
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
            their positions in them. Or the context of a model's forward pass, which has it.
        positions: Maps queries and keys, each with its position ids, before they meet, where the
            context does not; none if not given.
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
    context = context_of(cache, query.shape[-2], query.device)
    if context.rotation is not None:
        query, key = context.rotation(query), context.rotation(key)
    elif positions is not None:
        position_ids = of_heads(context.position_ids)
        query, key = positions(query, position_ids), positions(key, position_ids)
    if context.cache is not None:
        key, value = context.cache.append(key, value)
    mask = allowed_keys(context, window)
    is_causal = mask is None and not context.past  # torch takes a bool alone, if compiled
    if context.weights is not None:
        group = query.shape[-3] // key.shape[-3]
        shown = causal_mask(context.seq, device=key.device) if is_causal else mask
        shown = shown[:, None] if shown is not None and shown.ndim == 3 else shown
        read = key.repeat_interleave(group, dim=-3)
        context.weights.append(attention_weights(query, read, shown))
    return fused_attention(query, key, value, mask, is_causal, dropout_p)
