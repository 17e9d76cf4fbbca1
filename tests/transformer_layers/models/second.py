"""A second decoder: all that a model has of its own, and nothing that another one has.

Rotary positions, two heads of keys for four of queries, RMSNorm, gated feed-forward layers; layers
and weights have the names of a published one, `transformers.LlamaForCausalLM`.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from transformer_layers import KeyValueCache, RMSNorm
from transformer_layers.attention.cache import all_grown_or_none
from transformer_layers.attention.causal import causal_attention
from transformer_layers.attention.heads import merge_heads, split_heads
from transformer_layers.checkpoints.checkpoint import load, write_checkpoint
from transformer_layers.checkpoints.codec import Codec, shapes_of
from transformer_layers.generation import loop
from transformer_layers.generation.decoder import embedded, require_ids
from transformer_layers.generation.loss import next_token_loss

Caches = Sequence[KeyValueCache] | None


@dataclass(frozen=True)
class SecondConfig:
    vocab_size: int = 11
    max_seq: int = 16
    d_model: int = 8
    n_layer: int = 2
    n_head: int = 4
    n_kv_head: int = 2


def rotated(x: Tensor, places: Tensor) -> Tensor:
    """Turns features i and i + d_k / 2, as a pair, by an angle that grows with the position."""
    half = x.shape[-1] // 2
    angles = places[..., None] * 10_000.0 ** (-torch.arange(half, device=x.device) / half)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class Block(nn.Module):
    def __init__(self, config: SecondConfig) -> None:
        super().__init__()
        d, self.heads, self.kv_heads = config.d_model, config.n_head, config.n_kv_head
        d_kv = d // self.heads * self.kv_heads
        linear = partial(nn.Linear, bias=False)
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(d), RMSNorm(d)
        self.q_proj, self.o_proj = linear(d, d), linear(d, d)
        self.k_proj, self.v_proj = linear(d, d_kv), linear(d, d_kv)
        self.gate_proj, self.up_proj = linear(d, 2 * d), linear(d, 2 * d)
        self.down_proj = linear(2 * d, d)

    def forward(self, x: Tensor, cache: KeyValueCache | None) -> Tensor:
        y = self.input_layernorm(x)
        query = split_heads(self.q_proj(y), self.heads)
        key = split_heads(self.k_proj(y), self.kv_heads)
        value = split_heads(self.v_proj(y), self.kv_heads)
        x = x + self.o_proj(merge_heads(causal_attention(query, key, value, cache, rotated)))
        y = self.post_attention_layernorm(x)
        return x + self.down_proj(nn.functional.silu(self.gate_proj(y)) * self.up_proj(y))


class Second(nn.Module):
    loss, generate, stream = next_token_loss, loop.generate, loop.stream

    def __init__(self, config: SecondConfig) -> None:
        super().__init__()
        self.config, self.vocab_size, self.max_seq = config, config.vocab_size, config.max_seq
        self.embed_tokens = nn.Embedding(config.vocab_size, config.d_model)
        self.layers = nn.ModuleList(Block(config) for _ in range(config.n_layer))
        self.norm = RMSNorm(config.d_model)
        self.lm_head = nn.Linear(config.d_model, config.vocab_size, bias=False)

    def forward(self, ids: Tensor, caches: Caches = None) -> Tensor:
        return self.logits(self.last_hidden_state(ids, caches))

    def last_hidden_state(self, ids: Tensor, caches: Caches = None) -> Tensor:
        require_ids(self, ids, caches, len(self.layers))
        return all_grown_or_none(caches, lambda: self._last_hidden_state(ids, caches))

    def _last_hidden_state(self, ids: Tensor, caches: Caches) -> Tensor:
        x = embedded(ids, self.embed_tokens)
        for i, block in enumerate(self.layers):
            x = block(x, caches[i] if caches else None)
        return self.norm(x)

    def logits(self, hidden_state: Tensor) -> Tensor:
        return self.lm_head(hidden_state)

    def new_caches(
        self, batch: int, max_seq: int, padding: Tensor | None = None
    ) -> list[KeyValueCache]:
        sizes = (batch, self.config.n_kv_head, max_seq, self.config.d_model // self.config.n_head)
        return [KeyValueCache.like(self.lm_head.weight, *sizes, padding) for _ in self.layers]

    def save_pretrained(self, folder: Any) -> None:
        write_checkpoint(CODEC, folder, self.config, self.state_dict())

    @classmethod
    def from_pretrained(cls, folder: Any) -> "Second":
        return load(cls, CODEC, folder)


CODEC = Codec(
    model_type="second",
    config_of=lambda entries, path: SecondConfig(**entries),
    config_text=lambda config, dtype: json.dumps(asdict(config)),
    weight_shapes=shapes_of(Second),
)
