"""What every tokenizer asks of numbers of tokens."""

from collections.abc import Container

from torch import Tensor

from transformer_layers.validation import require_integers


def require_ids(ids: Tensor, known: Container[int]) -> None:
    """Refuses what are no numbers of tokens, in one row.

    Args:
        ids: The numbers.
        known: Those that there are: a range, or, where the vocabulary has gaps, a set.

    Raises:
        TypeError: If they are not int64 or int32.
        ValueError: If they are not of one axis, or one is not known.
    """
    require_integers("ids", ids)
    if ids.ndim != 1:
        raise ValueError(
            f"ids must be of shape (seq,), got {tuple(ids.shape)}; one row of a batch is ids[0]"
        )
    if isinstance(known, range):
        if ids.numel() > 0 and not known.start <= ids.min() <= ids.max() < known.stop:
            raise ValueError(
                f"ids must be in [{known.start}, {known.stop}), got values from {ids.min()} to "
                f"{ids.max()}"
            )
        return
    for number in ids.tolist():
        if number not in known:
            raise ValueError(f"ids must be numbers of tokens, and {number} is that of none")


def require_one(ids: Tensor) -> None:
    """Refuses more or fewer than one token, where they come one by one.

    Args:
        ids: The token.

    Raises:
        ValueError: If it is not one.
    """
    if ids.numel() != 1:
        raise ValueError(f"ids must come one by one, of shape (1,), got {tuple(ids.shape)}")
