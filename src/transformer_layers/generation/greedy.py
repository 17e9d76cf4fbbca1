"""Greedy search: the most likely token at each step, until a sequence ends."""

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from transformer_layers.generation.loop import new_tokens


def greedy_search(
    read: Callable[[Int[Tensor, "batch 1"]], Float[Tensor, "batch vocab_size"]],
    first: Int[Tensor, " batch"],
    max_new_tokens: int,
    end_token: int,
    padding_token: int,
    *,
    banned: Sequence[int] = (),
    forced: int | None = None,
) -> Int[Tensor, "batch new"]:
    """Continues each sequence by its most likely token, until it ends.

    Args:
        read: Takes each row's last token, and scores each token as the next one.
        first: The token that begins each sequence.
        max_new_tokens: Most tokens of a sequence.
        end_token: The token that ends a sequence.
        padding_token: What fills up sequences that end before others.
        banned: Tokens that are never chosen.
        forced: The last of `max_new_tokens`, where a sequence has not ended before; the most likely
            one if not given.

    Returns:
        The new tokens of each sequence, the ending one included, then padding.
    """
    never = torch.tensor(banned, dtype=torch.int64, device=first.device)

    def choose(logits: Tensor, text: Tensor) -> Tensor:
        return logits.index_fill(-1, never, -math.inf).argmax(dim=-1)

    found = new_tokens(read, choose, first[:, None], max_new_tokens, (end_token,))
    steps = [tokens for tokens, _ in found]
    if not steps:
        return first.new_empty(len(first), 0)
    if forced is not None and len(steps) == max_new_tokens:
        steps[-1] = torch.full_like(steps[-1], forced)
    tokens = torch.stack(steps, dim=1)
    ends = (tokens == end_token).int()
    return tokens.masked_fill(ends.cumsum(dim=1) > ends, padding_token)
