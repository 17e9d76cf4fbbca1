"""Wrong versions of the masks, and of attention by its definition."""

import functools
import math

import torch
from torch import Tensor

from evaluation.held_out.definitions import held_out
from transformer_layers.attention.definition import (
    attention_weights,
    scaled_dot_product_attention,
)
from transformer_layers.attention.inputs import require_attention_inputs, require_mask_of_scores
from transformer_layers.attention.masks import causal_mask
from transformer_layers.precision import at_least_float32
from transformer_layers.regularization.dropout import dropout
from transformer_layers.validation import require_probability, require_size


@functools.cache
def _stored(seq: int, past: int, device: torch.device) -> Tensor:
    return torch.ones(seq, past + seq, dtype=torch.bool, device=device).tril(past)


@held_out(
    "causal_mask",
    "huggingface/transformers, pull 40007",
    r"cache|share|alias|same tensor|in place|second call|fresh|modif",
)
def causal_mask_from_a_store(
    seq: int, past: int = 0, *, device: torch.device | str | None = None
) -> Tensor:
    """Hands out the tensor of an earlier call, with what its receiver has written into it."""
    require_size("seq", seq, minimum=0)
    require_size("past", past, minimum=0)
    return _stored(
        seq, past, torch.get_default_device() if device is None else torch.device(device)
    )


@held_out("causal_mask", "review practice", r"empty|no quer|zero|seq(uence)? (of|=) 0|shape")
def causal_mask_of_the_last_rows(
    seq: int, past: int = 0, *, device: torch.device | str | None = None
) -> Tensor:
    """Cuts the rows from -seq on out of a square, which for no queries are all of its rows."""
    require_size("seq", seq, minimum=0)
    require_size("past", past, minimum=0)
    total = past + seq
    return torch.ones(total, total, dtype=torch.bool, device=device).tril()[-seq:]


@held_out("sliding_window_mask", "trymirai/lalamo, pull 200", r"past|cache|offset|earlier|before")
def window_mask_by_suffix_rows(
    seq: int, window: int, past: int = 0, *, device: torch.device | str | None = None
) -> Tensor:
    """Counts the window by the numbers of the queries, without the positions before them."""
    require_size("window", window)
    return causal_mask(seq, past, device=device).triu(1 - window)


@held_out(
    "sliding_window_mask",
    "rajveer43/VeloxQuant-MLX, pull 463",
    r"single|one (query|position|token)|step|decod|seq(uence)? of 1|past|cache",
)
def window_mask_without_a_step_window(
    seq: int, window: int, past: int = 0, *, device: torch.device | str | None = None
) -> Tensor:
    """Lets a single query see all keys, as if the window were only for many queries."""
    require_size("window", window)
    causal = causal_mask(seq, past, device=device)
    return causal if seq == 1 else causal.triu(past - window + 1)


def _require_lengths(lengths: Tensor, seq: int) -> None:
    require_size("seq", seq, minimum=0)
    if lengths.dtype == torch.bool or lengths.is_floating_point() or lengths.is_complex():
        raise TypeError(f"lengths must be integers, got {lengths.dtype}")
    if lengths.ndim != 1:
        raise ValueError(f"lengths must have shape (batch,), got {tuple(lengths.shape)}")
    has_values = not torch.compiler.is_compiling() and not lengths.is_meta
    if has_values and ((lengths < 0) | (lengths > seq)).any():
        raise ValueError(f"lengths must lie between 0 and {seq}, got {lengths.tolist()}")


@held_out("padding_mask", "review practice", r"empty|zero|length 0|no (real )?token|nothing")
def padding_mask_never_empty(lengths: Tensor, seq: int) -> Tensor:
    """Counts at least one token, so that an empty sequence may attend to its padding."""
    _require_lengths(lengths, seq)
    return torch.arange(seq, device=lengths.device) < lengths[:, None, None].clamp(min=1)


@held_out("padding_mask", "review practice", r"full|last (token|position)|whole|longest|length of")
def padding_mask_from_marked_ends(lengths: Tensor, seq: int) -> Tensor:
    """Marks where padding begins, at the last place at most, which full sequences then lose."""
    _require_lengths(lengths, seq)
    marks = torch.zeros(len(lengths), seq, dtype=torch.int64, device=lengths.device)
    if seq > 0:
        marks.scatter_(1, lengths.long().clamp(max=seq - 1)[:, None], 1)
    return (marks.cumsum(dim=-1) == 0)[:, None]


def _scores(query: Tensor, key: Tensor) -> Tensor:
    scaled = at_least_float32(query) / math.sqrt(query.shape[-1])
    return scaled @ at_least_float32(key).transpose(-2, -1)


