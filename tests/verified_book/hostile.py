"""What may stand where a file is expected: tables of damage for the tests of what is read again."""

import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

GIGABYTE = 2**30


def _anew(path: Path) -> Path:
    """The path, with nothing there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    return path


def zeros(path: Path) -> None:
    """A gigabyte of zeros, which takes no room on the disk."""
    with _anew(path).open("wb") as file:
        file.truncate(GIGABYTE)


#: What is no file, or none that can be meant.
NO_FILES: dict[str, Callable[[Path], object]] = {
    "a folder": lambda path: _anew(path).mkdir(),
    "a pipe": lambda path: os.mkfifo(_anew(path)),
    "a device": lambda path: _anew(path).symlink_to("/dev/zero"),
    "a link to itself": lambda path: _anew(path).symlink_to(path.name),
    "a gigabyte of zeros": zeros,
}

#: Files that say nothing, or not what was written.
NO_TEXTS: dict[str, Callable[[Path], object]] = {
    "half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "binary": lambda path: _anew(path).write_bytes(random.Random(5).randbytes(3000)),
    "brackets": lambda path: _anew(path).write_bytes(b"[" * 100_000),
    "another form": lambda path: _anew(path).write_bytes(b'{"a": [null, {}, -1]}'),
}

DAMAGES = NO_FILES | NO_TEXTS


def flipped(data: bytes, most: int, seed: int = 22) -> Iterator[bytes]:
    """The same bytes with one bit flipped, at each place or at as many as are drawn."""
    places: list[int] | range = range(8 * len(data))
    if len(places) > most:
        places = sorted(random.Random(seed).sample(places, most))
    for place in places:
        changed = bytearray(data)
        changed[place // 8] ^= 1 << place % 8
        yield bytes(changed)
