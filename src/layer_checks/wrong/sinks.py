"""Known wrong versions of `sink_attention`."""

import math

import torch
from torch import Tensor

from layer_checks.checks.sinks import sink_attention
from transformer_layers.precision import at_least_float32


@sink_attention.right_otherwise
def right_sinks(
    query: Tensor, key: Tensor, value: Tensor, sinks: Tensor, mask: Tensor | None = None
) -> Tensor:
    """A right one, for wrong versions that err elsewhere."""
    _require_sinks(query, sinks)
    sink = at_least_float32(sinks)[:, None, None]
    return _with_a_column(_scores(query, key, mask), sink, value).to(query.dtype)


def _require_sinks(query: Tensor, sinks: Tensor) -> None:
    if query.ndim < 3 or sinks.shape != query.shape[-3:-2]:
        raise ValueError(f"one sink for each head, got {sinks.shape} for {query.shape}")


def _scores(query: Tensor, key: Tensor, mask: Tensor | None) -> Tensor:
    scaled = at_least_float32(query) / math.sqrt(query.shape[-1])
    scores = scaled @ at_least_float32(key).transpose(-2, -1)
    if mask is None:
        return scores
    if mask.dtype != torch.bool:
        raise TypeError(f"mask must be boolean, got {mask.dtype}")
    return scores.masked_fill(~mask, -math.inf)


def _weights(scores: Tensor, sink: Tensor) -> Tensor:
    """Of the keys, and in the last column of the sink."""
    return torch.cat([scores, sink.expand(*scores.shape[:-1], 1)], dim=-1).softmax(dim=-1)


def _with_a_column(scores: Tensor, sink: Tensor, value: Tensor) -> Tensor:
    return _weights(scores, sink)[..., :-1] @ at_least_float32(value)


@sink_attention.wrong(
    "do not divide by the sum of what is left: the sink takes weight away.",
    name="sink normalized away",
)
def normalized_away(
    query: Tensor, key: Tensor, value: Tensor, sinks: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Makes the rows sum to 1 again, and has attention without sinks."""
    _require_sinks(query, sinks)
    weights = _weights(_scores(query, key, mask), at_least_float32(sinks)[:, None, None])[..., :-1]
    total = weights.sum(dim=-1, keepdim=True)
    weights = weights / total.masked_fill(total == 0, 1.0)
    return (weights @ at_least_float32(value)).to(query.dtype)


@sink_attention.wrong("give the sink no value: its share of the weight is lost.")
def sink_with_a_value(
    query: Tensor, key: Tensor, value: Tensor, sinks: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Hands the weight of the sink to the first key."""
    _require_sinks(query, sinks)
    weights = _weights(_scores(query, key, mask), at_least_float32(sinks)[:, None, None])
    first = weights[..., -1:] * at_least_float32(value)[..., :1, :]
    if mask is not None:
        first = first.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)
    return (weights[..., :-1] @ at_least_float32(value) + first).to(query.dtype)


@sink_attention.wrong("a larger sink takes more weight: do not change its sign.")
def sink_subtracted(
    query: Tensor, key: Tensor, value: Tensor, sinks: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Takes the opposite of each sink."""
    return right_sinks(query, key, value, -sinks, mask)


@sink_attention.wrong("divide the products by √d_k, not the sink, which is a score already.")
def sink_before_the_scale(
    query: Tensor, key: Tensor, value: Tensor, sinks: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Scales the sinks with the products."""
    return right_sinks(query, key, value, sinks / math.sqrt(query.shape[-1]), mask)


@sink_attention.wrong("give each head its own sink.", name="one sink for all heads")
def one_for_all(
    query: Tensor, key: Tensor, value: Tensor, sinks: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Has the mean of the sinks in every head."""
    _require_sinks(query, sinks)
    return right_sinks(query, key, value, sinks.mean().expand_as(sinks), mask)


@sink_attention.wrong("add e to the power of the sink to the sum, not the sink.")
def sink_without_exp(
    query: Tensor, key: Tensor, value: Tensor, sinks: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Adds the sink to the denominator as it is, or nothing if it is below 0."""
    _require_sinks(query, sinks)
    logs = at_least_float32(sinks).clamp(min=1e-30).log()[:, None, None]
    return _with_a_column(_scores(query, key, mask), logs, value).to(query.dtype)


@sink_attention.wrong("let the sinks learn: no detach, .data or .item().", name="sinks detached")
def sinks_detached(
    query: Tensor, key: Tensor, value: Tensor, sinks: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Has the value, and no gradient of the sinks."""
    return right_sinks(query, key, value, sinks.detach() + 0 * sinks, mask)


@sink_attention.wrong(
    "subtract the largest of scores and sink before exp, or call softmax: exp(800) is infinite.",
    name="exp without the maximum",
    published="https://github.com/PaddlePaddle/PaddleFleet/pull/1439",
)
def bare_exp(
    query: Tensor, key: Tensor, value: Tensor, sinks: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Divides exp by its sum and the sink's."""
    _require_sinks(query, sinks)
    exp = _scores(query, key, mask).exp()
    total = exp.sum(dim=-1, keepdim=True) + at_least_float32(sinks)[:, None, None].exp()
    return (exp / total @ at_least_float32(value)).to(query.dtype)


@sink_attention.wrong(
    "give a query that may attend to nothing 0: the softmax of -inf alone is NaN, and NaN times 0 "
    "is, too.",
    name="NaN in empty rows",
)
def nan_in_empty_rows(
    query: Tensor, key: Tensor, value: Tensor, sinks: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Multiplies attention without a sink by the share that the sink leaves."""
    _require_sinks(query, sinks)
    scores = _scores(query, key, mask)
    lse = scores.logsumexp(dim=-1, keepdim=True)
    share = torch.sigmoid(lse - at_least_float32(sinks)[:, None, None])
    return (share * (scores.softmax(dim=-1) @ at_least_float32(value))).to(query.dtype)


@sink_attention.wrong("convert bfloat16 to float32 as well: a score of 20 is off by up to 0.06.")
def softmax_in_bfloat16(
    query: Tensor, key: Tensor, value: Tensor, sinks: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Widens float16 alone."""
    if query.dtype != torch.bfloat16:
        return right_sinks(query, key, value, sinks, mask)
    _require_sinks(query, sinks)
    scores = _scores(query, key, mask).bfloat16()
    return _weights(scores, sinks[:, None, None])[..., :-1] @ value


@sink_attention.wrong(
    "refuse a mask that is not boolean: 0 means blocked to some and allowed to others."
)
def mask_of_numbers(
    query: Tensor, key: Tensor, value: Tensor, sinks: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Takes a mask of numbers and blocks where it is 0, which is where others allow."""
    return right_sinks(query, key, value, sinks, None if mask is None else mask != 0)


@sink_attention.wrong("refuse sinks that are not one for each head: one for all broadcasts.")
def sinks_broadcast(
    query: Tensor, key: Tensor, value: Tensor, sinks: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Takes a single sink for all heads."""
    sink = at_least_float32(sinks)[:, None, None]
    return _with_a_column(_scores(query, key, mask), sink, value).to(query.dtype)
