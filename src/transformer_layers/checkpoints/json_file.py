"""JSON objects from files that come from elsewhere."""

import json
import reprlib
from pathlib import Path
from typing import Any

from transformer_layers.checkpoints.regular_file import read_regular

LARGEST = 2**23  # bytes; GPT-2's vocab.json has an eighth of it

_repr = reprlib.Repr()
_repr.maxstring = 60  # a file name fits


def read_json_object(path: Path) -> dict[str, Any]:
    """Reads a file that must hold one JSON object.

    Args:
        path: The file.

    Returns:
        Its keys and values.

    Raises:
        FileNotFoundError: If there is no such file.
        OSError: If it cannot be read.
        ValueError: If it holds anything else, is larger than 8 MiB, or no file.
    """
    return parse_json_object(read_regular(path, LARGEST), path)


def parse_json_object(content: bytes, path: Path) -> dict[str, Any]:
    """Parses bytes that must be one JSON object.

    Python's parser takes the last of two equal keys and knows NaN and infinity, which JSON has not;
    both are refused here.

    Args:
        content: The bytes.
        path: The file that they come from, for the error.

    Returns:
        Its keys and values.

    Raises:
        ValueError: If they are anything else.
    """
    try:
        value = json.loads(
            content.decode(), object_pairs_hook=_without_repeats, parse_constant=_refuse_constant
        )
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: cannot be read as JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path}: must hold a JSON object, got {shown(value)}")
    return value


def shown(value: object) -> str:
    """What a file says, for an error; shortened, since it can be of any length.

    Args:
        value: A JSON value, or a tuple of integers.

    Returns:
        Its representation, without the middle of a long text or number, and without the end of a
        long list.

    Examples:
        >>> shown({"n_embd": [10**50], "shapes": list(range(100))})
        "{'n_embd': [100000000000000000...0000000000000000000], 'shapes': [0, 1, 2, 3, 4, 5, ...]}"
    """
    return _repr.repr(value)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {shown(key)} stands there twice")
        found[key] = value
    return found


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number in JSON")
