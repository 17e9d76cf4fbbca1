"""Latent attention: keys and values of all heads are made from one short vector a position."""

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer_layers.attention.context import (
    CacheOrContext,
    Context,
    allowed_keys,
    context_of,
    of_heads,
)
from transformer_layers.attention.definition import attention_weights
from transformer_layers.attention.grouped import Norm
from transformer_layers.attention.heads import merge_heads, split_heads
from transformer_layers.attention.inputs import require_sequences
from transformer_layers.attention.kernel import fused_attention
from transformer_layers.attention.latent_cache import LatentCache
from transformer_layers.attention.masks import causal_mask
from transformer_layers.norms.rms_norm import RMSNorm
from transformer_layers.positions.rotary import Positions, RotaryPositions
from transformer_layers.validation import (
    dtype_taken_by,
    require_dtype,
    require_floating_dtype,
    require_positive,
    require_size,
)


class MultiHeadLatentAttention(nn.Module):
    r"""Multi-head latent attention of a sequence to itself, https://arxiv.org/abs/2405.04434.

    .. math::
        c_t &= \mathrm{RMSNorm}(W^{DKV} x_t)
        \\
        k_{t,h} &= [W^{UK}_h c_t;\, \mathrm{RoPE}(W^{KR} x_t)], \quad v_{t,h} = W^{UV}_h c_t
        \\
        c_t^Q &= \mathrm{RMSNorm}(W^{DQ} x_t)
        \\
        q_{t,h} &= [W^{UQ}_h c_t^Q;\, \mathrm{RoPE}(W^{QR}_h c_t^Q)]
        \\
        \mathrm{head}_{t,h} &= \sum_{s \le t} \mathrm{softmax}_s\left(
        \frac{q_{t,h}^\top k_{s,h}}{\sqrt{d_{nope} + d_{rope}}}\right) v_{s,h}

    Equations 9 to 19 there, with all of it together in 37 to 47; the norms of the latents are in
    its section 3.1.2. Equations 1 to 11 of https://arxiv.org/abs/2412.19437 are the same. Only
    :math:`c_t` and the turned key are kept of a position, `kv_rank + d_rope` numbers for all heads:
    see :class:`LatentCache`. A rotation between :math:`W^{UQ}` and :math:`W^{UK}` would depend on
    both positions. So a part of each query and one key for all heads are turned, and the rest is
    not.

    There are two ways to compute it, equal up to rounding. :meth:`naive` makes keys and values of
    each latent. :meth:`absorbed` makes none: :math:`q^\top W^{UK} c` is a query of the width of
    the latent, and :math:`W^{UV}` maps what it reads; the scale stays that of the naive form. Of
    what a cache holds, the one of fewer products is taken: for a few positions behind many it is
    the absorbed one.

    The names are those of DeepSeek's weights in `transformers`.

    Args:
        d_model: Size of the last axis of input and output.
        num_heads: Heads of queries.
        kv_rank: Features of the latent of keys and values.
        d_nope: Features of a head's query and key that no position turns.
        d_rope: Features of a head's query, and of the key of all heads, that are turned.
        d_v: Features of a head's value; `d_nope` if not given.
        q_rank: Features of the latent of queries; if not given, queries are made of `x`.
        positions: Maps the parts of queries and keys that are turned, each with its positions;
            `RotaryPositions(d_rope, layout="neighbours")`, as DeepSeek has it, if not given.
        bias: Whether the maps to latents and the map of the heads' results have one.
        norm: Makes a norm of its size for latents; :class:`RMSNorm` if not given.
        scale: Of scores; `(d_nope + d_rope) ** -0.5` if not given. Models whose positions were
            scaled by YaRN multiply it.
        device: Of the parameters; torch's default one if not given.
        dtype: Of the parameters; torch's default one if not given.

    Attributes:
        q_proj: `nn.Linear`, weight of shape `(num_heads * (d_nope + d_rope), d_model)`; None with
            a `q_rank`.
        q_a_proj: `nn.Linear`, :math:`W^{DQ}` of shape `(q_rank, d_model)`; None without a `q_rank`,
            as the next two.
        q_a_layernorm: The norm of the latent of queries.
        q_b_proj: `nn.Linear`, :math:`W^{UQ}` and :math:`W^{QR}` of each head, shape
            `(num_heads * (d_nope + d_rope), q_rank)`.
        kv_a_proj_with_mqa: `nn.Linear`, :math:`W^{DKV}` and behind it :math:`W^{KR}`, shape
            `(kv_rank + d_rope, d_model)`.
        kv_a_layernorm: The norm of the latent of keys and values.
        kv_b_proj: `nn.Linear`, :math:`W^{UK}` and :math:`W^{UV}` of each head, shape
            `(num_heads * (d_nope + d_v), kv_rank)`.
        o_proj: `nn.Linear`, weight of shape `(d_model, num_heads * d_v)`.

    Raises:
        TypeError: If a size is not an int.
        ValueError: If a size is below 1, `d_rope` is odd, or `scale` is not above 0.

    Examples:
        >>> attention = MultiHeadLatentAttention(8, num_heads=4, kv_rank=5, d_nope=3, d_rope=2)
        >>> cache = LatentCache(batch=3, max_seq=6, kv_rank=5, d_rope=2)
        >>> x = torch.randn(3, 6, 8)
        >>> steps = [attention(part, cache) for part in x.split([4, 1, 1], dim=1)]
        >>> torch.allclose(torch.cat(steps, dim=1), attention(x), atol=1e-6)
        True
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        kv_rank: int,
        d_nope: int,
        d_rope: int,
        d_v: int | None = None,
        q_rank: int | None = None,
        positions: Positions | None = None,
        *,
        bias: bool = False,
        norm: Norm | None = None,
        scale: float | None = None,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        d_v = d_nope if d_v is None else d_v
        sizes = {"d_model": d_model, "num_heads": num_heads, "kv_rank": kv_rank}
        sizes |= {"d_nope": d_nope, "d_rope": d_rope, "d_v": d_v}
        sizes |= {} if q_rank is None else {"q_rank": q_rank}
        for name, size in sizes.items():
            require_size(name, size)
        if positions is None:
            if d_rope % 2:
                raise ValueError(f"features turn in pairs: d_rope must be even, got {d_rope}")
            positions = RotaryPositions(d_rope, layout="neighbours")
        if scale is not None:
            require_positive("scale", scale)
        require_floating_dtype(dtype)
        self.d_model, self.num_heads = d_model, num_heads
        self.kv_rank, self.q_rank = kv_rank, q_rank
        self.d_nope, self.d_rope, self.d_v = d_nope, d_rope, d_v
        self.scale = (d_nope + d_rope) ** -0.5 if scale is None else scale
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        of_queries = num_heads * (d_nope + d_rope)
        self.q_proj: Any = None
        self.q_a_proj: Any = None
        self.q_a_layernorm: Any = None
        self.q_b_proj: Any = None
        if q_rank is None:
            self.q_proj = nn.Linear(d_model, of_queries, bias=False, **made)
        else:
            self.q_a_proj = nn.Linear(d_model, q_rank, bias, **made)
            self.q_a_layernorm = _norm_of(q_rank, norm, **made)
            self.q_b_proj = nn.Linear(q_rank, of_queries, bias=False, **made)
        self.kv_a_proj_with_mqa = nn.Linear(d_model, kv_rank + d_rope, bias, **made)
        self.kv_a_layernorm = _norm_of(kv_rank, norm, **made)
        self.kv_b_proj = nn.Linear(kv_rank, num_heads * (d_nope + d_v), bias=False, **made)
        self.o_proj = nn.Linear(num_heads * d_v, d_model, bias, **made)
        self.positions = positions

    def reset_parameters(self) -> None:
        """Draws the parameters of the projections anew, and resets the norms."""
        for layer in self.children():
            reset = getattr(layer, "reset_parameters", None)
            if reset is not None:
                reset()

    def forward(
        self,
        x: Float[Tensor, "*batch seq d_model"],
        cache: CacheOrContext = None,
    ) -> Float[Tensor, "*batch seq d_model"]:
        """Attends from each position of `x` to itself and to those before it.

        Args:
            x: Shape `(..., seq, d_model)`; with a cache `(batch, seq, d_model)`.
            cache: A :class:`LatentCache` of the positions before `x`, to which `x` attends. Those
                of `x` are added. Or the context of a model's forward pass, which has it, and whose
                rotation stands in the place of the layer's own positions.

        Returns:
            Shape `(..., seq, d_model)`.

        Raises:
            TypeError: If `x` is not of the parameters' dtype, or the cache holds another, or keeps
                keys and values.
            ValueError: If a shape does not fit, or the cache has no room for `x`.
        """
        require_sequences(self.d_model, x=x)
        require_dtype("x", x, dtype_taken_by(self.kv_a_proj_with_mqa))
        context = context_of(cache, x.shape[-2], x.device)
        query, rows = self._queries(x, context), self._rows(x, context)
        if context.cache is not None:
            if not isinstance(context.cache, LatentCache):
                raise TypeError(f"latent attention needs a LatentCache, got {context.cache!r}")
            rows, _ = context.cache.append(rows)
        attend = self.absorbed if self._is_cheaper_absorbed(context) else self.naive
        return self.o_proj(merge_heads(attend(query, rows, context)))

    def naive(
        self,
        query: Float[Tensor, "*batch num_heads seq d_k"],
        rows: Float[Tensor, "*batch 1 length d_row"],
        context: Context,
    ) -> Float[Tensor, "*batch num_heads seq d_v"]:
        """Makes keys and values of all latents, and attends to them.

        Args:
            query: Shape `(..., num_heads, seq, d_nope + d_rope)`, multiplied by what `scale` has
                beyond the root of that width.
            rows: What is kept of all positions so far, shape `(..., 1, length, kv_rank + d_rope)`.
            context: That of the pass.

        Returns:
            Shape `(..., num_heads, seq, d_v)`.
        """
        latent, turned = rows.split([self.kv_rank, self.d_rope], dim=-1)
        made = split_heads(self.kv_b_proj(latent.squeeze(-3)), self.num_heads)
        key, value = made.split([self.d_nope, self.d_v], dim=-1)
        key = torch.cat([key, turned.expand(*key.shape[:-1], self.d_rope)], dim=-1)
        mask = allowed_keys(context)
        _tell_weights(query, key, mask, context)
        return fused_attention(query, key, value, mask, mask is None and not context.past)

    def absorbed(
        self,
        query: Float[Tensor, "*batch num_heads seq d_k"],
        rows: Float[Tensor, "*batch 1 length d_row"],
        context: Context,
    ) -> Float[Tensor, "*batch num_heads seq d_v"]:
        """The same without keys and values of the heads: all read the rows as they are kept.

        It is attention with one head of keys, whose values are the latents. Queries of all heads
        ask as rows of one, so that nothing is copied for each.

        Arguments and result are those of :meth:`naive`.
        """
        w = self.kv_b_proj.weight.unflatten(0, (self.num_heads, self.d_nope + self.d_v))
        w_key, w_value = w.split([self.d_nope, self.d_v], dim=1)
        plain, turned = query.split([self.d_nope, self.d_rope], dim=-1)
        plain = torch.einsum("...hnd,hdr->...hnr", plain, w_key)
        query = torch.cat([plain, turned], dim=-1)
        # The kernel divides by the root of this width, which is not that of the naive form.
        query = query * math.sqrt((self.kv_rank + self.d_rope) / (self.d_nope + self.d_rope))
        mask = allowed_keys(context)
        _tell_weights(query, rows, mask, context)
        if mask is None and not context.past:
            mask = causal_mask(context.seq, device=rows.device)
        if mask is not None:
            mask = mask.repeat(*[1] * (mask.ndim - 2), self.num_heads, 1)
        asking = query.flatten(-3, -2).unsqueeze(-3)  # (..., 1, num_heads * seq, d_row)
        read = fused_attention(asking, rows, rows[..., : self.kv_rank], mask)
        read = read.squeeze(-3).unflatten(-2, (self.num_heads, context.seq))
        return torch.einsum("...hnr,hvr->...hnv", read, w_value)

    def _queries(self, x: Tensor, context: Context) -> Tensor:
        if self.q_rank is None:
            query = self.q_proj(x)
        else:
            query = self.q_b_proj(self.q_a_layernorm(self.q_a_proj(x)))
        query = split_heads(query, self.num_heads)
        plain, turned = query.split([self.d_nope, self.d_rope], dim=-1)
        query = torch.cat([plain, self._turned(turned, context)], dim=-1)
        beyond = self.scale * math.sqrt(self.d_nope + self.d_rope)
        return query if beyond == 1 else query * beyond

    def _rows(self, x: Tensor, context: Context) -> Tensor:
        made = self.kv_a_proj_with_mqa(x).unsqueeze(-3)  # one head
        latent, turned = made.split([self.kv_rank, self.d_rope], dim=-1)
        return torch.cat([self.kv_a_layernorm(latent), self._turned(turned, context)], dim=-1)

    def _turned(self, x: Tensor, context: Context) -> Tensor:
        if context.rotation is not None:
            return context.rotation(x)
        return self.positions(x, of_heads(context.position_ids))

    def _is_cheaper_absorbed(self, context: Context) -> bool:
        """Whether the absorbed form has fewer products than the naive one."""
        if not context.past or not isinstance(self.kv_b_proj, nn.Linear):
            return False  # what an adapter wraps has no one weight
        made = self.d_nope + self.d_v
        longer = context.seq * (context.past + context.seq) * (2 * self.kv_rank - made)
        return longer < context.past * self.kv_rank * made

    def extra_repr(self) -> str:
        """The arguments that no submodule shows, for `print`."""
        sizes = f"kv_rank={self.kv_rank}, d_nope={self.d_nope}, d_rope={self.d_rope}"
        q_rank = "" if self.q_rank is None else f", q_rank={self.q_rank}"
        return f"{self.d_model}, {self.num_heads}, {sizes}, d_v={self.d_v}{q_rank}"


def _norm_of(size: int, norm: Norm | None, device: Any, dtype: torch.dtype | None) -> nn.Module:
    if norm is None:
        return RMSNorm(size, device=device, dtype=dtype)
    return norm(size).to(device=device, dtype=dtype)


def _tell_weights(query: Tensor, key: Tensor, mask: Tensor | None, context: Context) -> None:
    """Adds the attention weights to those of the context, where somebody asks for them."""
    if context.weights is None:
        return
    if mask is None and not context.past:
        mask = causal_mask(context.seq, device=key.device)
    mask = mask[:, None] if mask is not None and mask.ndim == 3 else mask  # an axis for heads
    context.weights.append(attention_weights(query, key, mask))