@held_out(
    "attention_weights",
    "review practice",
    r"maximum|underflow|far|spread|large|row.*apart|overflow|stab",
)
def weights_below_one_maximum(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """Subtracts the largest score of all rows, so that rows far below it become zeros."""
    require_attention_inputs(query=query, key=key)
    scores = _scores(query, key)
    if mask is not None:
        require_mask_of_scores(mask, scores)
    if scores.numel() == 0:
        return scores.to(query.dtype)
    powers = (scores - scores.amax().detach()).exp()
    if mask is not None:
        powers = powers.masked_fill(~mask, 0.0)
    total = powers.sum(dim=-1, keepdim=True)
    return (powers / total.masked_fill(total == 0, 1.0)).to(query.dtype)


@held_out(
    "attention_weights", "pytorch/pytorch, issue 41508", r"nan|gradient|nothing|dead|fully masked"
)
def weights_cleared_of_nan(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """Turns the NaN of rows that may attend to nothing into zeros, but not that of the gradient."""
    require_attention_inputs(query=query, key=key)
    scores = _scores(query, key)
    if mask is None:
        return scores.softmax(dim=-1).to(query.dtype)
    require_mask_of_scores(mask, scores)
    bias = torch.zeros_like(mask, dtype=scores.dtype).masked_fill(~mask, -math.inf)
    weights = (scores + bias).softmax(dim=-1)
    dead = ~mask.any(dim=-1, keepdim=True)
    return torch.where(dead, weights.nan_to_num(), weights).to(query.dtype)


@held_out(
    "attention_weights", "review practice", r"float16|bfloat16|half|low precision|round|dtype"
)
def weights_of_rounded_scores(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """Rounds the scores to the inputs' dtype before the softmax, in bfloat16 to three digits."""
    require_attention_inputs(query=query, key=key)
    scores = at_least_float32(_scores(query, key).to(query.dtype))
    if mask is None:
        return scores.softmax(dim=-1).to(query.dtype)
    require_mask_of_scores(mask, scores)
    dead = ~mask.any(dim=-1, keepdim=True)
    weights = scores.masked_fill(~(mask | dead), -math.inf).softmax(dim=-1)
    return weights.masked_fill(dead, 0.0).to(query.dtype)


def _require_attention(query: Tensor, key: Tensor, value: Tensor, dropout_p: float) -> None:
    require_attention_inputs(query=query, key=key, value=value)
    require_probability("dropout_p", dropout_p)


@held_out(
    "scaled_dot_product_attention",
    "Dao-AILab/flash-attention, issue 2082",
    r"block|maximum|underflow|masked|far below|negative|long|stab",
)
def attention_by_blocks_from_zero(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    dropout_p: float = 0.0,
) -> Tensor:
    """Takes 0 for the largest score of a block with nothing allowed, and keeps it afterwards."""
    _require_attention(query, key, value, dropout_p)
    scores, wide = _scores(query, key), at_least_float32(value)
    if mask is not None:
        require_mask_of_scores(mask, scores)
        scores = scores.masked_fill(~mask, -math.inf)
    largest = scores.detach().new_full((*scores.shape[:-1], 1), -math.inf)
    leading = torch.broadcast_shapes(scores.shape[:-2], wide.shape[:-2])
    total, output = (
        torch.zeros_like(largest),
        wide.new_zeros(*leading, query.shape[-2], value.shape[-1]),
    )
    for start in range(0, key.shape[-2], 64):
        block = scores[..., start : start + 64]
        grown = torch.maximum(largest, block.detach().amax(dim=-1, keepdim=True))
        grown = grown.masked_fill(grown == -math.inf, 0.0)
        powers, kept = (block - grown).exp(), (largest - grown).exp()
        total = total * kept + powers.sum(dim=-1, keepdim=True)
        output = output * kept + dropout(powers, dropout_p) @ wide[..., start : start + 64, :]
        largest = grown
    return (output / total.masked_fill(total == 0, 1.0)).to(query.dtype)


@held_out(
    "scaled_dot_product_attention",
    "review practice",
    r"128|tile|rest|long|last (rows|queries)|remain",
)
def attention_of_whole_tiles(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    dropout_p: float = 0.0,
) -> Tensor:
    """Goes through the queries by whole tiles of 128, and leaves zeros for what remains."""
    _require_attention(query, key, value, dropout_p)
    seq = query.shape[-2]
    if seq <= 128:
        return scaled_dot_product_attention(query, key, value, mask, dropout_p)
    if mask is not None:
        require_mask_of_scores(mask, _scores(query, key))
    tiles = []
    for start in range(0, seq // 128 * 128, 128):
        rows = slice(start, start + 128)
        shown = mask if mask is None or mask.shape[-2] == 1 else mask[..., rows, :]
        tile = query[..., rows, :]
        tiles.append(scaled_dot_product_attention(tile, key, value, shown, dropout_p))
    rest = tiles[0].new_zeros(*tiles[0].shape[:-2], seq % 128, value.shape[-1])
    return torch.cat([*tiles, rest], dim=-2)


@held_out(
    "scaled_dot_product_attention", "review practice", r"broadcast|leading|expand|batch|axes|shape"
)
def attention_in_room_of_the_query(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    dropout_p: float = 0.0,
) -> Tensor:
    """Writes into room with the leading axes of the query, which keys may have more of."""
    _require_attention(query, key, value, dropout_p)
    weights = attention_weights(at_least_float32(query), at_least_float32(key), mask)
    output = query.new_empty(*query.shape[:-1], value.shape[-1])
    output.copy_(dropout(weights, dropout_p) @ at_least_float32(value))
    return output
