"""Beam search: the best few beginnings are kept, and each step extends all of them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from transformer_layers.precision import at_least_float32
from transformer_layers.validation import require_size

# What a sequence's log-probability is divided by, of its number of tokens.
LengthPenalty = Callable[[int], float]


@dataclass(frozen=True)
class PlainLengthPenalty:
    r"""Divides a log-probability by a power of the number of tokens, as `transformers` does.

    .. math::
        lp(n) = n^{\alpha}

    Attributes:
        alpha: 0 ranks by the log-probability itself; the larger, the longer the sequences that win.

    Examples:
        >>> round(PlainLengthPenalty(0.6)(10), 2)
        3.98
    """

    alpha: float

    def __post_init__(self) -> None:
        """Refuses what is no finite number."""
        _require_finite(self.alpha)

    def __call__(self, n: int) -> float:
        """The divisor for a sequence of n tokens."""
        return float(n**self.alpha)


@dataclass(frozen=True)
class PaperLengthPenalty:
    r"""The length penalty of equation 14 of https://arxiv.org/abs/1609.08144.

    Section 6.1 of https://arxiv.org/abs/1706.03762 decodes with it, at :math:`\alpha = 0.6`.

    .. math::
        lp(n) = \left(\frac{5 + n}{6}\right)^{\alpha}

    Attributes:
        alpha: As in :class:`PlainLengthPenalty`, which for the same number favors long sequences
            more.

    Examples:
        >>> round(PaperLengthPenalty()(10), 2)
        1.73
    """

    alpha: float = 0.6

    def __post_init__(self) -> None:
        """Refuses what is no finite number."""
        _require_finite(self.alpha)

    def __call__(self, n: int) -> float:
        """The divisor for a sequence of n tokens."""
        return float(((5 + n) / 6) ** self.alpha)


def as_length_penalty(penalty: float | LengthPenalty) -> LengthPenalty:
    """A length penalty: the plain one of a number, or the one that is given.

    Args:
        penalty: The exponent of :class:`PlainLengthPenalty`, or a function of a number of tokens.

    Returns:
        A function of a number of tokens.

    Raises:
        TypeError: If it is neither.
        ValueError: If the number is not finite.
    """
    if callable(penalty):
        return penalty
    return PlainLengthPenalty(penalty)


def beam_search(
    read: Callable[[Int[Tensor, "rows 1"]], Float[Tensor, "rows vocab_size"]],
    reorder: Callable[[Int[Tensor, " rows"]], None],
    first: Int[Tensor, " batch"],
    beams: int,
    max_new_tokens: int,
    end_token: int,
    padding_token: int,
    length_penalty: float | LengthPenalty = 0.0,
    *,
    banned: Sequence[int] = (),
    forced: int | None = None,
    exhaustive: bool = False,
) -> Int[Tensor, "batch new"]:
    r"""The best continuation of each sequence that a search with several beams finds.

    At each step every beam is extended by every token, and the `2 * beams` most likely of all these
    are looked at. Those among the first `beams` that end are finished: they are ranked by the
    log-probability of the whole, divided by the length penalty. The best `beams` that do not end go
    on. No sequence of a batch depends on another.

    A search is over when its best beam cannot pass the worst of `beams` finished sequences. Where
    the penalty grows with length, a beam's quotient may still rise, up to that of the longest
    sequence allowed: `exhaustive=True` waits for it. Otherwise the quotient of the present length
    decides, as it does in `transformers`: this is over sooner, and may lose the best.

    Args:
        read: Takes each row's last token, and scores each token as the next one. Rows are
            `batch * beams`, the beams of a sequence side by side.
        reorder: Is told from which row each row goes on.
        first: The token that begins each sequence.
        beams: How many beginnings are kept.
        max_new_tokens: Most tokens of a sequence; one that has not ended ends there.
        end_token: The token that ends a sequence.
        padding_token: What fills up sequences that end before others.
        length_penalty: A number for :class:`PlainLengthPenalty`, or a function of the number of
            tokens, such as :class:`PaperLengthPenalty`.
        banned: Tokens that are never chosen; the probabilities of the others stay as they are.
        forced: The last of `max_new_tokens`, at no cost, where a sequence has not ended before; the
            most likely one if not given.
        exhaustive: Whether to go on until no beam can win any more.

    Returns:
        The new tokens of each sequence, the ending one included, then padding.

    Raises:
        TypeError: If a count is no int, or the penalty is no number and no function.
        ValueError: If there is no beam, or the penalty is not finite.
    """
    require_size("beams", beams)
    require_size("max_new_tokens", max_new_tokens, minimum=0)
    divisor = as_length_penalty(length_penalty)
    batch, device = len(first), first.device
    tokens = first.new_full((batch, beams, max_new_tokens), padding_token)
    scores = torch.full((batch, beams), -math.inf, device=device)
    finished, lengths, results = tokens, first.new_zeros(batch, beams), scores
    scores = scores.index_fill(1, first.new_zeros(1), 0.0)  # all begin alike: one of them counts
    is_open = torch.ones(batch, 1, dtype=torch.bool, device=device)
    first_rows = beams * torch.arange(batch, device=device)[:, None]
    last = first.repeat_interleave(beams)
    for n in range(1, max_new_tokens + 1):
        at_end = n == max_new_tokens
        log_probs = at_least_float32(read(last[:, None])).log_softmax(dim=-1)
        log_probs[:, list(banned)] = -math.inf
        if at_end and forced is not None:
            log_probs.fill_(-math.inf)[:, forced] = 0.0
        vocab_size = log_probs.shape[-1]
        totals = scores[..., None].to(log_probs.dtype) + log_probs.unflatten(0, (batch, beams))
        totals, places = totals.flatten(1).topk(min(2, vocab_size) * beams)
        parents, new = places // vocab_size, (places % vocab_size).to(first.dtype)
        tokens = _rows(tokens, parents)
        tokens[..., n - 1] = new
        ends = (new == end_token) | at_end
        # What has ended, and is among the best, is held against what ended before.
        counts = ends & is_open & (torch.arange(ends.shape[1], device=device) < beams)
        ended = totals.masked_fill(~counts, -math.inf) / divisor(n)
        results, best = torch.cat([results.to(ended.dtype), ended], dim=1).topk(beams)
        finished = _rows(torch.cat([finished, tokens], dim=1), best)
        lengths = torch.cat([lengths, torch.full_like(new, n)], dim=1).gather(1, best)
        # The others go on.
        scores, kept = totals.masked_fill(ends, -math.inf).topk(beams)
        tokens = _rows(tokens, kept)
        reachable = max(divisor(n), divisor(max_new_tokens)) if exhaustive else divisor(n)
        is_open = is_open & (scores[:, :1] / reachable > results[:, -1:])
        if not is_open.any():
            break
        last = tokens[..., n - 1].flatten()
        reorder((first_rows + parents.gather(1, kept)).flatten())
    longest = int(lengths[:, 0].max()) if batch else 0
    return finished[:, 0, :longest]


def _rows(x: Tensor, rows: Tensor) -> Tensor:
    """Picks rows of the second axis of x, for each of its first."""
    return x.gather(1, rows[..., None].expand(*rows.shape, x.shape[-1]))


def _require_finite(alpha: float) -> None:
    if isinstance(alpha, bool) or not isinstance(alpha, int | float):
        raise TypeError(
            "length_penalty must be a number, or a function of the number of tokens, got "
            f"{alpha!r} of type {type(alpha).__name__}"
        )
    if not math.isfinite(alpha):
        raise ValueError(f"the exponent of a length penalty must be finite, got {alpha}")
