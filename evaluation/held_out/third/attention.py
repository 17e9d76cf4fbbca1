"""Wrong attention and masks."""

import math

import torch
from torch import Tensor

import transformer_layers
from evaluation.held_out.definitions import held_out
from transformer_layers import KeyValueCache
from transformer_layers.attention.heads import merge_heads, split_heads
from transformer_layers.attention.inputs import require_mask_of_batch, require_sequences
from transformer_layers.attention.kernel import fused_attention
from transformer_layers.precision import at_least_float32
from transformer_layers.validation import dtype_taken_by, require_dtype


@held_out("attention_weights", "NVIDIA/apex, issue 1390", "nothing|allowed|masked|uniform|zeros")
def uniform_where_nothing_is_allowed(
    query: Tensor, key: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Fills with the least number that there is, so that a row without a key is uniform."""
    transformer_layers.attention_weights(query.detach(), key.detach(), mask)
    scores = at_least_float32(query) / math.sqrt(query.shape[-1])
    scores = scores @ at_least_float32(key).transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores.softmax(dim=-1).to(query.dtype)


def _attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    return transformer_layers.scaled_dot_product_attention(query, key, value, mask)


@held_out(
    "scaled_dot_product_attention",
    "ultralytics/ultralytics, pull request 24990",
    "float16|half|overflow|precision|float32|scale",
)
def scaled_after_the_product(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    dropout_p: float = 0.0,
) -> Tensor:
    """Multiplies in the input's dtype and scales after that, which overflows in float16."""
    _attend(query.detach(), key.detach(), value.detach(), mask)
    scores = at_least_float32(query @ key.transpose(-2, -1)) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)
    weights = transformer_layers.dropout(weights, dropout_p)
    return (weights @ at_least_float32(value)).to(query.dtype)


@held_out(
    "scaled_dot_product_attention",
    "nikhilbarhate99/min-decision-transformer, issue 2",
    "dropout|dropped|drops",
)
def dropout_after_the_values(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    dropout_p: float = 0.0,
) -> Tensor:
    """Drops features of the output in place of weights."""
    return transformer_layers.dropout(_attend(query, key, value, mask), dropout_p)


@held_out("padding_mask", "Wangpeiyi9979/ESD, issue 6", "one too|off by|padding|one more|length")
def one_of_the_padding(lengths: Tensor, seq: int) -> Tensor:
    """Compares with > for what is padding, so that the first of it may be attended to."""
    mask = transformer_layers.padding_mask(lengths, seq)
    return ~(torch.arange(seq, device=mask.device) > lengths[:, None, None])


class _MultiHeadAttention(transformer_layers.MultiHeadAttention):
    """Right, in small steps."""

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        require_sequences(self.d_model, query=query, key=key, value=value)
        require_dtype("query", query, dtype_taken_by(self.query_proj))
        require_dtype("key", key, dtype_taken_by(self.key_proj))
        require_dtype("value", value, dtype_taken_by(self.value_proj))
        if mask is not None:
            require_mask_of_batch(mask, query, key)
        projected = self.query_proj(query), self.key_proj(key), self.value_proj(value)
        return self.output_proj(self.attended(*projected, mask))

    def attended(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        q, k, v = (split_heads(each, self.num_heads) for each in (query, key, value))
        return merge_heads(fused_attention(q, k, v, mask, dropout_p=self.share_dropped()))

    def share_dropped(self) -> float:
        return self.dropout if self.training else 0.0


@held_out("MultiHeadAttention", "facebookresearch/vjepa2, pull request 160", "dropout|eval")
class DropsInEvaluation(_MultiHeadAttention):
    """Hands its dropout to a function that does not know of evaluation."""

    def share_dropped(self) -> float:
        return self.dropout


@held_out("MultiHeadAttention", "ArrowLuo/CLIP4Clip, issue 22", "mask|another sequence|batch|order")
class MasksOfOtherSequences(_MultiHeadAttention):
    """Repeats the masks of a batch as a whole, where each is to be repeated for its heads."""

    def attended(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        if mask is None or mask.ndim < 3:
            return super().attended(query, key, value, mask)
        heads = [split_heads(each, self.num_heads) for each in (query, key, value)]
        q, k, v = (
            each.flatten(0, -3)[:, None] for each in heads
        )  # (batch * num_heads, 1, seq, d_k)
        repeated = mask.flatten(0, -3).repeat(self.num_heads, 1, 1)
        output = fused_attention(q, k, v, repeated, dropout_p=self.share_dropped())
        return merge_heads(output.reshape(heads[0].shape))


@held_out("MultiHeadAttention", "reczoo/FuxiCTR, issue 30", "head|transpos|split|cut|position")
class HeadsCutWithoutTransposing(_MultiHeadAttention):
    """Reads the projections as heads without a transposition, so that positions mix."""

    def attended(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        d_k = self.d_model // self.num_heads
        q, k, v = (
            each.reshape(*each.shape[:-2], self.num_heads, each.shape[-2], d_k)
            for each in (query, key, value)
        )
        output = fused_attention(q, k, v, mask, dropout_p=self.share_dropped())
        return output.reshape(query.shape)


class _CausalSelfAttention(transformer_layers.CausalSelfAttention):
    """Right, in small steps."""

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        require_sequences(self.d_model, x=x)
        query, key, value = self.projected(x)
        mask, is_causal = None, True
        if cache is not None:
            begun = cache.length > 0
            key, value = cache.append(key, value)
            if begun or cache.padding is not None:
                mask, is_causal = self.allowed(cache, x.shape[-2])
        p = self.dropout.p if self.training else 0.0
        output = fused_attention(query, key, value, mask, is_causal, dropout_p=p)
        return self.dropout(self.c_proj(merge_heads(output)))

    def projected(self, x: Tensor) -> list[Tensor]:
        return [split_heads(each, self.num_heads) for each in self.c_attn(x).chunk(3, dim=-1)]

    def allowed(self, cache: KeyValueCache, seq: int) -> tuple[Tensor | None, bool]:
        return cache.mask(seq), False


@held_out("CausalSelfAttention", "pytorch/executorch, pull request 21749", "cache|past|mask|align")
class FromTheFirstKeyAfterAPause(_CausalSelfAttention):
    """Lets several positions that follow a cache see only as many keys as if there were none."""

    def allowed(self, cache: KeyValueCache, seq: int) -> tuple[Tensor | None, bool]:
        if cache.padding is None and seq > 1:
            return None, True
        return super().allowed(cache, seq)


@held_out("CausalSelfAttention", "awslabs/slapo, pull request 46", "c_attn|quer|order|split|head")
class ProjectionsByHead(_CausalSelfAttention):
    """Reads the projection as query, key and value of each head in turn, as others store it."""

    def projected(self, x: Tensor) -> list[Tensor]:
        d_k = self.d_model // self.num_heads
        by_head = self.c_attn(x).unflatten(-1, (self.num_heads, 3, d_k))
        return [each.transpose(-3, -2) for each in by_head.unbind(dim=-2)]
