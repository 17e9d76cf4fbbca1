"""How many inputs of its own a layer has: attention may take its keys for its values, too."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from torch import Tensor

_ALL = 3  # queries, keys and values
_number: ContextVar[int] = ContextVar("number", default=_ALL)


@contextmanager
def told_apart(number: int | None) -> Iterator[None]:
    """Has checks of attention draw fewer inputs, for a layer that takes no more.

    Args:
        number: Two where values are taken from the keys' input, one where all three are one; None
            for all three.
    """
    token = _number.set(_ALL if number is None else number)
    try:
        yield
    finally:
        _number.reset(token)


def number_of_inputs() -> int:
    """How many of queries, keys and values have an input of their own."""
    return _number.get()


def as_told_apart(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The inputs with the first in the place of those that a layer can't tell from it."""
    number = _number.get()
    if number == 1:
        return query, query, query
    return (query, key, value) if number == _ALL else (query, key, key)
