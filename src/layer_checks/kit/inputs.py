"""What attention can be given: keys may be its values, too, and not each layer takes a mask."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from torch import Tensor

_ALL = 3  # queries, keys and values
_number: ContextVar[int] = ContextVar("number", default=_ALL)
_masked: ContextVar[bool] = ContextVar("masked", default=True)


@contextmanager
def inputs_of_a_form(number: int | None, masked: bool) -> Iterator[None]:
    """Has checks of attention draw fewer inputs, for a layer that takes no more.

    Args:
        number: Two where values are taken from the keys' input, one where all three are one; None
            for all three.
        masked: Whether it takes a mask.
    """
    tokens = _number.set(_ALL if number is None else number), _masked.set(masked)
    try:
        yield
    finally:
        _number.reset(tokens[0])
        _masked.reset(tokens[1])


def number_of_inputs() -> int:
    """How many of queries, keys and values have an input of their own."""
    return _number.get()


def takes_masks() -> bool:
    """Whether the layer that is asked takes a mask."""
    return _masked.get()


def as_told_apart(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The inputs with the first in the place of those that a layer can't tell from it."""
    number = _number.get()
    if number == 1:
        return query, query, query
    return (query, key, value) if number == _ALL else (query, key, key)
