"""Wrong attention and masks."""

import math
from typing import Any

import torch
from torch import Tensor, nn

import transformer_layers
from evaluation.held_out.definitions import held_out
from evaluation.held_out.first.attention import _Projected, _scores
from transformer_layers import CausalSelfAttention, KeyValueCache, MultiHeadAttention
from transformer_layers.attention.heads import merge_heads, split_heads


@held_out("attention_weights", "fastnlp/fastNLP, issue 254", "axis|softmax|dim|quer|head")
def softmax_over_the_third_axis(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """Takes the softmax over axis 2, which is the last of three axes, and not of four."""
    weights = transformer_layers.attention_weights(query.detach(), key.detach(), mask)
    if weights.ndim < 4:
        return transformer_layers.attention_weights(query, key, mask)
    scores = _scores(query, key)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return scores.softmax(2).to(query.dtype)


@held_out("padding_mask", "hyunwoongko/transformer, pull request 40", "transpos|quer|axis|shape")
def queries_for_keys(lengths: Tensor, seq: int) -> Tensor:
    """Has shape (batch, seq, 1): it blocks queries where it should block keys."""
    return transformer_layers.padding_mask(lengths, seq).transpose(-2, -1)


@held_out(
    "MultiHeadAttention", "tenstorrent/tt-metal, pull request 56789", "scale|d_k|root|num_heads"
)
class ScaledByTheNumberOfHeads(_Projected):
    """Divides the scores by the root of the number of heads."""

    def attended(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        return super().attended(q * math.sqrt(q.shape[-1] / self.num_heads), k, v, mask)


@held_out("MultiHeadAttention", "yflyzhang/AnnotatedTransformer, issue 1", "projection|_proj|swap")
class KeyProjectionForValues(_Projected):
    """Projects the values with the projection of the keys."""

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        MultiHeadAttention.forward(  # its errors
            self, query.detach(), key.detach(), value.detach(), mask
        )
        q = split_heads(self.query_proj(query), self.num_heads)
        k = split_heads(self.key_proj(key), self.num_heads)
        v = split_heads(self.key_proj(value), self.num_heads)
        return self.output_proj(self.attended(q, k, v, self.spread(mask, q)))


@held_out(
    "MultiHeadAttention",
    "vllm-project/vllm-omni, issue 5865 and pull request 5866",
    "quer|cross|padding",
)
class QueriesUnpaddedByTheKeys(MultiHeadAttention):
    """Where queries and keys differ in number, blocks queries with the padding mask of the keys."""

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        y = super().forward(query, key, value, mask)
        queries, keys = query.shape[-2], key.shape[-2]
        of_padding = mask is not None and mask.ndim > 2 and mask.shape[-2] == 1
        if mask is None or not of_padding or queries in (1, keys):
            return y
        kept = nn.functional.pad(mask[..., 0, -queries:], (0, max(queries - keys, 0)))
        nothing = self.output_proj(torch.zeros_like(y))
        return torch.where(kept[..., None], y, nothing)


@held_out("CausalSelfAttention", "facebookresearch/xformers, issue 1185", "causal|mask|future")
class NotCausalOnceMoved(CausalSelfAttention):
    """Is no longer causal once it was moved to another device or dtype."""

    causal = True

    def _apply(self, *args: Any, **kwargs: Any) -> "NotCausalOnceMoved":
        super()._apply(*args, **kwargs)  # type: ignore[no-untyped-call]  # torch's has no types
        self.causal = False
        return self

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        if self.causal or cache is not None:
            return super().forward(x, cache)
        super().forward(x.detach())  # its errors
        q, k, v = (split_heads(each, self.num_heads) for each in self.c_attn(x).chunk(3, -1))
        p = self.dropout.p if self.training else 0.0
        y = nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=p)
        return self.dropout(self.c_proj(merge_heads(y)))
