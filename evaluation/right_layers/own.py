"""Right layers written by hand, each in the style of another author.

The tests hold each against the book's layer, or torch's, with the same weights and without `check`.
"""

import functools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parameters_to_vector, parametrizations

from evaluation.right_layers.definitions import made, own

# Activations.


@own("gelu")
def gelu_of_normal_cdf(t: Tensor) -> Tensor:
    """The input times the distribution function of torch.special, with another parameter name."""
    return t * torch.special.ndtr(t)


@own("gelu")
class GeluModule(nn.Module):
    """A module without parameters, which writes the error function out."""

    def forward(self, inputs: Tensor) -> Tensor:
        """The definition."""
        return inputs * 0.5 * (1.0 + torch.erf(inputs / math.sqrt(2.0)))


@made("gelu_tanh")
def partial_gelu_tanh() -> Any:
    """Torch's function with its option bound by functools.partial."""
    return functools.partial(functional.gelu, approximate="tanh")


def _scripted_gelu(x: Tensor) -> Tensor:
    inner = 0.7978845608028654 * x * (1.0 + 0.044715 * x * x)
    return 0.5 * x * (1.0 + torch.tanh(inner))


@made("gelu_tanh")
def scripted_gelu_tanh() -> Any:
    """A function compiled by torch.jit.script, with the cube factored out."""
    return torch.jit.script(_scripted_gelu)


# Attention.


@own("attention_weights")
def weights_from_logsumexp(q: Tensor, k: Tensor, blocked: Tensor | None = None) -> Tensor:
    """Einsum, exponentials of differences from the largest score, and True for blocked keys."""
    scores = torch.einsum("...id,...jd->...ij", q, k) / q.shape[-1] ** 0.5
    if blocked is None:
        return torch.exp(scores - torch.logsumexp(scores, dim=-1, keepdim=True))
    allowed = torch.broadcast_to(~blocked, scores.shape)
    top = scores.masked_fill(~allowed, -torch.inf).amax(-1, keepdim=True)
    shifted = (scores - top.masked_fill(top == -torch.inf, 0.0)).masked_fill(~allowed, -torch.inf)
    exponentials = shifted.exp()
    total = exponentials.sum(-1, keepdim=True)
    return exponentials / total.masked_fill(total == 0, 1.0)


@own("scaled_dot_product_attention")
def attention_through_kernel(
    q: Tensor, k: Tensor, v: Tensor, *, attn_mask: Tensor | None = None, drop: float = 0.0
) -> Tensor:
    """A thin function over torch's kernel, whose options are keyword-only."""
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=attn_mask, dropout_p=drop)


