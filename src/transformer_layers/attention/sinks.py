"""Attention with a sink: a learnt logit for each head that takes weight and gives no value."""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from transformer_layers.attention.inputs import require_attention_inputs, require_mask_of_scores
from transformer_layers.precision import at_least_float32


def sink_attention(
    query: Float[Tensor, "... q_seq d_k"],
    key: Float[Tensor, "... kv_seq d_k"],
    value: Float[Tensor, "... kv_seq d_v"],
    sinks: Float[Tensor, " num_heads"],
    mask: Bool[Tensor, "..."] | None = None,
) -> Float[Tensor, "... q_seq d_v"]:
    r"""Attention in which each head may leave a share of a query's weight unused, as in gpt-oss.

    The softmax of https://arxiv.org/abs/2309.17453, with :math:`e^{s_h}` in the place of its 1, and
    the layer of https://arxiv.org/abs/2508.10925.

    .. math::
        A_{ij} = \frac{e^{z_{ij}}}{e^{s_h} + \sum_k e^{z_{ik}}}, \qquad
        z = \frac{Q K^\top}{\sqrt{d_k}}

    The sink :math:`s_h` of head h is one more column of the scores, which is dropped after the
    softmax. So the weights of a row sum to less than 1: to the sigmoid of
    :math:`\log \sum_k e^{z_{ik}} - s_h`. A query that may attend to nothing leaves all its weight
    to the sink and gives 0. float16 and bfloat16 are computed in float32 and rounded once.

    Args:
        query: Shape `(..., num_heads, q_seq, d_k)`.
        key: Shape `(..., num_heads, kv_seq, d_k)`; the leading axes broadcast with those of the
            others.
        value: Shape `(..., num_heads, kv_seq, d_v)`.
        sinks: A logit for each head, shape `(num_heads,)`, neither masked nor divided by the root
            of d_k.
        mask: See :func:`attention_weights`.

    Returns:
        Shape `(..., num_heads, q_seq, d_v)`.

    Raises:
        TypeError: If the inputs are not of one floating dtype, or the mask is not boolean.
        ValueError: If the shapes do not fit together, if there is not one sink for each head, or if
            the mask fits the scores in two ways.

    Examples:
        >>> query, key = torch.randn(3, 4, 6), torch.randn(3, 5, 6)
        >>> value, sinks = torch.randn(3, 5, 2), torch.tensor([-1.0, 0.0, 2.0])
        >>> output = sink_attention(query, key, value, sinks)

        That is ordinary attention times the share of the weight that the sink does not take:

        >>> from transformer_layers import scaled_dot_product_attention
        >>> lse = (query @ key.mT / 6**0.5).logsumexp(dim=-1, keepdim=True)
        >>> share = torch.sigmoid(lse - sinks[:, None, None])
        >>> expected = share * scaled_dot_product_attention(query, key, value)
        >>> torch.allclose(output, expected, atol=1e-6)
        True
    """
    require_attention_inputs(query=query, key=key, value=value)
    scaled = at_least_float32(query) / math.sqrt(query.shape[-1])  # products overflow later
    scores = scaled @ at_least_float32(key).transpose(-2, -1)
    _require_sinks(sinks, query, scores)
    if mask is not None:
        require_mask_of_scores(mask, scores)
        scores = scores.masked_fill(~mask, -math.inf)
    sink = at_least_float32(sinks)[:, None, None].expand(*scores.shape[:-1], 1)
    weights = torch.cat([scores, sink], dim=-1).softmax(dim=-1)[..., :-1]
    return (weights @ at_least_float32(value)).to(query.dtype)


def _require_sinks(sinks: Tensor, query: Tensor, scores: Tensor) -> None:
    if sinks.dtype != query.dtype:
        raise TypeError(
            f"sinks must have the dtype of query, {query.dtype}, got {sinks.dtype}; convert them "
            f"with sinks.to({query.dtype})"
        )
    if scores.ndim < 3 or tuple(sinks.shape) != (scores.shape[-3],):
        raise ValueError(
            "sinks must be one for each head, of shape (num_heads,), for scores of shape "
            f"(..., num_heads, q_seq, kv_seq); got {tuple(sinks.shape)} for {tuple(scores.shape)}"
        )
