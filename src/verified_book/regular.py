"""Reads files that may be anything by now: a pipe that nobody writes to, a device, a folder.

None of them keeps a build waiting, and none fills the memory: each is an error that names itself.
"""

import errno
import hashlib
import os
import stat
from io import BufferedReader
from pathlib import Path

#: Bytes of a text at most, unless a caller knows better. The longest page of a site has some 5e6.
MOST = 2**26


def open_regular(path: str | Path) -> BufferedReader:
    """Opens a file to read its bytes, and never waits.

    Raises:
        OSError: If it cannot be opened, or is no regular file.
    """
    _check_kind(os.stat(path), path)  # to open a pipe would let who writes to it go on
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _BINARY)
    try:
        _check_kind(os.fstat(descriptor), path)
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


_BINARY: int = getattr(os, "O_BINARY", 0)  # of Windows


def _check_kind(status: os.stat_result, path: str | Path) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder", str(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is a pipe, a socket or a device, and no file", str(path))


def read_regular(path: str | Path, most: int = MOST) -> bytes:
    """The bytes of a file.

    Raises:
        OSError: If it cannot be read, is no regular file, or has more bytes than `most`.
    """
    with open_regular(path) as file:
        data = file.read(most + 1)
        if len(data) > most:
            size = max(os.fstat(file.fileno()).st_size, len(data))
            raise OSError(
                errno.EFBIG, f"it has {size:,} bytes, and no more than {most:,} are read", str(path)
            )
    return data


def digest_of(path: str | Path) -> str:
    """The SHA-256 of a file, of any size.

    Raises:
        OSError: If it cannot be read, or is no regular file.
    """
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def stamp_of(path: Path) -> list[object]:
    """What a file is known by: its size and its digest.

    Raises:
        OSError: If it cannot be read, or is no regular file.
    """
    return [path.stat().st_size, digest_of(path)]


def holds(path: Path, stamp: object) -> bool:
    """Whether a file is what had this stamp; to see that it has grown none of it is read."""
    try:
        return (
            isinstance(stamp, list)
            and stamp[:1] == [path.stat().st_size]
            and stamp == stamp_of(path)
        )
    except OSError:
        return False


def discard(file: Path) -> None:
    """Removes a damaged file; a folder may hold what somebody wants, and gets another name."""
    if not file.is_dir() or file.is_symlink():
        file.unlink(missing_ok=True)
        return
    number = 1
    while os.path.lexists(aside := file.with_name(f"{file.name}.damaged-{number}")):
        number += 1
    file.rename(aside)
