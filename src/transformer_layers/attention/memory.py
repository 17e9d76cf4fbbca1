"""Attention to a memory whose keys and values are kept, as a decoder has it while it writes."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from transformer_layers.attention.cache import KeyValueCache
from transformer_layers.attention.heads import merge_heads, split_heads
from transformer_layers.attention.kernel import fused_attention
from transformer_layers.attention.multi_head import MultiHeadAttention


class DecoderCache(KeyValueCache):
    """The keys and values that a decoder layer keeps: its own, which grow, and the memory's.

    Those of the layer's self-attention grow by each position. Those of the memory are computed
    once, at the first call, and belong to that memory alone. The growing cache may have several
    rows for each row of the memory, as a beam search has.

    Arguments, attributes and errors are those of :class:`KeyValueCache`.

    Examples:
        >>> DecoderCache(batch=4, num_heads=2, max_seq=8, d_k=3)
        DecoderCache(batch=4, num_heads=2, d_k=3, 0 of 8 positions, torch.float32, cpu)
    """

    _memory: Tensor | None = None
    _kept: tuple[Tensor, Tensor] | None = None

    def of_memory(
        self, attention: MultiHeadAttention, memory: Float[Tensor, "sources kv_seq d_model"]
    ) -> tuple[
        Float[Tensor, "sources num_heads kv_seq d_k"], Float[Tensor, "sources num_heads kv_seq d_k"]
    ]:
        """The keys and values of a memory, computed at the first call.

        Args:
            attention: The cross-attention that asks.
            memory: The encoder's output, the same tensor at each call.

        Returns:
            Keys and values, by heads.

        Raises:
            ValueError: If it is another memory than that of the first call.
        """
        if self._kept is None:
            self._memory, self._kept = memory, keys_and_values(attention, memory)
        elif self._memory is not memory:
            raise ValueError(
                "the cache holds keys and values of another memory; pass the tensor of the first "
                "call, or make a new cache"
            )
        return self._kept


def keys_and_values(
    attention: MultiHeadAttention, x: Float[Tensor, "*batch kv_seq d_model"]
) -> tuple[
    Float[Tensor, "*batch num_heads kv_seq d_k"], Float[Tensor, "*batch num_heads kv_seq d_k"]
]:
    """The keys and values of each head, by which each position can be found and read.

    Args:
        attention: Whose projections.
        x: What is to be attended to, shape `(..., kv_seq, d_model)`.

    Returns:
        Keys and values.
    """
    projections = attention.key_proj, attention.value_proj
    keys, values = (split_heads(each(x), attention.num_heads) for each in projections)
    return keys, values


def attend(
    attention: MultiHeadAttention,
    query: Float[Tensor, "*batch q_seq d_model"],
    keys: Float[Tensor, "*batch num_heads kv_seq d_k"],
    values: Float[Tensor, "*batch num_heads kv_seq d_k"],
    mask: Bool[Tensor, "*mask_batch _ kv_seq"] | None = None,
) -> Float[Tensor, "*batch q_seq d_model"]:
    """What :class:`MultiHeadAttention` computes, of keys and values that are there already.

    Args:
        attention: Whose projections, and whose dropout.
        query: Shape `(..., q_seq, d_model)`.
        keys: What :func:`keys_and_values` gives.
        values: The same.
        mask: As in :class:`MultiHeadAttention`.

    Returns:
        The shape of `query`.
    """
    output = fused_attention(
        split_heads(attention.query_proj(query), attention.num_heads),
        keys,
        values,
        mask,
        dropout_p=attention.dropout if attention.training else 0.0,
    )
    return attention.output_proj(merge_heads(output))


def cached_self_attention(
    attention: MultiHeadAttention,
    x: Float[Tensor, "batch seq d_model"],
    cache: KeyValueCache,
) -> Float[Tensor, "batch seq d_model"]:
    """Attends from each position to itself, to those before it, and to those in a cache.

    Args:
        attention: Whose projections.
        x: The next positions.
        cache: The keys and values of those before; those of `x` are added.

    Returns:
        The shape of `x`.
    """
    keys, values = cache.append(*keys_and_values(attention, x))
    return attend(attention, x, keys, values, cache.mask(x.shape[-2]))


def cached_cross_attention(
    attention: MultiHeadAttention,
    x: Float[Tensor, "rows seq d_model"],
    memory: Float[Tensor, "sources kv_seq d_model"],
    mask: Bool[Tensor, "sources 1 kv_seq"] | None,
    cache: DecoderCache,
) -> Float[Tensor, "rows seq d_model"]:
    """Attends to a memory whose keys and values a cache keeps.

    There may be several rows of `x` for each of the memory, side by side. They ask as further
    positions of one row, since no position of a query depends on another: so the memory's keys are
    held, and read, once for all beams.

    Args:
        attention: Whose projections.
        x: What asks.
        memory: The encoder's output.
        mask: Which positions of the memory may be attended to; all if not given.
        cache: Where the memory's keys and values are kept.

    Returns:
        The shape of `x`.
    """
    sources = memory.shape[0]
    if sources == 0 or x.shape[0] % sources != 0:
        raise ValueError(
            "each row of the memory must have as many rows of x as the others, got "
            f"{x.shape[0]} for {sources}"
        )
    keys, values = cache.of_memory(attention, memory)
    asked = x.reshape(sources, -1, x.shape[-1])
    return attend(attention, asked, keys, values, mask).reshape(x.shape)


def reordered(caches: list[DecoderCache], rows: Tensor) -> None:
    """Gives each sequence the past of another in each cache; the memories stay.

    Args:
        caches: Those of a decoder's layers.
        rows: See :meth:`KeyValueCache.reorder`.
    """
    with torch.no_grad():
        for cache in caches:
            cache.reorder(rows)
