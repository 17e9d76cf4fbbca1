"""Entries of a `config.json` that comes from elsewhere: what is read, and what is refused."""

import sys
from collections.abc import Sequence
from typing import Any

from transformer_layers.checkpoints.json_file import shown

# Options of all models of `transformers` that change what a model computes, and the values for
# which it is what ours compute.
COMPUTED_BY_ALL: dict[str, tuple[object, ...]] = {
    "is_causal": (True,),
    "per_layer_config": (None, {}),
    "quantization_config": (None,),
}


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


def require_layer_types(kinds: object, windows: Sequence[object], model: str) -> None:
    """Refuses kinds of attention that are not those that the other entries tell.

    Args:
        kinds: What `layer_types` is; None if it is left out.
        windows: The window of each block, None where it has none.
        model: What computes them, for the error.

    Raises:
        ValueError: If they are others.
    """
    full, sliding = "full_attention", "sliding_attention"
    wanted = [full if window is None else sliding for window in windows]
    if kinds is not None and kinds != wanted:
        raise ValueError(
            f"layer_types is {shown(kinds)}, and {model} has full attention in the first blocks "
            f"and windows in the others: {shown(wanted)}"
        )
