"""GPT-2's attention for inference in bfloat16."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer_layers.attention.context import CacheOrContext, allowed_keys, context_of
from transformer_layers.attention.heads import merge_heads, split_heads
from transformer_layers.attention.kernel import fused_attention
from transformer_layers.attention.masks import causal_mask
from transformer_layers.models.gpt2.attention import CausalSelfAttention

BLOCK = 128  # queries; memory grows with their number times that of the keys


class BlockwiseAttention(nn.Module):
    r"""What :class:`CausalSelfAttention` computes, without dropout, one block of queries at a time.

    torch's fused kernel takes as long in bfloat16 as in float32, where the processor has no
    instructions for tiles of a matrix. Products of matrices take half. A block of queries makes
    the weights for the keys that it may see, and no others are kept.

    Args:
        layer: The layer whose parts are taken over.

    Attributes:
        c_attn: Maps to queries, keys and values.
        c_proj: Maps the heads' results to the output.
    """

    def __init__(self, layer: CausalSelfAttention) -> None:
        super().__init__()
        self.c_attn = layer.c_attn
        self.c_proj = layer.c_proj
        self.num_heads = layer.num_heads

    def forward(
        self,
        x: Float[Tensor, "*batch seq d_model"],
        cache: CacheOrContext = None,
    ) -> Float[Tensor, "*batch seq d_model"]:
        """See :meth:`CausalSelfAttention.forward`."""
        projections = self.c_attn(x).chunk(3, dim=-1)
        query, key, value = (split_heads(each, self.num_heads) for each in projections)
        context = context_of(cache, x.shape[-2], x.device)
        if context.cache is not None:
            key, value = context.cache.append(key, value)
        if context.mask is not None or context.padding is not None:
            output = fused_attention(query, key, value, allowed_keys(context))
        elif x.shape[-2] == 1:
            output = nn.functional.scaled_dot_product_attention(query, key, value)
        else:
            output = _attend(query, key, value)
        return self.c_proj(merge_heads(output))


def _attend(
    query: Float[Tensor, "*batch num_heads seq d_k"],
    key: Float[Tensor, "*batch num_heads kv_seq d_k"],
    value: Float[Tensor, "*batch num_heads kv_seq d_k"],
) -> Float[Tensor, "*batch num_heads seq d_k"]:
    seen = key.shape[-2] - query.shape[-2]
    output = []
    for block in (query / math.sqrt(query.shape[-1])).split(BLOCK, dim=-2):
        rows = block.shape[-2]
        seen += rows
        scores = block @ key[..., :seen, :].mT
        scores[..., seen - rows :].masked_fill_(~causal_mask(rows), -math.inf)
        output.append(scores.softmax(dim=-1) @ value[..., :seen, :])
    return torch.cat(output, dim=-2)
