"""What ends a sequence: a token, or what a function says of its new tokens."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from transformer_layers.validation import require_size

# Is told the new tokens of a sequence, and says whether the last one ends it.
Stop = Callable[[list[int]], bool]


def is_stop(tokens: Int[Tensor, "*shape"], stops: Sequence[int]) -> Tensor:
    """Which tokens end a sequence, boolean of the same shape."""
    return torch.isin(tokens, torch.tensor(stops, dtype=tokens.dtype, device=tokens.device))


def ended_by(
    stop: Stop, new: Int[Tensor, "batch new"], ended: Bool[Tensor, " batch"]
) -> Bool[Tensor, " batch"]:
    """Which sequences have ended, those that had before among them.

    Args:
        stop: Is asked about the others.
        new: The new tokens of each.
        ended: Those that had before.
    """
    rows = zip(ended.tolist(), new.tolist(), strict=True)
    said = [before or bool(stop(row)) for before, row in rows]
    return torch.tensor(said, dtype=torch.bool, device=ended.device)


def count_up_to_stop(new: list[int], stops: Sequence[int], stop: Stop | None = None) -> int:
    """How many tokens there are up to the first that ends the sequence, it included, or in all.

    Args:
        new: The new tokens of a sequence.
        stops: The tokens that end one.
        stop: What else does.
    """
    for count, token in enumerate(new, start=1):
        if token in stops or (stop is not None and stop(new[:count])):
            return count
    return len(new)


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


def require_stop(stop: object) -> None:
    """Refuses what cannot be asked, such as a text.

    Args:
        stop: A function, or None.

    Raises:
        TypeError: If it is neither.
    """
    if stop is not None and not callable(stop):
        raise TypeError(
            "stop must be a function of a list of new tokens, such as stop_texts(tokenizer, texts) "
            f"makes, got {stop!r} of type {type(stop).__name__}"
        )
