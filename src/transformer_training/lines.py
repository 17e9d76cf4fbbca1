"""Lines of JSON that carry a sum, by which a run knows that they are as it wrote them."""

import json
import re
import zlib
from collections.abc import Mapping
from typing import Any

_LINE = re.compile(rb'(\{.*), "crc32": "([0-9a-f]{8})"\}\n')


def line_of(entries: Mapping[str, Any]) -> str:
    r"""Writes entries as a line, with the sum of what stands before it.

    CRC-32 finds every damage of up to 32 bits in a row, and misses others once in four billion.

    Args:
        entries: What JSON can hold, by name; one or more.

    Returns:
        The line, with its end.

    Examples:
        >>> line_of({"step": 1, "loss": 2.5})
        '{"step": 1, "loss": 2.5, "crc32": "881325a4"}\n'
    """
    begun = json.dumps(entries)[:-1]
    return f'{begun}, "crc32": "{zlib.crc32(begun.encode()):08x}"}}\n'


def entries_of(line: bytes) -> dict[str, Any]:
    """Reads the entries of a line.

    Args:
        line: What :func:`line_of` wrote.

    Returns:
        The entries, without the sum.

    Raises:
        ValueError: If it is anything else.
    """
    found = _LINE.fullmatch(line)
    if found is None or zlib.crc32(found[1]) != int(found[2], 16):
        raise ValueError("is not as it was written")
    entries: dict[str, Any] = json.loads(found[1] + b"}")
    return entries
