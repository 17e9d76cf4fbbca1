"""Known wrong versions of `causal_mask`, `sliding_window_mask` and `padding_mask`."""

import math

import torch
from torch import Tensor

from layer_checks.checks.masks import causal_mask, padding_mask, sliding_window_mask


def _square(rows: int, columns: int, diagonal: int) -> Tensor:
    return torch.ones(rows, columns, dtype=torch.bool).tril(diagonal)


@padding_mask.right_otherwise
def _real(lengths: Tensor, seq: int) -> Tensor:
    return torch.arange(seq, device=lengths.device) < lengths[:, None, None]


@causal_mask.wrong(
    "let True mean that a query may attend; nn.Transformer's masks mean the opposite: write ~.",
    name="True is blocked",
)
def true_is_blocked(seq: int, past: int = 0) -> Tensor:
    """Means the opposite."""
    return ~_square(seq, past + seq, past)


@causal_mask.wrong("let rows be queries: row i allows the columns up to i (tril, not triu).")
def transposed(seq: int, past: int = 0) -> Tensor:
    """Lets each position see itself and what follows."""
    return torch.ones(seq, past + seq, dtype=torch.bool).triu(past)


@causal_mask.wrong("let each position attend to itself.")
def diagonal_hidden(seq: int, past: int = 0) -> Tensor:
    """Hides each position from itself."""
    return _square(seq, past + seq, past - 1)


@causal_mask.wrong("let no position attend to the next one.")
def one_ahead(seq: int, past: int = 0) -> Tensor:
    """Lets each position see the next one."""
    return _square(seq, past + seq, past + 1)


@causal_mask.wrong(
    "with a past, the last query must see every key: shift the diagonal by `past`.",
    published="torch, is_causal=True of scaled_dot_product_attention with fewer queries than keys",
)
def aligned_at_the_top_left(seq: int, past: int = 0) -> Tensor:
    """Counts from the first key, as is_causal=True does in torch."""
    return _square(seq, past + seq, 0)


@causal_mask.wrong("add one column for each position of the past.")
def past_left_out(seq: int, past: int = 0) -> Tensor:
    """Has no columns for the past."""
    return _square(seq, seq, 0)


@causal_mask.wrong("cut the queries out of the square by rows: its last `seq` rows, all columns.")
def cut_by_columns(seq: int, past: int = 0) -> Tensor:
    """Cuts the last columns out of the square of all positions."""
    return _square(past + seq, past + seq, 0)[:seq, -seq:]


@causal_mask.wrong("return booleans, not 0 and -inf.")
def to_be_added(seq: int, past: int = 0) -> Tensor:
    """Holds 0 and -inf."""
    allowed = _square(seq, past + seq, past)
    return torch.zeros(seq, past + seq).masked_fill(~allowed, -math.inf)


@causal_mask.wrong("return booleans: where numbers are added to the scores, 1 and 0 mask nothing.")
def ones_and_zeros(seq: int, past: int = 0) -> Tensor:
    """Holds the numbers 1 and 0."""
    return _square(seq, past + seq, past).float()


@causal_mask.wrong("hide what follows.")
def all_allowed(seq: int, past: int = 0) -> Tensor:
    """Hides nothing."""
    return torch.ones(seq, past + seq, dtype=torch.bool)


@padding_mask.wrong(
    "let True mean a real token; key_padding_mask of nn.MultiheadAttention means the opposite.",
    name="True is padding",
)
def true_is_padding(lengths: Tensor, seq: int) -> Tensor:
    """Means the opposite."""
    return ~_real(lengths, seq)


@padding_mask.wrong("allow the positions below the length: j < length, not j <= length.")
def one_too_many(lengths: Tensor, seq: int) -> Tensor:
    """Lets the first padding token be seen."""
    return torch.arange(seq, device=lengths.device) <= lengths[:, None, None]


@padding_mask.wrong("allow position length - 1 too.")
def one_too_few(lengths: Tensor, seq: int) -> Tensor:
    """Hides the last real token."""
    return torch.arange(seq, device=lengths.device) < lengths[:, None, None] - 1


@padding_mask.wrong(
    "return shape (batch, 1, seq): (batch, seq) is read as (query, key) where batch = seq."
)
def no_axis_for_the_queries(lengths: Tensor, seq: int) -> Tensor:
    """Has shape (batch, seq)."""
    return torch.arange(seq, device=lengths.device) < lengths[:, None]


