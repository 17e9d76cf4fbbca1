"""Known wrong versions of `causal_mask` and `padding_mask`."""

import math

import torch
from torch import Tensor

from layer_checks.definitions import WrongVersion


def _square(rows: int, columns: int, diagonal: int) -> Tensor:
    return torch.ones(rows, columns, dtype=torch.bool).tril(diagonal)


def true_is_blocked(seq: int, past: int = 0) -> Tensor:
    """Means the opposite."""
    return ~_square(seq, past + seq, past)


def transposed(seq: int, past: int = 0) -> Tensor:
    """Lets each position see itself and what follows."""
    return torch.ones(seq, past + seq, dtype=torch.bool).triu(past)


def without_diagonal(seq: int, past: int = 0) -> Tensor:
    """Hides each position from itself."""
    return _square(seq, past + seq, past - 1)


def one_ahead(seq: int, past: int = 0) -> Tensor:
    """Lets each position see the next one."""
    return _square(seq, past + seq, past + 1)


def aligned_top_left(seq: int, past: int = 0) -> Tensor:
    """Counts from the first key, as is_causal=True does in torch."""
    return _square(seq, past + seq, 0)


def past_left_out(seq: int, past: int = 0) -> Tensor:
    """Has no columns for the past."""
    return _square(seq, seq, 0)


def to_be_added(seq: int, past: int = 0) -> Tensor:
    """Holds 0 and -inf."""
    allowed = _square(seq, past + seq, past)
    return torch.zeros(seq, past + seq).masked_fill(~allowed, -math.inf)


def ones_and_zeros(seq: int, past: int = 0) -> Tensor:
    """Holds the numbers 1 and 0."""
    return _square(seq, past + seq, past).float()


def all_allowed(seq: int, past: int = 0) -> Tensor:
    """Hides nothing."""
    return torch.ones(seq, past + seq, dtype=torch.bool)


def _real(lengths: Tensor, seq: int) -> Tensor:
    return torch.arange(seq) < lengths[:, None, None]


def true_is_padding(lengths: Tensor, seq: int) -> Tensor:
    """Means the opposite."""
    return ~_real(lengths, seq)


def one_too_many(lengths: Tensor, seq: int) -> Tensor:
    """Lets the first padding token be seen."""
    return torch.arange(seq) <= lengths[:, None, None]


def one_too_few(lengths: Tensor, seq: int) -> Tensor:
    """Hides the last real token."""
    return torch.arange(seq) < lengths[:, None, None] - 1


def without_query_axis(lengths: Tensor, seq: int) -> Tensor:
    """Has shape (batch, seq)."""
    return torch.arange(seq) < lengths[:, None]


def query_axis_last(lengths: Tensor, seq: int) -> Tensor:
    """Hides queries in place of keys."""
    return _real(lengths, seq).transpose(1, 2)


def padding_first(lengths: Tensor, seq: int) -> Tensor:
    """Takes the padding to stand before the tokens."""
    return _real(lengths, seq).flip(-1)


def as_long_as_the_longest(lengths: Tensor, seq: int) -> Tensor:
    """Has one column for each position of the longest sequence."""
    return _real(lengths, int(lengths.max()))


def padding_to_be_added(lengths: Tensor, seq: int) -> Tensor:
    """Holds 0 and -inf."""
    return torch.zeros(len(lengths), 1, seq).masked_fill(~_real(lengths, seq), -math.inf)


WRONG_CAUSAL_MASKS = (
    WrongVersion(
        "True is blocked",
        "let True mean that a query may attend; nn.Transformer's masks mean the opposite: write ~.",
        true_is_blocked,
    ),
    WrongVersion(
        "transposed",
        "let rows be queries: row i allows the columns up to i (tril, not triu).",
        transposed,
    ),
    WrongVersion("diagonal hidden", "let each position attend to itself.", without_diagonal),
    WrongVersion("one ahead", "let no position attend to the next one.", one_ahead),
    WrongVersion(
        "aligned at the top left",
        "with a past, the last query sees every key: shift the diagonal by `past`.",
        aligned_top_left,
        "torch, is_causal=True of scaled_dot_product_attention with fewer queries than keys",
    ),
    WrongVersion("past left out", "add one column for each position of the past.", past_left_out),
    WrongVersion("to be added", "return booleans, not 0 and -inf.", to_be_added),
    WrongVersion(
        "ones and zeros",
        "return booleans: where numbers are added to the scores, 1 and 0 mask nothing.",
        ones_and_zeros,
    ),
    WrongVersion("all allowed", "hide what follows.", all_allowed),
)

WRONG_PADDING_MASKS = (
    WrongVersion(
        "True is padding",
        "let True mean a real token; key_padding_mask of nn.MultiheadAttention means the opposite.",
        true_is_padding,
    ),
    WrongVersion(
        "one too many",
        "allow the positions below the length: j < length, not j <= length.",
        one_too_many,
    ),
    WrongVersion("one too few", "allow position length - 1 too.", one_too_few),
    WrongVersion(
        "no axis for the queries",
        "return shape (batch, 1, seq): (batch, seq) is read as (query, key) where batch = seq.",
        without_query_axis,
    ),
    WrongVersion(
        "queries masked",
        "hide keys, not queries: the axis of size 1 is the middle one.",
        query_axis_last,
    ),
    WrongVersion("padding first", "take the padding to be at the end.", padding_first),
    WrongVersion(
        "as long as the longest",
        "make `seq` columns, also where no sequence is that long.",
        as_long_as_the_longest,
    ),
    WrongVersion("to be added", "return booleans, not 0 and -inf.", padding_to_be_added),
)
