"""Scaled dot-product attention by torch's kernel, for the layers."""

import functools
import math

from jaxtyping import Bool, Float
from torch import Tensor, nn


def fused_attention(
    query: Float[Tensor, "*batch num_heads q_seq d_k"],
    key: Float[Tensor, "*batch num_kv_heads kv_seq d_k"],
    value: Float[Tensor, "*batch num_kv_heads kv_seq d_v"],
    mask: Bool[Tensor, "*mask_batch _ kv_seq"] | None = None,
    is_causal: bool = False,
    dropout_p: float = 0.0,
) -> Float[Tensor, "*batch num_heads q_seq d_v"]:
    r"""The attention of :func:`scaled_dot_product_attention`, without its matrix of weights.

    `torch.nn.functional.scaled_dot_product_attention` computes the same function; its fused kernels
    go through the keys in blocks, so that memory grows with `q_seq + kv_seq` and the mask, not with
    `q_seq * kv_seq`. Where there are fewer heads of keys than of queries, each is read by as many
    neighboring heads of queries; on a CPU without a copy. There torch 2.13 has such a kernel
    without dropout only, and for it no second or forward-mode derivative and no rule for
    `torch.func.vmap`: for these, choose the other one with
    `torch.nn.attention.sdpa_kernel(SDPBackend.MATH)`.

    Args:
        query: Shape `(..., num_heads, q_seq, d_k)`.
        key: Shape `(..., num_kv_heads, kv_seq, d_k)`; `num_kv_heads` divides `num_heads`.
        value: Shape `(..., num_kv_heads, kv_seq, d_v)`.
        mask: Boolean, True = may attend, shared by the heads: shape `(q_seq, kv_seq)`,
            `(..., q_seq, kv_seq)` or `(..., 1, kv_seq)`.
        is_causal: Whether each query attends to the keys up to its own position, counted from the
            first: for as many queries as keys, and without `mask`.
        dropout_p: Share of the weights to drop.

    Returns:
        Shape `(..., num_heads, q_seq, d_v)`; 0 for a query that may attend to nothing, with
        gradient 0 if the inputs are finite.

    Raises:
        ValueError: If both `mask` and `is_causal` are given.
    """
    if mask is not None and is_causal:
        raise ValueError(
            f"pass either mask or is_causal, got a mask of shape {tuple(mask.shape)} and "
            "is_causal=True; combine them with mask & causal_mask(seq)"
        )
    # The fused kernels take four axes; other inputs get the one that builds the weights.
    batch = math.prod(query.shape[:-3])
    q, k, v = (x if x.ndim == 4 else x.reshape(batch, *x.shape[-3:]) for x in (query, key, value))
    if q.is_cuda and (group := q.shape[1] // k.shape[1]) > 1:  # where one kernel alone takes groups
        k, v = (x.repeat_interleave(group, dim=1) for x in (k, v))
    attend = functools.partial(
        nn.functional.scaled_dot_product_attention,
        q,
        k,
        v,
        dropout_p=dropout_p,
        enable_gqa=q.shape[1] != k.shape[1],
    )
    if mask is None:
        output = attend(is_causal=is_causal)
    else:
        if mask.ndim > 2:
            mask = mask.reshape(batch, 1, *mask.shape[-2:])
        # A row with nothing allowed is up to the kernel: allow all, then set 0.
        dead = ~mask.any(dim=-1, keepdim=True)
        output = attend(attn_mask=mask | dead).masked_fill(dead, 0.0)
    return output.reshape(*query.shape[:-1], value.shape[-1])
