"""Layers of a decoder with rotary positions, for inference: products of one input made at once."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer_layers.attention.causal import causal_attention
from transformer_layers.attention.context import CacheOrContext
from transformer_layers.attention.grouped import GroupedQueryAttention
from transformer_layers.attention.heads import merge_heads, split_heads
from transformer_layers.feed_forward.gated import GatedFeedForward

Product = Callable[[Tensor, Tensor | None], nn.Module]


class PackedAttention(GroupedQueryAttention):
    """What :class:`GroupedQueryAttention` computes, its three projections in one product.

    Args:
        layer: The layer whose parts are taken over.
        product: Makes a product of a weight of shape `(in, out)` and a bias or None.

    Attributes:
        qkv_proj: Maps to queries, keys and values.
        o_proj: Maps the heads' results to the output.
        q_norm: As of the layer.
        k_norm: As of the layer.
    """

    def __init__(self, layer: GroupedQueryAttention, product: Product) -> None:
        nn.Module.__init__(self)
        self.d_model, self.d_k = layer.d_model, layer.d_k
        self.num_heads, self.num_kv_heads = layer.num_heads, layer.num_kv_heads
        self.window, self.positions = layer.window, layer.positions
        self.norms_heads = layer.norms_heads
        self.q_norm, self.k_norm = layer.q_norm, layer.k_norm
        self.qkv_proj = _packed((layer.q_proj, layer.k_proj, layer.v_proj), product)
        self.o_proj = _packed((layer.o_proj,), product)  # type: ignore[assignment]  # no nn.Linear

    def forward(
        self,
        x: Float[Tensor, "*batch seq d_model"],
        cache: CacheOrContext = None,
    ) -> Float[Tensor, "*batch seq d_model"]:
        """See :meth:`GroupedQueryAttention.forward`."""
        sizes = [heads * self.d_k for heads in (self.num_heads, *2 * (self.num_kv_heads,))]
        query, key, value = self.qkv_proj(x).split(sizes, dim=-1)
        query = self._heads(query, self.q_norm, self.num_heads)
        key = self._heads(key, self.k_norm, self.num_kv_heads)
        value = split_heads(value, self.num_kv_heads)
        output = causal_attention(query, key, value, cache, self.positions, window=self.window)
        return self.o_proj(merge_heads(output))


class GateInPlace(nn.Module):
    """What :class:`GatedFeedForward` computes, both maps in one product, the gate in its memory.

    Args:
        layer: The layer whose parts are taken over.
        product: Makes a product of a weight of shape `(in, out)` and a bias or None.

    Attributes:
        gate_up_proj: Maps to what the gate goes through the activation of, and to what it gates.
        down_proj: Maps to the output.
    """

    def __init__(self, layer: GatedFeedForward, product: Product) -> None:
        super().__init__()
        self.activation = layer.activation
        self.gate_up_proj = _packed((layer.gate_proj, layer.up_proj), product)
        self.down_proj = _packed((layer.down_proj,), product)

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """See :meth:`GatedFeedForward.forward`."""
        gate, up = self.gate_up_proj(x).chunk(2, dim=-1)
        return self.down_proj(self.activation(gate).mul_(up))


def _packed(layers: Sequence[nn.Linear], product: Product) -> nn.Module:
    weights: list[Tensor] = [layer.weight for layer in layers]
    biases: list[Tensor] = [layer.bias for layer in layers if layer.bias is not None]
    return product(torch.cat(weights).T, torch.cat(biases) if biases else None)
