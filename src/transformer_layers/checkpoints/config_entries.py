"""Entries of a `config.json` that comes from elsewhere: what is read, and what is refused."""

import sys
from typing import Any

from transformer_layers.checkpoints.json_file import shown


def size_entry(name: str, value: object) -> Any:
    """A size, as it is; the class of the sizes refuses what is no int, and what is too small.

    Raises:
        ValueError: If it is absurd.
    """
    if isinstance(value, int) and value >= 2**31:
        raise ValueError(f"{name} must be below 2**31, got {shown(value)}")
    return value


def number_entry(name: str, value: object) -> float:
    """A number as a float.

    Raises:
        ValueError: If it is no number, or not finite.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} must be a finite number, got {shown(value)}")
    if not abs(value) <= sys.float_info.max:
        raise ValueError(f"{name} must be a finite number, got {shown(value)}")
    return float(value)


def flag_entry(name: str, value: object) -> bool:
    """A truth value.

    Raises:
        ValueError: If it is none.
    """
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be true or false, got {shown(value)}")
    return value


def require_computed(name: str, value: object, values: tuple[object, ...], model: str) -> None:
    """Refuses an option that changes what a model computes.

    Args:
        name: That of the entry.
        value: What it is.
        values: Those for which the model computes what is asked for.
        model: What computes it, for the error.

    Raises:
        ValueError: If the value is none of these.
    """
    if not any(type(value) is type(each) and value == each for each in values):
        computed = " or ".join(map(repr, values))
        raise ValueError(
            f"{name} is {shown(value)}, which changes what the model computes, and {model} "
            f"computes it for {computed} only"
        )