@own("scaled_dot_product_attention")
def attention_and_weights(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    p_drop: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Returns the output and the weights; keys that all queries miss are zeroed by torch.where."""
    scores = query.matmul(key.mT).div(math.sqrt(key.size(-1)))
    if mask is None:
        weights = scores.softmax(-1)
    else:
        some = mask.any(-1, keepdim=True)
        scores = torch.where(mask | ~some, scores, -torch.inf)
        weights = torch.where(some, scores.softmax(-1), 0.0)
    return functional.dropout(weights, p_drop).matmul(value), weights


@own("MultiHeadAttention")
class MultiHeadAttentionOfHeads(nn.Module):
    """One Linear for each head and each of query, key and value, in module lists."""

    def __init__(self, d_model: int, n_heads: int, p: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        size = d_model // n_heads
        self.queries = nn.ModuleList(nn.Linear(d_model, size, bias) for _ in range(n_heads))
        self.keys = nn.ModuleList(nn.Linear(d_model, size, bias) for _ in range(n_heads))
        self.values = nn.ModuleList(nn.Linear(d_model, size, bias) for _ in range(n_heads))
        self.out = nn.Linear(d_model, d_model, bias)
        self.p = p

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """Each head by itself."""
        p = self.p if self.training else 0.0
        heads = [
            functional.scaled_dot_product_attention(of_q(q), of_k(k), of_v(v), mask, p)
            for of_q, of_k, of_v in zip(self.queries, self.keys, self.values, strict=True)
        ]
        return self.out(torch.cat(heads, dim=-1))


@own("MultiHeadAttention")
class PackedMultiHeadAttention(nn.Module):
    """One packed parameter for query, key and value, True for blocked keys, and a tuple."""

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.num_heads, self.dropout = num_heads, dropout
        self.in_proj_weight = nn.Parameter(torch.empty(3 * embed_dim, embed_dim))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * embed_dim))
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        nn.init.xavier_uniform_(self.in_proj_weight)

    def _heads(self, x: Tensor, which: int) -> Tensor:
        weight = self.in_proj_weight.chunk(3)[which]
        projected = functional.linear(x, weight, self.in_proj_bias.chunk(3)[which])
        return projected.unflatten(-1, (self.num_heads, -1)).transpose(-3, -2)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The output and the weights of each head; True in the mask blocks."""
        q, k, v = (self._heads(x, i) for i, x in enumerate((query, key, value)))
        weights = _safe_weights(q, k, _for_heads(attn_mask))
        dropped = functional.dropout(weights, self.dropout, self.training)
        return self.out_proj((dropped @ v).transpose(-3, -2).flatten(-2)), weights


def _for_heads(mask: Tensor | None) -> Tensor | None:
    return mask if mask is None or mask.ndim == 2 else mask.unsqueeze(-3)


def _safe_weights(q: Tensor, k: Tensor, blocked: Tensor | None) -> Tensor:
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    if blocked is None:
        return scores.softmax(-1)
    dead = blocked.all(-1, keepdim=True)
    return scores.masked_fill(blocked & ~dead, -torch.inf).softmax(-1).masked_fill(dead, 0.0)


class _EinsumAttention(nn.Module):
    def __init__(self, d_model: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        size = d_model // heads
        self.wq = nn.Parameter(torch.randn(d_model, heads, size) * d_model**-0.5)
        self.wk = nn.Parameter(torch.randn(d_model, heads, size) * d_model**-0.5)
        self.wv = nn.Parameter(torch.randn(d_model, heads, size) * d_model**-0.5)
        self.bq = nn.Parameter(torch.zeros(heads, size))
        self.bk = nn.Parameter(torch.zeros(heads, size))
        self.bv = nn.Parameter(torch.zeros(heads, size))
        self.wo = nn.Parameter(torch.randn(heads, size, d_model) * d_model**-0.5)
        self.bo = nn.Parameter(torch.zeros(d_model))
        self.drop = nn.Dropout(dropout)

    def forward(self, xq: Tensor, xk: Tensor, xv: Tensor, allowed: Tensor | None = None) -> Tensor:
        q = torch.einsum("...sd,dhk->...hsk", xq, self.wq) + self.bq[:, None]
        k = torch.einsum("...sd,dhk->...hsk", xk, self.wk) + self.bk[:, None]
        v = torch.einsum("...sd,dhk->...hsk", xv, self.wv) + self.bv[:, None]
        blocked = None if allowed is None else ~allowed
        weights = self.drop(_safe_weights(q, k, _for_heads(blocked)))
        mixed = torch.einsum("...hst,...htk->...hsk", weights, v)
        return torch.einsum("...hsk,hkd->...sd", mixed, self.wo) + self.bo


@own("MultiHeadAttention")
class EinsumMultiHeadAttention(_EinsumAttention):
    """Weights of three axes, (features, heads, size of a head), and einsum throughout."""


@made("MultiHeadAttention")
def compiled_multi_head_attention() -> Any:
    """A function that builds a module and hands it to torch.compile."""

    def make(d_model: int, num_heads: int, dropout: float = 0.0) -> Any:
        return torch.compile(_EinsumAttention(d_model, num_heads, dropout), backend="aot_eager")

    return make


@dataclass
class AttentionConfig:
    """Sizes of a decoder, as its author keeps them."""

    hidden_size: int
    num_heads: int
    dropout: float = 0.1
    max_length: int = 256


class _CausalAttention(nn.Module):
    """Packed query, key and value from an nn.Linear, and a config of its own."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__()
        self.config = config
        self.qkv = nn.Linear(config.hidden_size, 3 * config.hidden_size)
        self.proj = nn.Linear(config.hidden_size, config.hidden_size)
        self.resid_drop = nn.Dropout(config.dropout)

    def forward(self, hidden: Tensor) -> Tensor:
        """Attends to what came before."""
        heads = self.qkv(hidden).unflatten(-1, (3, self.config.num_heads, -1))
        q, k, v = (each.transpose(-3, -2) for each in heads.unbind(-3))
        p = self.config.dropout if self.training else 0.0
        mixed = functional.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)
        return self.resid_drop(self.proj(mixed.transpose(-3, -2).flatten(-2)))


@made("CausalSelfAttention")
def causal_attention_of_dataclass() -> Any:
    """A factory that turns sizes into a dataclass, which the layer is built from."""

    def build(d_model: int, num_heads: int, dropout: float = 0.1) -> nn.Module:
        return _CausalAttention(AttentionConfig(d_model, num_heads, dropout))

    return build


class _OneHead(nn.Module):
    tril: Tensor

    def __init__(self, n_embd: int, head_size: int, block_size: int, dropout: float) -> None:
        super().__init__()
        self.key = nn.Linear(n_embd, head_size)
        self.query = nn.Linear(n_embd, head_size)
        self.value = nn.Linear(n_embd, head_size)
        lower = torch.tril(torch.ones(block_size, block_size))
        self.register_buffer("tril", lower, persistent=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        steps = x.shape[-2]
        k, q = self.key(x), self.query(x)
        scores = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        scores = scores.masked_fill(self.tril[:steps, :steps] == 0, float("-inf"))
        return self.dropout(functional.softmax(scores, dim=-1)) @ self.value(x)


@own("CausalSelfAttention")
class CausalHeads(nn.Module):
    """A module for each head with a buffer of ones for its mask, as in lectures."""

    def __init__(
        self, n_embd: int, n_head: int, dropout: float = 0.1, block_size: int = 1024
    ) -> None:
        super().__init__()
        size = n_embd // n_head
        self.heads = nn.ModuleList(
            _OneHead(n_embd, size, block_size, dropout) for _ in range(n_head)
        )
        self.proj = nn.Linear(n_embd, n_embd)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Joins the heads."""
        return self.dropout(self.proj(torch.cat([head(x) for head in self.heads], dim=-1)))


@own("GroupedQueryAttention")
class RepeatedKeys(nn.Module):
    """Llama's first names, and keys and values repeated for the heads of queries."""

    def __init__(self, dim: int, n_heads: int, n_kv_heads: int, head_dim: int | None = None):
        super().__init__()
        self.head_dim = head_dim or dim // n_heads
        self.repeats = n_heads // n_kv_heads
        self.wq = nn.Linear(dim, n_heads * self.head_dim, bias=False)
        self.wk = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
        self.wv = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
        self.wo = nn.Linear(n_heads * self.head_dim, dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Attends causally."""
        q, k, v = (
            each(x).unflatten(-1, (-1, self.head_dim)).movedim(-2, -3)
            for each in (self.wq, self.wk, self.wv)
        )
        k, v = (each.repeat_interleave(self.repeats, dim=-3) for each in (k, v))
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(mixed.movedim(-3, -2).flatten(-2))


@own("GroupedQueryAttention")
class PackedGroups(nn.Module):
    """One packed map to queries, keys and values, and einsum over groups with nothing repeated."""

    def __init__(self, d_model: int, num_heads: int, num_kv_heads: int) -> None:
        super().__init__()
        self.groups, self.size = num_kv_heads, d_model // num_heads
        self.sizes = [d_model, num_kv_heads * self.size, num_kv_heads * self.size]
        self.qkv_proj = nn.Linear(d_model, sum(self.sizes), bias=False)
        self.o_proj = nn.Linear(d_model, d_model, bias=False)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Attends causally."""
        q, k, v = self.qkv_proj(hidden_states).split(self.sizes, dim=-1)
        q = q.unflatten(-1, (self.groups, -1, self.size)) * self.size**-0.5
        k, v = (each.unflatten(-1, (self.groups, self.size)) for each in (k, v))
        scores = torch.einsum("...sgrd,...tgd->...grst", q, k)
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        weights = scores.masked_fill(later, -torch.inf).softmax(-1)
        return self.o_proj(torch.einsum("...grst,...tgd->...sgrd", weights, v).flatten(-3))


@own("MultiHeadLatentAttention")
class ProductsInTheLatents(nn.Module):
    """DeepSeek's names, complex numbers that turn neighbours, and no keys or values of heads."""

    def __init__(
        self,
        dim: int,
        n_heads: int,
        kv_lora_rank: int,
        qk_nope_head_dim: int,
        qk_rope_head_dim: int,
        v_head_dim: int,
        q_lora_rank: int = 0,
    ) -> None:
        super().__init__()
        self.n_heads, self.q_lora_rank = n_heads, q_lora_rank
        self.nope, self.rope = qk_nope_head_dim, qk_rope_head_dim
        wide = n_heads * (self.nope + self.rope)
        if q_lora_rank == 0:
            self.wq = nn.Linear(dim, wide, bias=False)
        else:
            self.wq_a = nn.Linear(dim, q_lora_rank, bias=False)
            self.q_norm = nn.RMSNorm(q_lora_rank, eps=1e-6)
            self.wq_b = nn.Linear(q_lora_rank, wide, bias=False)
        self.wkv_a = nn.Linear(dim, kv_lora_rank + self.rope, bias=False)
        self.kv_norm = nn.RMSNorm(kv_lora_rank, eps=1e-6)
        self.wkv_b = nn.Linear(kv_lora_rank, n_heads * (self.nope + v_head_dim), bias=False)
        self.wo = nn.Linear(n_heads * v_head_dim, dim, bias=False)

    def turned(self, x: Tensor) -> Tensor:
        """Queries or keys of shape (batch, seq, heads, features), as complex numbers."""
        steps = torch.arange(0, self.rope, 2, dtype=torch.float64, device=x.device) / self.rope
        places = torch.arange(x.shape[1], dtype=torch.float64, device=x.device)
        angles = torch.outer(places, 10000.0**-steps)
        turn = torch.polar(torch.ones_like(angles), angles)[:, None]
        pairs = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous())
        return torch.view_as_real(pairs * turn).flatten(-2).to(x.dtype)

    def forward(self, x: Tensor) -> Tensor:
        """Attends causally."""
        q = self.wq_b(self.q_norm(self.wq_a(x))) if self.q_lora_rank else self.wq(x)
        q_nope, q_pe = q.unflatten(-1, (self.n_heads, -1)).split([self.nope, self.rope], dim=-1)
        rank = self.kv_norm.normalized_shape[0]
        kv, k_pe = self.wkv_a(x).split([rank, self.rope], dim=-1)
        kv, k_pe, q_pe = (
            self.kv_norm(kv),
            self.turned(k_pe.unsqueeze(2))[:, :, 0],
            self.turned(q_pe),
        )
        w = self.wkv_b.weight.unflatten(0, (self.n_heads, -1))
        q_nope = torch.einsum("bshd,hdc->bshc", q_nope, w[:, : self.nope])
        scores = torch.einsum("bshc,btc->bhst", q_nope, kv)
        scores = scores + torch.einsum("bshr,btr->bhst", q_pe, k_pe)
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
        scores = (scores * (self.nope + self.rope) ** -0.5).masked_fill(later, -torch.inf)
        read = torch.einsum("bhst,btc->bshc", scores.softmax(-1), kv)
        return self.wo(torch.einsum("bshc,hdc->bshd", read, w[:, self.nope :]).flatten(2))


# Masks.


@own("causal_mask")
def blocked_future(size: int, offset: int = 0) -> Tensor:
    """True where a key is blocked, as torch.nn's layers want it."""
    return torch.triu(torch.ones(size, offset + size, dtype=torch.bool), diagonal=offset + 1)


@own("sliding_window_mask")
def window_of_numbers(seq_len: int, window_size: int, past_len: int = 0) -> Tensor:
    """Numbers to add to the scores, from positions compared with each other."""
    query = torch.arange(seq_len)[:, None] + past_len
    distance = query - torch.arange(seq_len + past_len)[None, :]
    seen = (distance >= 0) & (distance < window_size)
    return torch.zeros(seen.shape).masked_fill(~seen, float("-inf"))


@own("padding_mask")
def key_padding_mask(seq_lens: Tensor, max_len: int) -> Tensor:
    """True for padding, without an axis for queries, as torch.nn's key_padding_mask."""
    positions = torch.arange(max_len, device=seq_lens.device).expand(len(seq_lens), max_len)
    return positions >= seq_lens.unsqueeze(1)


# Norms.


@own("LayerNorm")
class GammaBetaLayerNorm(nn.Module):
    """Parameters called gamma and beta, torch.var without correction, and rsqrt."""

    def __init__(self, features: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(features))
        self.beta = nn.Parameter(torch.zeros(features))
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        """Normalizes the last axis."""
        mean = x.mean(-1, keepdim=True)
        variance = x.var(-1, keepdim=True, unbiased=False)
        return (x - mean) * torch.rsqrt(variance + self.epsilon) * self.gamma + self.beta


class _NormFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, gain: Tensor, shift: Tensor, eps: float) -> Tensor:
        ctx.save_for_backward(x, gain)
        ctx.eps = eps
        normed, _ = _normed_and_scale(x, eps)
        return normed * gain + shift

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (grad,) = grads
        x, gain = ctx.saved_tensors
        normed, scale = _normed_and_scale(x, ctx.eps)  # anew: it is differentiated in its turn
        axes = tuple(range(grad.ndim - 1))
        inner = grad * gain
        means = inner.mean(-1, keepdim=True) + normed * (inner * normed).mean(-1, keepdim=True)
        return scale * (inner - means), (grad * normed).sum(axes), grad.sum(axes), None


def _normed_and_scale(x: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    scale = (variance + eps).rsqrt()
    return (x - mean) * scale, scale


@own("LayerNorm")
class HandGradientLayerNorm(nn.Module):
    """An autograd function with its gradient written by hand."""

    def __init__(self, dim: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(dim))
        self.shift = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """Normalizes the last axis."""
        return _NormFunction.apply(x, self.scale, self.shift, self.eps)  # type: ignore[no-untyped-call]


class _ScriptableNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        centered = x - x.mean(dim=-1, keepdim=True)
        power = (centered * centered).mean(dim=-1, keepdim=True)
        return self.weight * (centered / torch.sqrt(power + self.eps)) + self.bias


@made("LayerNorm")
def scripted_layer_norm() -> Any:
    """A factory whose module is compiled by torch.jit.script."""

    def make(d_model: int, eps: float = 1e-5) -> Any:
        return torch.jit.script(_ScriptableNorm(d_model, eps))

    return make


@own("RMSNorm")
class RootMeanSquare(nn.Module):
    """The length of the vector over the root of its size, in place of a mean."""

    def __init__(self, dim: int, *, eps: float = 1e-6) -> None:
        super().__init__()
        self.g = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """Normalizes the last axis."""
        square = (x * x).sum(-1, keepdim=True) / x.shape[-1]
        return x / (square + self.eps) ** 0.5 * self.g


@own("LlamaRMSNorm")
class TypedRMSNorm(nn.Module):
    """A private method that normalizes in float32, and its result cast before the gain."""

    def __init__(self, hidden_size: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.variance_epsilon = eps
        self.weight = nn.Parameter(torch.ones(hidden_size))

    def _norm(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Normalizes the last axis."""
        wide = hidden_states.to(torch.promote_types(hidden_states.dtype, torch.float32))
        return self.weight * self._norm(wide).to(hidden_states.dtype)


@own("GemmaRMSNorm")
class OffsetRMSNorm(nn.Module):
    """A gain that is kept as its distance from one, and added by torch.addcmul."""

    def __init__(self, dim: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.offset = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """Normalizes the last axis."""
        wide = x if x.dtype == torch.float64 else x.float()
        normed = wide * (wide.square().mean(-1, keepdim=True) + self.eps).rsqrt()
        return torch.addcmul(normed, normed, self.offset.to(normed.dtype)).to(x.dtype)


@own("BatchNorm1d")
class FunctionalBatchNorm(nn.Module):
    """The function of torch.nn.functional around buffers with names of its own."""

    moving_mean: Tensor
    moving_var: Tensor

    def __init__(self, channels: int, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(channels))
        self.beta = nn.Parameter(torch.zeros(channels))
        self.register_buffer("moving_mean", torch.zeros(channels))
        self.register_buffer("moving_var", torch.ones(channels))
        self.eps, self.momentum = eps, momentum

    def forward(self, x: Tensor) -> Tensor:
        """Normalizes each channel."""
        buffers = (self.moving_mean, self.moving_var)
        return functional.batch_norm(
            x, *buffers, self.gamma, self.beta, self.training, self.momentum, self.eps
        )


# Maps of each position.


@own("Conv1D")
class WidthOneConvolution(nn.Module):
    """A torch.nn.Conv1d of width 1, whose weight has three axes, output first."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(n_in, n_out, kernel_size=1)
        nn.init.normal_(self.conv.weight, std=0.02)
        nn.init.zeros_(self.conv.bias)  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> Tensor:
        """Maps the last axis."""
        rows = x.reshape(-1, x.shape[-1], 1)
        return self.conv(rows).reshape(*x.shape[:-1], -1)


@own("PositionwiseFeedForward")
class ConvolvedFeedForward(nn.Module):
    """Two convolutions of width 1, as the paper describes them, each position a sequence of one."""

    def __init__(self, d_in: int, d_hid: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.w_1 = nn.Conv1d(d_in, d_hid, 1)
        self.w_2 = nn.Conv1d(d_hid, d_in, 1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Maps each position."""
        y = self.w_2(functional.relu(self.w_1(x.reshape(-1, x.shape[-1], 1))))
        return self.dropout(y).reshape(x.shape)


@made("PositionwiseFeedForward")
def lazy_feed_forward() -> Any:
    """A factory of a Sequential of lazy maps, which learn their input's size at the first call."""

    def make(d_model: int, d_ff: int, dropout: float = 0.1) -> nn.Module:
        return nn.Sequential(
            nn.LazyLinear(d_ff), nn.ReLU(), nn.LazyLinear(d_model), nn.Dropout(dropout)
        )

    return make


@own("PositionwiseFeedForward")
class WeightNormFeedForward(nn.Module):
    """Both maps under weight normalization, so that weights are a length and a direction."""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.up = parametrizations.weight_norm(nn.Linear(d_model, d_ff))
        self.down = parametrizations.weight_norm(nn.Linear(d_ff, d_model))
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Maps each position."""
        return self.drop(self.down(self.up(x).clamp(min=0)))


@own("FeedForward")
class SequentialFeedForward(nn.Sequential):
    """A subclass of Sequential whose maps are nn.Linear, weights output first."""

    def __init__(self, d_model: int, d_ff: int | None = None, dropout: float = 0.1) -> None:
        wide = d_ff or 4 * d_model
        maps = nn.Linear(d_model, wide), nn.Linear(wide, d_model)
        for each in maps:
            nn.init.normal_(each.weight, std=0.02)
            nn.init.zeros_(each.bias)
        super().__init__(maps[0], nn.GELU(approximate="tanh"), maps[1], nn.Dropout(dropout))


@own("GatedFeedForward")
class SwiGLU(nn.Module):
    """Maps called w1, w2 and w3, and keyword-only arguments."""

    def __init__(self, *, dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.w1 = nn.Linear(dim, hidden_dim, bias=False)
        self.w2 = nn.Linear(hidden_dim, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden_dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """The gate goes through w1."""
        return self.w2(functional.silu(self.w1(x)) * self.w3(x))


@own("PackedGatedFeedForward")
class SplitGate(nn.Module):
    """A packed parameter that is split in its rows, the swish written with a sigmoid."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.w12 = nn.Parameter(torch.empty(2 * d_ff, d_model).uniform_(-1, 1) / d_model**0.5)
        self.w3 = nn.Parameter(torch.empty(d_model, d_ff).uniform_(-1, 1) / d_ff**0.5)

    def forward(self, inputs: Tensor) -> Tensor:
        """The gate's rows come first."""
        gate, up = (inputs @ rows.t() for rows in self.w12.tensor_split(2))
        return (gate * torch.sigmoid(gate) * up) @ self.w3.t()


# Whole layers.


class _SelfAttention(nn.Module):
    def __init__(self, d_model: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.to_qkv = nn.Linear(d_model, 3 * d_model)
        self.to_out = nn.Linear(d_model, d_model)
        self.heads, self.drop = heads, nn.Dropout(dropout)

    def forward(self, x: Tensor, blocked: Tensor | None = None) -> Tensor:
        heads = self.to_qkv(x).unflatten(-1, (3, self.heads, -1)).unbind(-3)
        q, k, v = (each.transpose(-3, -2) for each in heads)
        weights = self.drop(_safe_weights(q, k, _for_heads(blocked)))
        return self.to_out((weights @ v).transpose(-3, -2).flatten(-2))


def _feed_forward(d_model: int, d_ff: int, dropout: float) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model), nn.Dropout(dropout)
    )


@own("TransformerEncoderLayer")
class PackedEncoderLayer(nn.Module):
    """Self-attention with one packed map, a Sequential to each position, and True for blocked."""

    def __init__(self, dim: int, heads: int, mlp_dim: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.attn = _SelfAttention(dim, heads, dropout)
        self.ffn = _feed_forward(dim, mlp_dim, dropout)
        self.ln_attn, self.ln_ffn = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, src: Tensor, src_mask: Tensor | None = None) -> Tensor:
        """The norm stands after each sum; True in the mask blocks."""
        src = self.ln_attn(src + self.drop(self.attn(src, src_mask)))
        return self.ln_ffn(src + self.ffn(src))


@own("TransformerEncoderLayer")
class EncoderLayerOfTorch(nn.Module):
    """Around torch.nn.MultiheadAttention with batch_first, and a mask of padded keys."""

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int, dropout: float = 0.1):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(d_model, nhead, dropout, batch_first=True)
        self.linear1 = nn.Linear(d_model, dim_feedforward)
        self.linear2 = nn.Linear(dim_feedforward, d_model)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.dropout1, self.dropout2 = nn.Dropout(dropout), nn.Dropout(dropout)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
    ) -> Tensor:
        """The norm stands after each sum; True in a mask blocks."""
        masks: dict[str, Any] = {
            "attn_mask": src_mask,
            "key_padding_mask": src_key_padding_mask,
            "need_weights": False,
        }
        src = self.norm1(src + self.dropout1(self.self_attn(src, src, src, **masks)[0]))
        hidden = self.linear2(functional.relu(self.linear1(src)))
        return self.norm2(src + self.dropout2(hidden))


@own("PreNormTransformerEncoderLayer")
class PreNormWithBias(nn.Module):
    """The mask is a number to add to each score, named attn_bias; modules in a ModuleDict."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.parts = nn.ModuleDict(
            {
                "norm_a": nn.LayerNorm(d_model),
                "attention": _SelfAttention(d_model, num_heads, dropout),
                "norm_f": nn.LayerNorm(d_model),
                "feed": _feed_forward(d_model, d_ff, dropout),
            }
        )
        self.p = dropout

    def forward(self, x: Tensor, attn_bias: Tensor | None = None) -> Tensor:
        """Norms inside the residual; -inf blocks."""
        blocked = None if attn_bias is None else attn_bias == -torch.inf
        attended = self.parts["attention"](self.parts["norm_a"](x), blocked)
        x = x + functional.dropout(attended, self.p, self.training)
        return x + self.parts["feed"](self.parts["norm_f"](x))


class _Residual(nn.Module):
    def __init__(self, size: int, dropout: float) -> None:
        super().__init__()
        self.norm, self.dropout = nn.LayerNorm(size), nn.Dropout(dropout)

    def before(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return x + self.dropout(sublayer(self.norm(x)))

    def after(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return self.norm(x + self.dropout(sublayer(x)))


class _DecoderParts(nn.Module):
    def __init__(self, size: int, heads: int, hidden: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.self_attn = _EinsumAttention(size, heads, dropout)
        self.src_attn = _EinsumAttention(size, heads, dropout)
        self.w_1, self.w_2 = nn.Linear(size, hidden), nn.Linear(hidden, size)
        self.sublayer = nn.ModuleList(_Residual(size, dropout) for _ in range(3))

    def _feed(self, x: Tensor) -> Tensor:
        return self.w_2(self.w_1(x).relu())

    def _run(
        self, order: str, x: Tensor, memory: Tensor, seen: Tensor | None, found: Tensor | None
    ) -> Tensor:
        first, second, third = (getattr(each, order) for each in self.sublayer)
        x = first(x, lambda y: self.self_attn(y, y, y, seen))
        x = second(x, lambda y: self.src_attn(y, memory, memory, found))
        return third(x, self._feed)


@own("TransformerDecoderLayer")
class SublayersAfter(_DecoderParts):
    """Residual modules that are handed lambdas, and attention in einsum."""

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """The norm stands after each sum; True may attend."""
        return self._run("after", tgt, memory, tgt_mask, memory_mask)


@own("PreNormTransformerDecoderLayer")
class SublayersBefore(_DecoderParts):
    """The same modules with the norm inside, the memory's mask first as in the paper's code."""

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
    ) -> Tensor:
        """Norms inside the residual; True may attend."""
        return self._run("before", x, memory, tgt_mask, src_mask)


class _GPTBlock(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float, eps: float = 1e-5) -> None:
        super().__init__()
        self.attn_norm = nn.LayerNorm(width, eps)
        self.attention = _CausalAttention(AttentionConfig(width, heads, dropout))
        self.mlp_norm = nn.LayerNorm(width, eps)
        self.fc, self.out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.attn_norm(x))
        hidden = functional.gelu(self.fc(self.mlp_norm(x)), approximate="tanh")
        return x + self.drop(self.out(hidden))


@own("GPT2Block")
class LinearBlock(_GPTBlock):
    """Maps of nn.Linear in the place of Conv1D, two of them without a module of their own."""

    def __init__(self, width: int, heads: int, dropout: float = 0.1, eps: float = 1e-5) -> None:
        super().__init__(width, heads, dropout, eps)


class _OwnGPT(nn.Module):
    def __init__(self, config: Any) -> None:
        super().__init__()
        width, dropout, eps = config.n_embd, config.dropout, config.layer_norm_epsilon
        self.token = nn.Embedding(config.vocab_size, width)
        self.place = nn.Embedding(config.n_positions, width)
        blocks = (_GPTBlock(width, config.n_head, dropout, eps) for _ in range(config.n_layer))
        self.blocks = nn.Sequential(*blocks)
        self.norm, self.drop = nn.LayerNorm(width, eps), nn.Dropout(dropout)
        self.head = nn.Linear(width, config.vocab_size, bias=False)
        self.head.weight = self.token.weight

    def forward(self, idx: Tensor) -> Tensor:
        x = self.token(idx) + self.place(torch.arange(idx.shape[-1], device=idx.device))
        return self.head(self.norm(self.blocks(self.drop(x))))


@made("GPT2")
def gpt_of_our_config() -> Any:
    """A class that reads the book's config, and a tied nn.Linear for the head."""
    return _OwnGPT


# Dropout, losses and penalties.


@own("dropout")
def bernoulli_dropout(inputs: Tensor, drop_prob: float = 0.5, train: bool = True) -> Tensor:
    """Draws from torch.distributions, and fills what is dropped with zeros."""
    if not train or drop_prob == 0.0:
        return inputs
    if drop_prob == 1.0:
        return torch.where(torch.ones_like(inputs, dtype=torch.bool), 0.0, inputs)
    chance = torch.full(inputs.shape, drop_prob, device=inputs.device)
    dropped = torch.distributions.Bernoulli(chance).sample().bool()
    return inputs.masked_fill(dropped, 0.0) / (1.0 - drop_prob)


@own("Dropout")
class RateDropout(nn.Module):
    """Its share is called rate, and it keeps where a draw in float32 is not below it."""

    def __init__(self, rate: float = 0.5) -> None:
        super().__init__()
        if not 0.0 <= rate <= 1.0:
            raise ValueError(f"rate must be within [0, 1], got {rate}")
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        """Drops in training."""
        if not self.training or not self.rate:
            return x
        keep = torch.rand(x.shape, device=x.device) >= self.rate
        return torch.where(keep, x / max(1.0 - self.rate, 1e-12), torch.zeros_like(x))


@own("smoothed_cross_entropy")
def loss_of_log_softmax(
    scores: Tensor, target: Tensor, smoothing: float, ignore_index: int | None = None
) -> Tensor:
    """One minus the smoothing for the right token, and the smoothing for the mean of all."""
    logp = scores.log_softmax(-1)
    picked = target.long()
    kept = torch.ones_like(picked, dtype=torch.bool)
    if ignore_index is not None:
        kept = picked != ignore_index
        picked = picked.masked_fill(~kept, 0)
    right = -logp.gather(-1, picked.unsqueeze(-1)).squeeze(-1)
    loss = (1.0 - smoothing) * right - smoothing * logp.mean(-1)
    return loss[kept].mean()


@own("l1_penalty")
def sum_of_absolutes(params: Iterable[Tensor]) -> Tensor:
    """Python's sum over a generator of norms of order 1."""
    return sum((p.flatten().norm(p=1) for p in params), start=torch.zeros(()))


@own("l2_penalty")
def half_square_of_vector(weights: Iterable[Tensor]) -> Tensor:
    """All parameters joined to one vector, times itself."""
    vector = parameters_to_vector(weights)
    return vector.dot(vector) / 2


@own("soft_threshold")
def shrink(v: Tensor, lam: float) -> Tensor:
    """Two ReLUs, one for each sign."""
    return functional.relu(v - lam) - functional.relu(-v - lam)


# Positions.


class _PositionalEncoding(nn.Module):
    pe: Tensor

    def __init__(self, d_model: int, max_len: int) -> None:
        super().__init__()
        position = torch.arange(max_len, dtype=torch.float64).unsqueeze(1)
        steps = torch.arange(0, d_model, 2, dtype=torch.float64)
        scale = torch.exp(steps * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, d_model, dtype=torch.float64)
        pe[:, 0::2] = torch.sin(position * scale)
        pe[:, 1::2] = torch.cos(position * scale)[:, : d_model // 2]
        self.register_buffer("pe", pe.to(torch.get_default_dtype()), persistent=False)


@own("sinusoidal_positions")
def table_of_buffer(max_len: int, d_model: int) -> Tensor:
    """The buffer of a module, filled in two assignments with exponentials of logarithms."""
    return _PositionalEncoding(d_model, max_len).pe


@own("RotaryPositions")
class RotatedHalves(nn.Module):
    """Cosines and sines repeated for both halves, and a function that rotates by a quarter."""

    def __init__(self, dim: int, base: float = 10000.0) -> None:
        super().__init__()
        self.dim, self.base = dim, base

    def forward(self, x: Tensor, position_ids: Tensor | None = None) -> Tensor:
        """Turns pairs that are a half apart."""
        if position_ids is None:
            position_ids = torch.arange(x.shape[-2], device=x.device)
        wide = torch.promote_types(x.dtype, torch.float32)
        steps = torch.arange(0, self.dim, 2, dtype=torch.float64, device=x.device)
        angles = position_ids.unsqueeze(-1).double() * self.base ** (-steps / self.dim)
        angles = torch.cat((angles, angles), dim=-1)
        turned = x.to(wide) * angles.cos().to(wide)
        turned = turned + _quarter(x.to(wide)) * angles.sin().to(wide)
        return turned.to(x.dtype)


def _quarter(x: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)
