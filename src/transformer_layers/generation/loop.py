"""Writing: prompts in, one token after another out."""

from collections.abc import Callable, Iterator, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from transformer_layers.validation import require_integers, require_size


def new_tokens(
    read: Callable[[Int[Tensor, "batch seq"]], Float[Tensor, "batch vocab_size"]],
    choose: Callable[[Float[Tensor, "batch vocab_size"]], Int[Tensor, " batch"]],
    ids: Int[Tensor, "batch seq"],
    max_new_tokens: int,
    stops: Sequence[int] = (),
) -> Iterator[Int[Tensor, " batch"]]:
    """Yields the next token of each sequence, until there are enough or all have ended.

    Args:
        read: Takes what it has not read yet, and scores each token as the next one.
        choose: Takes a token by the scores.
        ids: The tokens so far.
        max_new_tokens: How many tokens to yield at most for each sequence.
        stops: The tokens that end a sequence; what has ended goes on with the first of them.
    """
    new = ids
    ended = torch.zeros(len(ids), dtype=torch.bool, device=ids.device)
    for _ in range(max_new_tokens):
        with torch.no_grad():  # not around yield, where the caller's code runs
            tokens = choose(read(new)).to(ids.dtype)
        if stops:
            tokens = tokens.masked_fill(ended, stops[0])
            ended |= is_stop(tokens, stops)
        yield tokens
        if stops and ended.all():
            return
        new = tokens[:, None]


def is_stop(tokens: Int[Tensor, "*shape"], stops: Sequence[int]) -> Tensor:
    """Which tokens end a sequence, boolean of the same shape."""
    return torch.isin(tokens, torch.tensor(stops, dtype=tokens.dtype, device=tokens.device))


def up_to_stop(tokens: Int[Tensor, " new"], stops: Sequence[int]) -> Int[Tensor, " kept"]:
    """The tokens up to the first that ends the sequence, it included, or all."""
    places = is_stop(tokens, stops).nonzero() if stops else tokens[:0]
    return tokens[: places[0] + 1] if len(places) else tokens


def as_batch(
    ids: Int[Tensor, "batch seq"] | list[Int[Tensor, " _"]],
) -> tuple[Int[Tensor, "batch seq"], Int[Tensor, " batch"] | None]:
    """Prompts as one tensor; the shorter ones have padding in front.

    Args:
        ids: The prompts.

    Returns:
        The batch, and how much of each row is padding; None if the prompts are equally long.

    Raises:
        TypeError: If `ids` are neither a tensor nor a list of tensors of int64 or int32.
        ValueError: If a shape does not fit, or there is no prompt, or one without a token.
    """
    if not isinstance(ids, list | tuple) or not all(isinstance(each, Tensor) for each in ids):
        require_integers("ids", ids)  # which refuses a list of numbers
    if isinstance(ids, Tensor):
        if ids.ndim != 2 or ids.shape[1] == 0:
            raise ValueError(
                "ids must be of shape (batch, seq) with one position or more, got "
                f"{tuple(ids.shape)}; a single sequence is ids[None]"
            )
        return ids, None
    for prompt in ids:
        require_integers("each prompt", prompt)
    shapes = [tuple(prompt.shape) for prompt in ids]
    if not ids or any(len(shape) != 1 or shape[0] == 0 for shape in shapes):
        raise ValueError(
            "a list of ids must hold a prompt or more, each of shape (seq,) with one position or "
            f"more, got shapes {shapes}"
        )
    batch = pad_sequence(ids, batch_first=True, padding_side="left")
    lengths = torch.tensor([len(prompt) for prompt in ids], device=batch.device)
    padding = batch.shape[1] - lengths
    return batch, padding if padding.any() else None


def require_stops(eos_token: int | Sequence[int] | None, vocab_size: int) -> list[int]:
    """The tokens that end a sequence, as a list.

    Args:
        eos_token: One, several, or None.
        vocab_size: Number of tokens in the vocabulary.

    Raises:
        TypeError: If one is not an int.
        ValueError: If one is not in the vocabulary, or there are to be several and is none.
    """
    if eos_token is None:
        return []
    stops = list(eos_token) if isinstance(eos_token, Sequence) else [eos_token]
    for stop in stops:
        require_size("eos_token", stop, minimum=0)
    if not stops or max(stops) >= vocab_size:
        raise ValueError(
            f"eos_token must be a token or several, in [0, {vocab_size}), got {eos_token}"
        )
    return stops