@padding_mask.wrong("hide keys, not queries: the axis of size 1 is the middle one.")
def queries_masked(lengths: Tensor, seq: int) -> Tensor:
    """Hides queries in place of keys."""
    return _real(lengths, seq).transpose(1, 2)


@padding_mask.wrong("take the padding to be at the end.")
def padding_first(lengths: Tensor, seq: int) -> Tensor:
    """Takes the padding to stand before the tokens."""
    return _real(lengths, seq).flip(-1)


@padding_mask.wrong(
    "count positions in int64: in the dtype of the lengths, int8 ends at 127 and uint8 at 255."
)
def positions_in_the_dtype_of_the_lengths(lengths: Tensor, seq: int) -> Tensor:
    """Counts the positions as the lengths are counted, so that position 256 of uint8 is 0."""
    positions = torch.arange(seq, device=lengths.device).to(lengths.dtype)
    return positions < lengths[:, None, None]


@padding_mask.wrong("make `seq` columns, also where no sequence is that long.")
def as_long_as_the_longest(lengths: Tensor, seq: int) -> Tensor:
    """Has one column for each position of the longest sequence."""
    return _real(lengths, int(lengths.max()))


@padding_mask.wrong("return booleans, not 0 and -inf.", name="to be added")
def padding_to_be_added(lengths: Tensor, seq: int) -> Tensor:
    """Holds 0 and -inf."""
    zeros = torch.zeros(len(lengths), 1, seq, device=lengths.device)
    return zeros.masked_fill(~_real(lengths, seq), -math.inf)


@sliding_window_mask.right_otherwise
def _near(seq: int, window: int, past: int = 0) -> Tensor:
    return _square(seq, past + seq, past).triu(past - window + 1)


@sliding_window_mask.wrong(
    "count the keys with oneself: a window of W has W keys. FlashAttention counts those besides.",
    name="one key more",
    published="https://github.com/huggingface/transformers/issues/39408",
)
def one_key_more(seq: int, window: int, past: int = 0) -> Tensor:
    """Counts the keys besides oneself."""
    return _near(seq, window + 1, past)


@sliding_window_mask.wrong("count the keys with oneself: W, not W - 1.", name="one key less")
def one_key_less(seq: int, window: int, past: int = 0) -> Tensor:
    """Sees one key less, itself where there is no other."""
    return _near(seq, max(window - 1, 1), past)


@sliding_window_mask.wrong("hide what lies before the window.")
def window_ignored(seq: int, window: int, past: int = 0) -> Tensor:
    """Hides what follows, and nothing else."""
    return _square(seq, past + seq, past)


@sliding_window_mask.wrong("hide what follows: the window ends at the query.")
def both_sides(seq: int, window: int, past: int = 0) -> Tensor:
    """Sees as far ahead as back, as Longformer does."""
    return _square(seq, past + seq, past + window - 1).triu(past - window + 1)


@sliding_window_mask.wrong("shift the window by the past.", name="past ignored")
def window_at_the_top_left(seq: int, window: int, past: int = 0) -> Tensor:
    """Counts the window from the first key."""
    return _square(seq, past + seq, past).triu(1 - window)


@sliding_window_mask.wrong("let True mean that a query may attend.", name="True is hidden")
def true_is_hidden(seq: int, window: int, past: int = 0) -> Tensor:
    """Means the opposite."""
    return ~_near(seq, window, past)


@sliding_window_mask.wrong(
    "let the window move with each query: blocks of W are chunked attention.", name="chunks"
)
def chunks(seq: int, window: int, past: int = 0) -> Tensor:
    """Sees what stands in one's own block of W positions."""
    places = torch.arange(past + seq)
    block = places.div(window, rounding_mode="floor")
    return (block[past:, None] == block) & _square(seq, past + seq, past)


@sliding_window_mask.wrong("return booleans, not 0 and -inf.", name="to be added")
def window_to_be_added(seq: int, window: int, past: int = 0) -> Tensor:
    """Holds 0 and -inf."""
    return torch.zeros(seq, past + seq).masked_fill(~_near(seq, window, past), -math.inf)
