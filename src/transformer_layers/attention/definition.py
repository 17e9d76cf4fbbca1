"""Scaled dot-product attention, written out in elementary operations."""

import math

from jaxtyping import Bool, Float
from torch import Tensor

from transformer_layers.attention.inputs import require_attention_inputs, require_mask_of_scores
from transformer_layers.precision import at_least_float32
from transformer_layers.regularization.dropout import dropout
from transformer_layers.validation import require_probability


def attention_weights(
    query: Float[Tensor, "... q_seq d_k"],
    key: Float[Tensor, "... kv_seq d_k"],
    mask: Bool[Tensor, "..."] | None = None,
) -> Float[Tensor, "... q_seq kv_seq"]:
    r"""How much each query attends to each key, the left factor of scaled dot-product attention.

    Section 3.2.1 of https://arxiv.org/abs/1706.03762.

    .. math::
        A = \mathrm{softmax}\left(\frac{Q K^\top}{\sqrt{d_k}}\right)

    The softmax runs over the last axis, the keys. Where the mask is False the score is
    :math:`-\infty` and the weight 0. A row that may attend to nothing is all zeros, and so is its
    gradient. float16 and bfloat16 are computed in float32 and rounded once, at the end.

    Args:
        query: Shape `(..., q_seq, d_k)`.
        key: Shape `(..., kv_seq, d_k)`; the leading axes broadcast with those of `query`.
        mask: Boolean, True = may attend; two axes `(q_seq, kv_seq)` or more, which broadcast to
            the scores without enlarging them.

    Returns:
        Shape `(..., q_seq, kv_seq)`; each row sums to 1, or to 0 if it may attend to nothing.

    Raises:
        TypeError: If the inputs are not of one floating dtype, or the mask is not boolean.
        ValueError: If the shapes do not fit together, or those of the mask can be read in two ways.

    Examples:
        >>> import torch
        >>> query = torch.tensor([[0.0, 0.0], [2.0, 0.0]])
        >>> key = torch.tensor([[1.0, 5.0], [0.0, 7.0]])
        >>> attention_weights(query, key)
        tensor([[0.5000, 0.5000],
                [0.8044, 0.1956]])
        >>> attention_weights(query, key, mask=torch.tensor([[False, False], [True, False]]))
        tensor([[0., 0.],
                [1., 0.]])
    """
    require_attention_inputs(query=query, key=key)
    d_k = query.shape[-1]
    scaled = at_least_float32(query) / math.sqrt(d_k)  # products overflow later
    scores = scaled @ at_least_float32(key).transpose(-2, -1)
    if mask is None:
        return scores.softmax(dim=-1).to(query.dtype)
    require_mask_of_scores(mask, scores)
    dead = ~mask.any(dim=-1, keepdim=True)  # rows of -inf: their softmax is NaN
    weights = scores.masked_fill(~(mask | dead), -math.inf).softmax(dim=-1)
    return weights.masked_fill(dead, 0.0).to(query.dtype)


def scaled_dot_product_attention(
    query: Float[Tensor, "... q_seq d_k"],
    key: Float[Tensor, "... kv_seq d_k"],
    value: Float[Tensor, "... kv_seq d_v"],
    mask: Bool[Tensor, "..."] | None = None,
    dropout_p: float = 0.0,
) -> Float[Tensor, "... q_seq d_v"]:
    r"""Scaled dot-product attention, equation 1 of https://arxiv.org/abs/1706.03762.

    .. math::
        \mathrm{Attention}(Q, K, V) = \mathrm{softmax}\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V

    Each output row is a mean of the rows of `value`, weighted by :func:`attention_weights`. A query
    that may attend to nothing gives 0, with gradient 0. A NaN or an infinity in `value` reaches the
    output of every query, also of those that may not attend to it: 0 times either is NaN.

    float16 and bfloat16 are computed in float32 and rounded once, at the end. The matrix of weights
    is built, so memory grows with `q_seq * kv_seq`; torch's fused kernels of the same name compute
    the same function without it.

    Args:
        query: Shape `(..., q_seq, d_k)`.
        key: Shape `(..., kv_seq, d_k)`; the leading axes broadcast with those of the others.
        value: Shape `(..., kv_seq, d_v)`.
        mask: See :func:`attention_weights`.
        dropout_p: Share of the weights to drop. It acts whenever it is not 0: pass it only in
            training.

    Returns:
        Shape `(..., q_seq, d_v)`.

    Raises:
        TypeError: As :func:`attention_weights`.
        ValueError: As :func:`attention_weights`, and if `dropout_p` is not within [0, 1].

    Examples:
        >>> import torch
        >>> query = torch.tensor([[0.0, 0.0], [2.0, 0.0]])
        >>> key = torch.tensor([[1.0, 5.0], [0.0, 7.0]])
        >>> value = torch.tensor([[10.0, 0.0, 1.0], [20.0, 0.0, 1.0]])
        >>> scaled_dot_product_attention(query, key, value)
        tensor([[15.0000,  0.0000,  1.0000],
                [11.9557,  0.0000,  1.0000]])
    """
    require_attention_inputs(query=query, key=key, value=value)
    require_probability("dropout_p", dropout_p)
    weights = attention_weights(at_least_float32(query), at_least_float32(key), mask)
    output = dropout(weights, dropout_p) @ at_least_float32(value)
    return output.to(query.dtype)
