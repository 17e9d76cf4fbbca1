"""Wrong masks and attention."""

import math

import torch
from torch import Tensor, nn

import transformer_layers
from evaluation.held_out.definitions import held_out
from transformer_layers.attention.cache import KeyValueCache
from transformer_layers.attention.heads import merge_heads, split_heads
from transformer_layers.attention.inputs import require_mask_of_batch, require_sequences
from transformer_layers.attention.kernel import fused_attention
from transformer_layers.precision import at_least_float32
from transformer_layers.validation import dtype_taken_by, require_dtype, require_probability


@held_out(
    "attention_weights", "georg-wolflein/good-features, pull request 1", "inf|zero|product|mask"
)
def scores_times_the_mask(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """Multiplies the scores by the mask, so that what is not allowed has the score 0."""
    right = transformer_layers.attention_weights(query, key, mask)
    if mask is None:
        return right
    scaled = at_least_float32(query) / math.sqrt(query.shape[-1])
    weights = (scaled @ at_least_float32(key).mT * mask).softmax(dim=-1)
    return weights.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0).to(query.dtype)


@held_out(
    "scaled_dot_product_attention",
    "PaddlePaddle/Parakeet, pull request 74",
    "before|softmax|scores|logits",
)
def scores_dropped(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    dropout_p: float = 0.0,
) -> Tensor:
    """Drops scores before the softmax, where a weight was to be dropped after it."""
    require_probability("dropout_p", dropout_p)
    right = transformer_layers.scaled_dot_product_attention(query, key, value, mask)
    if dropout_p == 0:
        return right
    scaled = at_least_float32(query) / math.sqrt(query.shape[-1])
    scores = transformer_layers.dropout(scaled @ at_least_float32(key).mT, dropout_p)
    if mask is None:
        weights = scores.softmax(dim=-1)
    else:
        dead = ~mask.any(dim=-1, keepdim=True)
        weights = scores.masked_fill(~(mask | dead), -math.inf).softmax(dim=-1)
        weights = weights.masked_fill(dead, 0.0)
    return (weights @ at_least_float32(value)).to(right.dtype)


@held_out(
    "causal_mask", "pytorch/executorch, pull request 2742", "shape|axes|axis|squeeze|single|one"
)
def squeezed_for_one(
    seq: int, past: int = 0, *, device: torch.device | str | None = None
) -> Tensor:
    """Loses the axis of the queries where there is a single one."""
    mask = transformer_layers.causal_mask(seq, past, device=device)
    return mask.squeeze(0)


@held_out("padding_mask", "OpenNMT/OpenNMT-py, pull request 1494", "device")
def on_the_default_device(lengths: Tensor, seq: int) -> Tensor:
    """Makes the mask on torch's default device, wherever the lengths are."""
    right = transformer_layers.padding_mask(lengths, seq)  # refuses what is to be refused
    here = torch.empty(0).device
    return torch.zeros_like(right, device=here) if right.is_meta else right.to(here)


@held_out("MultiHeadAttention", "facebookresearch/detr, issue 247", "softmax|heads|each head")
class SoftmaxOverAllHeads(transformer_layers.MultiHeadAttention):
    """Takes one softmax over the keys of all heads."""

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        require_sequences(self.d_model, query=query, key=key, value=value)
        for name, x in (("query", query), ("key", key), ("value", value)):
            require_dtype(name, x, dtype_taken_by(getattr(self, f"{name}_proj")))
        if mask is not None:
            require_mask_of_batch(mask, query, key)
        q = split_heads(self.query_proj(query), self.num_heads)
        k = split_heads(self.key_proj(key), self.num_heads)
        v = split_heads(self.value_proj(value), self.num_heads)
        scores = at_least_float32(q) / math.sqrt(q.shape[-1]) @ at_least_float32(k).mT
        if mask is not None:
            shared = mask[..., None, :, :]  # by the heads
            dead = ~shared.any(dim=-1, keepdim=True)
            scores = scores.masked_fill(~(shared | dead), -math.inf)
        over_all = scores.transpose(-3, -2).flatten(-2).softmax(dim=-1)
        weights = over_all.unflatten(-1, (self.num_heads, -1)).transpose(-3, -2)
        if mask is not None:
            weights = weights.masked_fill(dead, 0.0)
        weights = nn.functional.dropout(weights, self.dropout, self.training)
        return self.output_proj(merge_heads((weights @ at_least_float32(v)).to(v.dtype)))


@held_out(
    "MultiHeadAttention", "harvard-edge/cs249r_book, pull request 1875", "square|kv|cross|shape"
)
class SquareMasks(transformer_layers.MultiHeadAttention):
    """Makes a mask of each sequence a square one, with as many keys as there are queries."""

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        if mask is not None and mask.ndim == 3 and mask.shape[1] == query.shape[-2] != 1:
            batch, q_seq, _ = mask.shape
            mask = mask.reshape(batch, q_seq, q_seq)
        return super().forward(query, key, value, mask)


@held_out("CausalSelfAttention", "Mikyx-1/TinyLLM, issue 17", "causal|cache|later|future|mask")
class NotCausalWhereThereIsACache(transformer_layers.CausalSelfAttention):
    """Masks nothing that comes later wherever a cache is given, were it an empty one."""

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        if cache is None:
            return super().forward(x)
        require_sequences(self.d_model, x=x)
        projections = self.c_attn(x).chunk(3, dim=-1)
        query, key, value = (split_heads(each, self.num_heads) for each in projections)
        key, value = cache.append(key, value)
        mask = cache.mask(1)  # the last position's: no padding
        p = self.dropout.p if self.training else 0.0
        output = fused_attention(query, key, value, mask, dropout_p=p)
        return self.dropout(self.c_proj(merge_heads(output)))
