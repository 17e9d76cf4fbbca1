"""Files that come from elsewhere: opened without waiting, and read up to a bound."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

LARGEST = 2**23  # bytes; GPT-2's vocab.json has an eighth of it


def open_regular(path: Path) -> BinaryIO:
    """Opens a file, or the one that a link leads to.

    A pipe would let its reader wait for a writer; it and all else that is no file is refused.

    Args:
        path: The file.

    Returns:
        The open file.

    Raises:
        FileNotFoundError: If there is no such file.
        OSError: If it cannot be opened.
        ValueError: If it is a folder, a pipe, a socket or a device.
    """
    try:
        file = open(path, "rb", opener=_without_waiting)
    except FileNotFoundError as error:
        what = "is a link that leads nowhere" if path.is_symlink() else "there is no such file"
        raise FileNotFoundError(f"{path}: {what}") from error
    except IsADirectoryError as error:
        raise ValueError(f"{path}: is a folder; the file itself must be there") from error
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise FileNotFoundError(f"{path}: is a link that leads to itself") from error
        what = f"{path}: cannot be read: {error.strerror}; see that you may, and copy it again"
        raise OSError(error.errno, what) from error
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise ValueError(f"{path}: is a pipe or a device; the file itself must be there")
    return file


def read_regular(path: Path, largest: int = LARGEST) -> bytes:
    """Reads a file of a bounded size.

    Args:
        path: The file.
        largest: The most bytes that it may have.

    Returns:
        Its bytes.

    Raises:
        FileNotFoundError: If there is no such file.
        OSError: If it cannot be read.
        ValueError: If it is larger, or no file, see :func:`open_regular`.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        content = file.read(largest + 1) if size <= largest else b""
    if max(size, len(content)) > largest:
        raise ValueError(
            f"{path}: has {max(size, len(content)):,} bytes, of at most {largest:,}, so it is not "
            "what its name says; copy it again"
        )
    return content


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # Windows has no such flag
