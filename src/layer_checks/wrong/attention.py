"""Known wrong versions of `attention_weights` and `scaled_dot_product_attention`."""

import math

import torch
from torch import Tensor
from torch.nn import functional

from layer_checks.checks.attention import attention_weights, scaled_dot_product_attention
from layer_checks.kit.definitions import Candidate
from transformer_layers.precision import at_least_float32


@attention_weights.right_otherwise
def right_weights(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """A right one, for wrong versions that err elsewhere."""
    return _masked_softmax(_scaled_scores(query, key), mask).to(query.dtype)


def _scores(query: Tensor, key: Tensor) -> Tensor:
    return at_least_float32(query) @ at_least_float32(key).transpose(-2, -1)


def _scaled_scores(query: Tensor, key: Tensor) -> Tensor:
    return _scores(query, key) / math.sqrt(query.shape[-1])


def _require_boolean(mask: Tensor) -> None:
    if mask.dtype != torch.bool:
        raise TypeError(f"mask must be boolean, got {mask.dtype}")


def _masked_softmax(scores: Tensor, mask: Tensor | None, dim: int = -1) -> Tensor:
    if mask is None:
        return scores.softmax(dim)
    _require_boolean(mask)
    dead = ~mask.any(dim=-1, keepdim=True)
    return scores.masked_fill(~(mask | dead), -math.inf).softmax(dim).masked_fill(dead, 0.0)


def _attention_with(weights: Candidate) -> Candidate:
    def attention(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        dropout_p: float = 0.0,
    ) -> Tensor:
        return functional.dropout(weights(query, key, mask), dropout_p) @ value

    attention.__name__ = attention.__qualname__ = weights.__name__
    attention.__doc__ = weights.__doc__
    return attention


@attention_weights.wrong(
    "divide the products by √d_k, or the softmax saturates as d_k grows.",
    published="the GPT-2 notes, Attention, whose scale is False by default",
)
def not_scaled(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """Takes the products as they are."""
    return _masked_softmax(_scores(query, key), mask).to(query.dtype)


@attention_weights.wrong("divide by the root of d_k.", name="divided by d_k")
def divided_by_d_k(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """Divides by d_k itself."""
    return _masked_softmax(_scores(query, key) / query.shape[-1], mask).to(query.dtype)


@attention_weights.wrong("d_k is the last axis of the query, not the number of keys.")
def root_of_the_wrong_axis(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """Takes the wrong axis for d_k."""
    return _masked_softmax(_scores(query, key) / math.sqrt(key.shape[-2]), mask).to(query.dtype)


@attention_weights.wrong(
    "take the root with math.sqrt: a float32 tensor rounds it.",
    published="the notes' post, ScaledDotProductAttention",
)
def root_in_float32(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """Divides by a root that is rounded to float32, as the notes do."""
    root = float(torch.sqrt(torch.tensor(query.shape[-1], dtype=torch.float32)))
    return _masked_softmax(_scores(query, key) / root, mask).to(query.dtype)


@attention_weights.wrong("take the softmax over the last axis, the keys: each row sums to 1.")
def softmax_over_the_queries(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """Normalizes each column."""
    return _masked_softmax(_scaled_scores(query, key), mask, dim=-2).nan_to_num().to(query.dtype)


@attention_weights.wrong(
    "mask the scores before the softmax, so that the rest of the row sums to 1."
)
def mask_after_the_softmax(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """Sets weights to 0 that the sum of 1 includes."""
    weights = _masked_softmax(_scaled_scores(query, key), None)
    if mask is not None:
        _require_boolean(mask)
        weights = weights.masked_fill(~mask, 0.0)
    return weights.to(query.dtype)


@attention_weights.wrong(
    "let True mean that a query may attend; nn.MultiheadAttention means the opposite.",
    name="True is blocked",
)
def true_is_blocked(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """Means the opposite by a mask."""
    if mask is None:
        return right_weights(query, key)
    _require_boolean(mask)
    return right_weights(query, key, ~mask)


@attention_weights.wrong(
    "set blocked scores to -inf: adding a boolean mask adds 1 and hides nothing.",
    published="the GPT-2 notes, Attention, _attn",
)
def mask_added(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """Adds 1 to the scores that are allowed, as the notes would."""
    scores = _scaled_scores(query, key)
    return (scores if mask is None else scores + mask.to(scores.dtype)).softmax(-1).to(query.dtype)


@attention_weights.wrong(
    "set blocked scores to -inf: real scores can fall below any number.",
    name="-10,000 for -inf",
    published="transformers, models/gpt2/modeling_gpt2.py of 2022 (masked_bias), "
    "https://github.com/karpathy/minGPT/issues/75",
)
def minus_ten_thousand(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """Gives blocked keys a score of -10,000, which a real score can fall below."""
    scores = _scaled_scores(query, key)
    if mask is not None:
        _require_boolean(mask)
        dead = ~mask.any(dim=-1, keepdim=True)
        return scores.masked_fill(~mask, -1e4).softmax(-1).masked_fill(dead, 0.0).to(query.dtype)
    return scores.softmax(-1).to(query.dtype)


@attention_weights.wrong(
    "set blocked scores to -inf: multiplied by the mask they are 0, which can be far above all "
    "allowed ones.",
    published="allennlp 2.10.1, allennlp/nn/util.py, masked_softmax",
)
def masked_softmax_over_zeros(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """Multiplies scores by the mask, takes the softmax, and divides what is left by its sum."""
    scores = _scaled_scores(query, key)
    if mask is None:
        return scores.softmax(-1).to(query.dtype)
    _require_boolean(mask)
    weights = (scores * mask).softmax(-1) * mask
    return (weights / (weights.sum(-1, keepdim=True) + 1e-13)).to(query.dtype)


@attention_weights.wrong(
    "subtract the largest score before exp, or call softmax: exp(800) is infinite.",
    name="exp without the maximum",
)
def bare_exp(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """Divides exp by its sum."""
    exp = _scaled_scores(query, key).exp()
    if mask is not None:
        _require_boolean(mask)
        exp = exp.masked_fill(~mask, 0.0)
    total = exp.sum(-1, keepdim=True)
    return (exp / total.masked_fill(total == 0, 1.0)).to(query.dtype)


@attention_weights.wrong(
    "set blocked scores to -inf: float16 has no number as small as -1e9.",
    name="-1e9 for -inf",
    published="the Annotated Transformer, the_annotated_transformer.py",
)
def minus_a_billion(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """Gives blocked keys a score of -1e9 in the input's dtype, of which float16 has none."""
    scores = query / math.sqrt(query.shape[-1]) @ key.transpose(-2, -1)
    if mask is not None:
        _require_boolean(mask)
        dead = ~mask.any(dim=-1, keepdim=True)
        return scores.masked_fill(~mask, -1e9).softmax(-1).masked_fill(dead, 0.0)
    return scores.softmax(-1)


@attention_weights.wrong(
    "give a row that may attend to nothing the weights 0: with a finite number for -inf it "
    "attends to what is blocked.",
    published="the Annotated Transformer, the_annotated_transformer.py, with -1e9",
)
def empty_rows_attend_to_all(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """Gives blocked keys the least finite score, so that an empty row attends to all of them."""
    scores = _scaled_scores(query, key)
    if mask is not None:
        _require_boolean(mask)
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores.softmax(-1).to(query.dtype)


@attention_weights.wrong(
    "give a row that may attend to nothing the weights 0: the softmax of -inf alone is NaN.",
    name="NaN in empty rows",
    published="the notes' post, ScaledDotProductAttention",
)
def nan_in_empty_rows(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """Takes the softmax of nothing but -inf, as the notes do."""
    scores = _scaled_scores(query, key)
    if mask is not None:
        _require_boolean(mask)
        scores = scores.masked_fill(~mask, -math.inf)
    return scores.softmax(-1).to(query.dtype)


@attention_weights.wrong(
    "refuse a mask that is not boolean: 0 means blocked to some and allowed to others.",
    published="the notes' post, ScaledDotProductAttention",
)
def mask_of_numbers(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """Takes a mask of numbers and blocks where it is 0, which is where others allow."""
    return right_weights(query, key, None if mask is None else mask != 0)


@attention_weights.wrong(
    "divide the query before the product, or compute in float32: 40·40·64 is infinite in float16.",
    published="the notes' post, ScaledDotProductAttention",
)
def scaled_after_the_product(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """Multiplies in float16, where the products overflow before they are divided."""
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    return _masked_softmax(scores, mask).to(query.dtype)


@attention_weights.wrong("convert bfloat16 to float32 as well: a score of 20 is off by up to 0.06.")
def softmax_in_bfloat16(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """Widens float16 alone."""
    if query.dtype != torch.bfloat16:
        return right_weights(query, key, mask)
    return _masked_softmax(query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1]), mask)


scaled_dot_product_attention.right_otherwise(_attention_with(right_weights))
for version in attention_weights.wrong_versions:
    scaled_dot_product_attention.same_mistake(version, _attention_with(version.layer))


@scaled_dot_product_attention.wrong("drop weights with probability dropout_p.")
def dropout_ignored(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    dropout_p: float = 0.0,
) -> Tensor:
    """Drops nothing."""
    return right_weights(query, key, mask) @ value


@scaled_dot_product_attention.wrong("drop weights, each by itself, not rows of the output.")
def rows_dropped(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    dropout_p: float = 0.0,
) -> Tensor:
    """Drops whole rows of the result in place of weights."""
    output = right_weights(query, key, mask) @ value
    return output * functional.dropout(output.new_ones(*output.shape[:-1], 1), dropout_p)


@scaled_dot_product_attention.wrong("drop weights before they meet the values, not the output.")
def output_dropped(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    dropout_p: float = 0.0,
) -> Tensor:
    """Drops features of the result in place of weights."""
    return functional.dropout(right_weights(query, key, mask) @ value, dropout_p)


@scaled_dot_product_attention.wrong("multiply the weights by the values.")
def keys_for_values(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    dropout_p: float = 0.0,
) -> Tensor:
    """Averages the keys."""
    return functional.dropout(right_weights(query, key, mask), dropout_p) @ key
