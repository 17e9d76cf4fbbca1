"""A second decoder: all that a model has of its own, and nothing that another one has.

Rotary positions, two heads of keys for four of queries, RMSNorm, gated feed-forward layers.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
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
from transformer_training.plans.cuts import Columns, Rows
from transformer_training.plans.plan import Plan, Shape


@dataclass(frozen=True)
class SecondConfig:
    vocab_size: int = 11
    max_seq: int = 16
    d_model: int = 8
    n_layer: int = 2
    n_head: int = 4
    n_kv_head: int = 2


def rotated(x: Tensor, places: Tensor) -> Tensor:
    """Turns the pairs of features i and i + d_k / 2 by angles that grow with the position."""
    half = x.shape[-1] // 2
    speeds = 10_000.0 ** (-torch.arange(half, device=x.device) / half)
    angles = places[..., None] * speeds
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class Attention(nn.Module):
    def __init__(self, config: SecondConfig) -> None:
        super().__init__()
        d, d_k = config.d_model, config.d_model // config.n_head
        self.num_heads, self.num_kv_heads = config.n_head, config.n_kv_head
        self.q_proj = nn.Linear(d, d, bias=False)
        self.k_proj = nn.Linear(d, config.n_kv_head * d_k, bias=False)
        self.v_proj = nn.Linear(d, config.n_kv_head * d_k, bias=False)
        self.o_proj = nn.Linear(d, d, bias=False)

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        query = split_heads(self.q_proj(x), self.num_heads)
        key = split_heads(self.k_proj(x), self.num_kv_heads)
        value = split_heads(self.v_proj(x), self.num_kv_heads)
        return self.o_proj(merge_heads(causal_attention(query, key, value, cache, rotated)))


class Block(nn.Module):
    def __init__(self, config: SecondConfig) -> None:
        super().__init__()
        d = config.d_model
        self.norm, self.attention, self.mlp_norm = RMSNorm(d), Attention(config), RMSNorm(d)
        self.gate_proj = nn.Linear(d, 2 * d, bias=False)
        self.up_proj = nn.Linear(d, 2 * d, bias=False)
        self.down_proj = nn.Linear(2 * d, d, bias=False)

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        x = x + self.attention(self.norm(x), cache)
        y = self.mlp_norm(x)
        return x + self.down_proj(nn.functional.silu(self.gate_proj(y)) * self.up_proj(y))


class Second(nn.Module):
    loss, generate, stream = next_token_loss, loop.generate, loop.stream

    def __init__(self, config: SecondConfig) -> None:
        super().__init__()
        self.config, self.vocab_size, self.max_seq = config, config.vocab_size, config.max_seq
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.n_layer))
        self.norm = RMSNorm(config.d_model)
        self.head = nn.Linear(config.d_model, config.vocab_size, bias=False)

    def forward(self, ids: Tensor, caches: Sequence[KeyValueCache] | None = None) -> Tensor:
        return self.logits(self.last_hidden_state(ids, caches))

    def last_hidden_state(
        self, ids: Tensor, caches: Sequence[KeyValueCache] | None = None
    ) -> Tensor:
        require_ids(self, ids, caches, len(self.blocks))
        return all_grown_or_none(caches, lambda: self._through(ids, caches))

    def _through(self, ids: Tensor, caches: Sequence[KeyValueCache] | None) -> Tensor:
        x = embedded(ids, self.embedding)
        for i, block in enumerate(self.blocks):
            x = block(x, caches[i] if caches else None)
        return self.norm(x)

    def logits(self, hidden_state: Tensor) -> Tensor:
        return self.head(hidden_state)

    def new_caches(
        self, batch: int, max_seq: int, padding: Tensor | None = None
    ) -> list[KeyValueCache]:
        d_k = self.config.d_model // self.config.n_head
        sizes = (batch, self.config.n_kv_head, max_seq, d_k)
        return [KeyValueCache.like(self.head.weight, *sizes, padding) for _ in self.blocks]

    def save_pretrained(self, folder: Any) -> None:
        write_checkpoint(CODEC, folder, self.config, self.state_dict())

    @classmethod
    def from_pretrained(cls, folder: Any) -> "Second":
        return load(cls, CODEC, folder)


CODEC = Codec(
    model_type="second",
    config_of=lambda entries, path: SecondConfig(
        **{name: value for name, value in entries.items() if name != "model_type"}
    ),
    config_text=lambda config, dtype: json.dumps({"model_type": "second", **asdict(config)}),
    weight_shapes=shapes_of(Second),
)


def share_heads(block: Block, ranks: int) -> None:
    block.attention.num_heads //= ranks
    block.attention.num_kv_heads //= ranks


def matrix_weights(sizes: SecondConfig, ranks: int = 1) -> int:
    d, d_k = sizes.d_model, sizes.d_model // sizes.n_head
    block = 2 * d * d + 2 * d * sizes.n_kv_head * d_k + 6 * d * d
    return sizes.n_layer * block // ranks + sizes.vocab_size * d


PLAN = Plan(
    name="second",
    sizes=SecondConfig,
    sizes_of=lambda *, vocab_size, seq, n_layer, n_head, n_embd, dropout: SecondConfig(
        vocab_size, seq, n_embd, n_layer, n_head, n_head // 2
    ),
    model=Second,
    codec=CODEC,
    shape=lambda sizes: Shape(
        sizes.vocab_size,
        sizes.max_seq,
        sizes.n_layer,
        sizes.d_model,
        (sizes.n_head, sizes.n_kv_head),
    ),
    with_blocks=lambda sizes, blocks: replace(sizes, n_layer=blocks),
    blocks=lambda model: model.blocks,
    cuts={
        **dict.fromkeys(("attention.q_proj", "attention.k_proj", "attention.v_proj"), Columns()),
        **dict.fromkeys(("gate_proj", "up_proj"), Columns()),
        **dict.fromkeys(("attention.o_proj", "down_proj"), Rows()),
    },
    share_heads=share_heads,
    activation_bytes=lambda sizes, precision, ranks: 4 * 20 * sizes.d_model * sizes.n_layer,
    flops_of_token=lambda sizes, seq, ranks: 6 * matrix_weights(sizes, ranks),
    matrix_weights=matrix_weights,
)
