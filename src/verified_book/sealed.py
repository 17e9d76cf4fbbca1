"""JSON with a digest of itself: a bit that has changed since it was written is noticed."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from verified_book.regular import read_regular

_DIGEST, _VALUE = "sha256", "value"


def write_sealed(file: Path, value: Any) -> None:
    """Writes a value in the place of a file, whole or not at all."""
    scratch = file.with_name(f"{file.name}.{os.getpid()}")
    scratch.unlink(missing_ok=True)  # whatever a process of this number has left
    sealed = {_DIGEST: _digest(value), _VALUE: value}
    scratch.write_text(json.dumps(sealed), encoding="utf-8")
    scratch.replace(file)


def read_sealed(file: Path) -> Any:
    """The value that was written.

    Raises:
        OSError: If there is no such file, or it cannot be read.
        ValueError: If it does not say what was written.
    """
    try:
        found = json.loads(read_regular(file))
        value = found[_VALUE]
        if found[_DIGEST] == _digest(value) and len(found) == 2:
            return value
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ValueError(f"{file} is damaged: {error}") from error
    raise ValueError(f"{file} is damaged: its digest is another")


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()
