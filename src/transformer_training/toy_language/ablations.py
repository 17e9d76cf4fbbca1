"""Ablations: each takes a part out of a GPT-2, before it is trained.

Each function changes a model in place, in all of its blocks. What is left learns as it would have.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer_layers import GPT2
from transformer_layers.attention.context import CacheOrContext, Context
from transformer_layers.attention.heads import merge_heads, split_heads
from transformer_layers.attention.kernel import fused_attention
from transformer_layers.models.gpt2.attention import CausalSelfAttention
from transformer_layers.models.gpt2.block import GPT2Block


def _refuse(cache: CacheOrContext) -> None:
    if isinstance(cache, Context):
        cache = cache.cache
    if cache is not None:
        raise ValueError("a model without a part of its attention keeps no cache; got one")


class _Nothing(nn.Module):
    """Adds nothing to the stream."""

    def forward(
        self, x: Float[Tensor, "*batch seq d_model"], cache: CacheOrContext = None
    ) -> Float[Tensor, "*batch seq d_model"]:
        _refuse(cache)
        return torch.zeros_like(x)


class _MeanAttention(nn.Module):
    """Attention whose weights are all alike: the mean of the values of what it may see."""

    def __init__(self, attention: CausalSelfAttention) -> None:
        super().__init__()
        self.c_attn, self.c_proj = attention.c_attn, attention.c_proj
        self.dropout = attention.dropout

    def forward(
        self, x: Float[Tensor, "*batch seq d_model"], cache: CacheOrContext = None
    ) -> Float[Tensor, "*batch seq d_model"]:
        _refuse(cache)
        value = self.c_attn(x).chunk(3, dim=-1)[2]
        seen = torch.arange(1, x.shape[-2] + 1, device=x.device)[:, None]
        return self.dropout(self.c_proj(value.cumsum(dim=-2) / seen))


class _WithoutMask(nn.Module):
    """Attention that also sees what comes after."""

    def __init__(self, attention: CausalSelfAttention) -> None:
        super().__init__()
        self.c_attn, self.c_proj = attention.c_attn, attention.c_proj
        self.dropout = attention.dropout
        self.num_heads = attention.num_heads

    def forward(
        self, x: Float[Tensor, "*batch seq d_model"], cache: CacheOrContext = None
    ) -> Float[Tensor, "*batch seq d_model"]:
        _refuse(cache)
        projections = self.c_attn(x).chunk(3, dim=-1)
        query, key, value = (split_heads(each, self.num_heads) for each in projections)
        return self.dropout(self.c_proj(merge_heads(fused_attention(query, key, value))))


class _WithoutResidual(nn.Module):
    """A block that hands on what its layers compute, and not what they read."""

    def __init__(self, block: GPT2Block) -> None:
        super().__init__()
        self.ln_1, self.attn, self.ln_2, self.mlp = block.ln_1, block.attn, block.ln_2, block.mlp

    def forward(
        self, x: Float[Tensor, "*batch seq d_model"], cache: CacheOrContext = None
    ) -> Float[Tensor, "*batch seq d_model"]:
        return self.mlp(self.ln_2(self.attn(self.ln_1(x), cache)))


def _blocks(model: GPT2) -> list[GPT2Block]:
    return list(model.h)  # type: ignore[arg-type]  # a list of modules forgets which


def attention(model: GPT2) -> None:
    """Takes attention out: each word is processed alone."""
    for block in _blocks(model):
        block.attn = _Nothing()  # type: ignore[assignment]


def attention_weights(model: GPT2) -> None:
    """Takes attention's weights out: each word gets the mean of the values that it may see."""
    for block in _blocks(model):
        block.attn = _MeanAttention(block.attn)  # type: ignore[assignment]


def mask(model: GPT2) -> None:
    """Takes the causal mask out: in training each word sees the one that it is to predict."""
    for block in _blocks(model):
        block.attn = _WithoutMask(block.attn)  # type: ignore[assignment]


def positions(model: GPT2) -> None:
    """Takes positions out: their table holds zeros, and does not learn."""
    nn.init.zeros_(model.wpe.weight).requires_grad_(False)


def feed_forward(model: GPT2) -> None:
    """Takes the feed-forward layer out."""
    for block in _blocks(model):
        block.mlp = _Nothing()  # type: ignore[assignment]


def activation(model: GPT2) -> None:
    """Takes the activation out of the feed-forward layer: two linear maps stay."""
    for block in _blocks(model):
        maps = (block.mlp.c_fc, block.mlp.c_proj, block.mlp.dropout)
        block.mlp = nn.Sequential(*maps)  # type: ignore[assignment]


def norms(model: GPT2) -> None:
    """Takes all layer normalization out, the last one too."""
    for block in _blocks(model):
        block.ln_1, block.ln_2 = nn.Identity(), nn.Identity()  # type: ignore[assignment]
    model.ln_f = nn.Identity()  # type: ignore[assignment]


def residuals(model: GPT2) -> None:
    """Takes the residual connections out: each layer replaces what it reads."""
    for i, block in enumerate(_blocks(model)):
        model.h[i] = _WithoutResidual(block)


ABLATIONS: dict[str, Callable[[GPT2], None]] = {
    "attention": attention,
    "attention weights": attention_weights,
    "mask": mask,
    "positions": positions,
    "feed-forward": feed_forward,
    "activation": activation,
    "norms": norms,
    "residuals": residuals,
}
"""What takes a part out, by the name of the part."""
