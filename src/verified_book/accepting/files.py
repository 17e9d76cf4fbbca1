"""Reads a page as it is, and replaces it as a whole or not at all."""

import codecs
import errno
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from verified_book.accepting.spans import BY_HAND, Refusal

_AGAIN = "Run the command again."


@dataclass(frozen=True)
class Encoded:
    """The text of a page, and the name of the codec that its file is written with."""

    text: str
    encoding: str

    def encode(self, text: str) -> bytes:
        """Another text, written in the same way."""
        try:
            data = text.encode(self.encoding)
        except UnicodeEncodeError as error:
            letter = error.object[error.start]
            raise Refusal(
                f"the output has the character {letter!r}, which {self.encoding} cannot write",
                "Write the page in UTF-8, or let the cell print something else.",
            ) from error
        if data.decode(self.encoding) != text:
            raise Refusal(f"{self.encoding} does not keep the new text as it is", BY_HAND)
        return data


def decode(data: bytes, encoding: str) -> Encoded:
    """The text of a page, if it can be written back to the same bytes."""
    codec = codecs.lookup(encoding).name
    if codec == "utf-8-sig" and not data.startswith(codecs.BOM_UTF8):
        codec = "utf-8"
    try:
        text = data.decode(codec)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        reason = f"it is not written in {encoding}, as line {line} shows"
        raise Refusal(reason, "Mend the page, or the encoding of the sources.") from error
    if text.encode(codec) != data:
        raise Refusal(f"its bytes are not those that {encoding} writes", BY_HAND)
    return Encoded(text, codec)


def replace(path: Path, old: bytes, new: bytes) -> bool:
    """Makes a file say something else, at once.

    Args:
        path: The file; where it is a link, what it leads to.
        old: What the file said when it was parsed.
        new: What it shall say.

    Returns:
        Whether it was written; not so if it says that already.
    """
    try:
        return _replace(path.resolve(), old, new)
    except FileNotFoundError as error:
        raise Refusal("it has gone since it was read", f"Put it back. {_AGAIN}") from error
    except OSError as error:
        remedy = f"Mend what keeps it from being written. {_AGAIN}"
        raise Refusal(f"it could not be written: {error.strerror or error}", remedy) from error


def _replace(path: Path, old: bytes, new: bytes) -> bool:
    if path.read_bytes() == new:  # another run was faster
        return False
    _check_unchanged(path, old)
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    descriptor, name = tempfile.mkstemp(prefix=".verified-book-", dir=path.parent)
    try:
        with open(descriptor, "wb") as file:
            file.write(new)
            file.flush()
            os.fsync(descriptor)
        shutil.copymode(path, name)
        with suppress(PermissionError):  # Root writes the pages of others, and leaves them theirs.
            if hasattr(os, "chown"):  # not on Windows
                os.chown(name, path.stat().st_uid, path.stat().st_gid)
        _check_unchanged(path, old)
        os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)
    return True


def _check_unchanged(path: Path, old: bytes) -> None:
    if path.read_bytes() != old:
        reason = "it has been changed since it was read, and what was saved is kept"
        raise Refusal(reason, _AGAIN)
