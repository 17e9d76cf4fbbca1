"""Attention with soft caps: no score is larger than a bound."""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from transformer_layers.attention.inputs import require_attention_inputs, require_mask_of_scores
from transformer_layers.precision import at_least_float32


def soft_capped_attention(
    query: Float[Tensor, "... q_seq d_k"],
    key: Float[Tensor, "... kv_seq d_k"],
    value: Float[Tensor, "... kv_seq d_v"],
    cap: float,
    mask: Bool[Tensor, "..."] | None = None,
) -> Float[Tensor, "... q_seq d_v"]:
    r"""Attention whose scores are squeezed between -cap and cap, as in Gemma 2.

    Section 2 of https://arxiv.org/abs/2408.00118.

    .. math::
        A = \mathrm{softmax}\left(c \tanh\left(\frac{Q K^\top}{c \sqrt{d_k}}\right)\right)

    The cap comes after the scale and before the mask: where the mask is False the score is
    :math:`-\infty`, which a cap would make :math:`-c`. Scores that are small beside the cap hardly
    change. A query that may attend to nothing gives 0, with gradient 0. float16 and bfloat16 are
    computed in float32 and rounded once.

    Args:
        query: Shape `(..., q_seq, d_k)`.
        key: Shape `(..., kv_seq, d_k)`; the leading axes broadcast with those of the others.
        value: Shape `(..., kv_seq, d_v)`.
        cap: The bound :math:`c`.
        mask: See :func:`attention_weights`.

    Returns:
        Shape `(..., q_seq, d_v)`.

    Raises:
        TypeError: If the inputs are not of one floating dtype, or the mask is not boolean.
        ValueError: If the cap is not above 0, or is infinite, if the shapes do not fit together, or
            if the mask fits the scores in two ways.

    Examples:
        >>> query, key = torch.tensor([[100.0]]), torch.tensor([[1.0], [-1.0]])
        >>> value = torch.eye(2)
        >>> soft_capped_attention(query, key, value, cap=1.0)  # of the capped scores 1 and -1
        tensor([[0.8808, 0.1192]])
        >>> soft_capped_attention(query, key, value, cap=1e4)
        tensor([[1., 0.]])
    """
    require_attention_inputs(query=query, key=key, value=value)
    if not 0 < cap < math.inf:
        raise ValueError(
            f"cap must be greater than 0 and finite, got {cap}; for attention without one call "
            "scaled_dot_product_attention"
        )
    scaled = at_least_float32(query) / math.sqrt(query.shape[-1])  # products overflow later
    scores = scaled @ at_least_float32(key).transpose(-2, -1)
    scores = cap * torch.tanh(scores / cap)
    if mask is None:
        weights = scores.softmax(dim=-1)
    else:
        require_mask_of_scores(mask, scores)
        dead = ~mask.any(dim=-1, keepdim=True)  # rows of -inf: their softmax is NaN
        weights = scores.masked_fill(~(mask | dead), -math.inf).softmax(dim=-1)
        weights = weights.masked_fill(dead, 0.0)
    return (weights @ at_least_float32(value)).to(query.dtype)
