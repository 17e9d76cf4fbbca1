"""Wrong versions of the masks."""

import functools

import torch
from torch import Tensor

from evaluation.held_out.definitions import held_out
from transformer_layers import causal_mask, padding_mask, sliding_window_mask
from transformer_layers.validation import require_size

Device = torch.device | str | None


@held_out("causal_mask", "review practice: strict or not", r"itself|diagonal|own|strict|off by one")
def without_itself(seq: int, past: int = 0, *, device: Device = None) -> Tensor:
    """Lets each position attend to earlier ones only, not to itself."""
    return causal_mask(seq, past, device=device).tril(past - 1)


_kept = functools.lru_cache(causal_mask)


@held_out(
    "causal_mask",
    "review practice: a result that lru_cache keeps",
    r"cache|same|shared|kept|alias|written|in place|state|fresh|new",
)
def one_tensor_for_all_calls(seq: int, past: int = 0, *, device: Device = None) -> Tensor:
    """Gives one tensor to all calls of the same sizes, also after somebody wrote into it."""
    require_size("seq", seq, minimum=0)
    require_size("past", past, minimum=0)
    return _kept(seq, past, device=device)


@held_out(
    "causal_mask",
    "review practice: a triangle of fixed size",
    r"table|long|size|shape|256|end|limit|beyond",
)
def cut_from_a_triangle_of_256(seq: int, past: int = 0, *, device: Device = None) -> Tensor:
    """Cuts the mask from a triangle of 256 positions, which has nothing for later ones."""
    require_size("seq", seq, minimum=0)
    require_size("past", past, minimum=0)
    triangle = causal_mask(256, device=device)
    return triangle[past : past + seq, : past + seq].clone()


@held_out(
    "sliding_window_mask",
    "huggingface/transformers, issue 39408",
    r"off by one|one more|itself|window|besides|too many",
)
def window_beside_itself(seq: int, window: int, past: int = 0, *, device: Device = None) -> Tensor:
    """Counts the window besides the position itself, one key too many."""
    require_size("window", window)
    return sliding_window_mask(seq, window + 1, past, device=device)


@held_out(
    "sliding_window_mask",
    "review practice: a window and a cache",
    r"past|cache|earlier|offset|shift|align",
)
def window_without_the_past(
    seq: int, window: int, past: int = 0, *, device: Device = None
) -> Tensor:
    """Cuts at the diagonal of no past, so that a cache is seen farther than the window."""
    require_size("window", window)
    return causal_mask(seq, past, device=device).triu(1 - window)


@held_out(
    "sliding_window_mask",
    "huggingface/transformers, pull request 41228",
    r"past|cache|clamp|window|short|larger|longer|queries",
)
def window_no_longer_than_the_queries(
    seq: int, window: int, past: int = 0, *, device: Device = None
) -> Tensor:
    """Shortens the window to the number of queries, also where there are more keys."""
    require_size("window", window)
    return sliding_window_mask(seq, min(window, max(seq, 1)), past, device=device)


@held_out(
    "padding_mask",
    "huggingface/transformers, issue 29419",
    r"left|begin|front|side|end|right",
)
def padding_at_the_left(lengths: Tensor, seq: int) -> Tensor:
    """Takes the padding to be at the beginning."""
    return padding_mask(lengths, seq).flip(-1)


@held_out(
    "padding_mask",
    "review practice: a subtraction of unsigned integers",
    r"uint8|unsigned|underflow|overflow|dtype|zero|empty|integer",
)
def one_less_in_uint8(lengths: Tensor, seq: int) -> Tensor:
    """Takes one from the length in its dtype: of uint8, an empty sequence is seen as a whole."""
    padding_mask(lengths, seq)
    return torch.arange(seq, device=lengths.device) <= (lengths - 1)[:, None, None]


@held_out(
    "padding_mask",
    "review practice: a batch without padding",
    r"shape|batch|full|broadcast|no padding|one row|size",
)
def one_row_where_nothing_is_padded(lengths: Tensor, seq: int) -> Tensor:
    """Gives one row for the whole batch where no sequence is shorter than the others."""
    mask = padding_mask(lengths, seq)
    known = not torch.compiler.is_compiling() and not lengths.is_meta
    return mask[:1] if known and bool(mask.all()) else mask
