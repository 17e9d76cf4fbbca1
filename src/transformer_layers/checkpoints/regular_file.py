"""Files that end: opening a pipe may wait for ever, and reading a device may never stop."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def require_regular(path: Path, largest: int | None = None) -> int:
    """Refuses what is no regular file, or too large, without opening it.

    Args:
        path: The file, or a link to it.
        largest: How many bytes it may have; any number if not given.

    Returns:
        Its size in bytes.

    Raises:
        OSError: If there is nothing, or a link leads nowhere.
        ValueError: If it is a folder, a pipe, a socket or a device, or larger.
    """
    try:
        found = os.stat(path)
    except OSError as error:
        raise _told(path, error) from error
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "something else")
        raise ValueError(f"{path}: is {kind}, and must be a regular file")
    if largest is not None and found.st_size > largest:
        raise ValueError(
            f"{path}: has {found.st_size:,} bytes, and one of its kind has {largest:,} at most; "
            "copy it again"
        )
    return found.st_size


def open_regular(path: Path, largest: int | None = None) -> BinaryIO:
    """Opens a file, and nothing that only looks like one.

    Args:
        path: The file, or a link to it.
        largest: How many bytes it may have; any number if not given.

    Returns:
        The open file.

    Raises:
        OSError: If it cannot be opened.
        ValueError: If it is a folder, a pipe, a socket or a device, or larger.
    """
    require_regular(path, largest)
    try:
        return open(path, "rb", opener=_without_waiting)
    except OSError as error:
        raise _told(path, error) from error


def read_regular(path: Path, largest: int) -> bytes:
    """Reads a small file, and nothing that only looks like one.

    Args:
        path: The file, or a link to it.
        largest: How many bytes it may have.

    Returns:
        Its bytes.

    Raises:
        OSError: If it cannot be read.
        ValueError: If it is a folder, a pipe, a socket or a device, or larger.
    """
    with open_regular(path, largest) as file:
        content = file.read(largest + 1)  # what the system makes up, as in /proc, has no size
    if len(content) > largest:
        raise ValueError(f"{path}: has more than {largest:,} bytes, and one of its kind has not")
    return content


def _without_waiting(path: str, flags: int) -> int:
    # A pipe may have taken the file's place since it was looked at. Windows has no such flag.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _told(path: Path, error: OSError) -> OSError:
    """The system's error in a sentence, with its remedy."""
    if error.errno == errno.ENOENT and not path.is_symlink():
        return FileNotFoundError(f"{path}: there is no such file")
    if error.errno in (errno.ENOENT, errno.ELOOP):
        return FileNotFoundError(f"{path}: is a link that leads to no file")
    what = f"{path}: cannot be read: {error.strerror}; see that you may, or copy it again"
    return OSError(error.errno, what)
