"""The files of results: read or refused in a sentence, and written whole or not at all."""

import argparse
import json
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

from verified_book.regular import read_regular


def read_results(file: Path, keys: Collection[str], made_by: str) -> dict[str, Any]:
    """The results that a run has written.

    Args:
        file: Where they are.
        keys: What they must have.
        made_by: The command that makes them.

    Raises:
        SystemExit: If they cannot be read, with a sentence that names the file and the remedy.
    """
    try:
        found = json.loads(read_regular(file))
        missing = [key for key in keys if not found[key]]
        reason = f"it has no {', '.join(missing)}" if missing else ""
    except OSError as error:
        reason = str(error.strerror)
    except (ValueError, LookupError, TypeError, RecursionError):
        reason = "it does not hold results"
    if reason:
        raise SystemExit(f"{file}: {reason}. Remedy: restore it from git, or {made_by}")
    return dict(found)


def write_results(file: Path, results: dict[str, Any], **options: Any) -> None:
    """Writes results in the place of a file."""
    scratch = file.with_name(f"{file.name}.{os.getpid()}")
    scratch.write_text(json.dumps(results, indent=1, **options) + "\n", encoding="utf-8")
    scratch.replace(file)


def new_file(name: str) -> Path:
    """The name of a file that can be written, seen before hours of work and not after.

    Raises:
        argparse.ArgumentTypeError: If none can be there.
    """
    file = Path(name)
    if not name or (os.path.lexists(file) and not file.is_file()):
        raise argparse.ArgumentTypeError(f"{name!r} is no file; name one to write")
    if not file.parent.is_dir() or not os.access(file.parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"{name!r} cannot be written; name one in another folder")
    return file


def at_least_one(text: str) -> int:
    """A whole number of rounds or threads.

    Raises:
        argparse.ArgumentTypeError: If it is none, or there cannot be so many.
    """
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from None
    if not 1 <= number <= 10_000:
        raise argparse.ArgumentTypeError(f"{number} is not from 1 to 10,000")
    return number
