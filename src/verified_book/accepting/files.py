"""Reads a page as it is, and replaces it as a whole or not at all."""

import codecs
import errno
import os
import re
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from verified_book.accepting.spans import BY_HAND, Refusal
from verified_book.regular import open_regular

try:
    import fcntl
except ImportError:  # Windows, which does not remove open files anyway
    fcntl = None  # type: ignore[assignment]  # mypy knows it as a module

_TEMPORARY = re.compile(r"\.verified-book-[0-9a-f]{16}\.tmp")
_BOMS = {
    "utf-8-sig": [(codecs.BOM_UTF8, "utf-8"), (b"", "utf-8")],
    "utf-16": [(codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")],
    "utf-32": [(codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be")],
}
_AGAIN = "Run the command again."
_CAUSES = {
    errno.ENOSPC: ("there is no room left on the disk", "Make room, and run the command again."),
    errno.EDQUOT: ("there is no room left in the quota", "Make room, and run the command again."),
    errno.EROFS: ("its file system cannot be written to", "Copy the book to where it can."),
    errno.EACCES: ("there is no permission to write it", "Make it and its folder writable."),
    errno.EPERM: ("there is no permission to write it", "Make it and its folder writable."),
    errno.ENOENT: ("it has gone since it was read", "Put it back, and run the command again."),
    errno.ENOTDIR: ("its folder has gone since it was read", "Put it back, and run it again."),
}


@dataclass(frozen=True)
class Encoded:
    """The text of a page, and how it is written in its file.

    Attributes:
        encoding: The name of the codec, without one that writes a mark.
        mark: The mark that the file begins with, if any.
    """

    text: str
    encoding: str
    mark: bytes

    def encode(self, text: str) -> bytes:
        """Another text, written in the same way."""
        try:
            data = self.mark + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            letter = error.object[error.start]
            raise Refusal(
                f"the output has the character {letter!r}, which {self.encoding} cannot write",
                "Write the page in UTF-8, or let the cell print something else.",
            ) from error
        if decode(data, self.encoding, self.mark).text != text:
            raise Refusal(f"{self.encoding} does not keep the new text as it is", BY_HAND)
        return data


def decode(data: bytes, encoding: str, mark: bytes = b"") -> Encoded:
    """The text of a page, if it can be written back to the same bytes."""
    codec = codecs.lookup(encoding).name
    if not mark:
        marks = _BOMS.get(codec, [])
        mark, codec = next((found for found in marks if data.startswith(found[0])), (b"", codec))
    try:
        text = data[len(mark) :].decode(codec)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        reason = f"it is not written in {encoding}, as line {line} shows"
        raise Refusal(reason, "Mend the page, or the encoding of the sources.") from error
    if mark + text.encode(codec) != data:
        raise Refusal(f"its bytes are not those that {encoding} writes", BY_HAND)
    return Encoded(text, codec, mark)


def read(path: Path) -> bytes:
    """The bytes of a file, or a refusal."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise _refusal(error) from error


def replace(path: Path, old: bytes, new: bytes) -> bool:
    """Makes a file say something else, at once.

    Args:
        path: The file; where it is a link, what it leads to.
        old: What the file said when it was parsed.
        new: What it shall say.

    Returns:
        Whether it was written; not so if it says that already.
    """
    path = path.resolve()
    try:
        return _replace(path, old, new)
    except OSError as error:
        raise _refusal(error) from error


def _replace(path: Path, old: bytes, new: bytes) -> bool:
    if path.read_bytes() == new:  # another run was faster
        return False
    _check_unchanged(path, old)
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, "read-only", str(path))
    before = path.stat()
    temporary = path.parent / f".verified-book-{secrets.token_hex(8)}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "wb") as file:
            with suppress(OSError):  # not every system can
                if fcntl:
                    fcntl.flock(descriptor, fcntl.LOCK_EX)  # shows that its writer is alive
            file.write(new)
            file.flush()
            _take_over(descriptor, before)
            os.fsync(descriptor)
            if fcntl:  # else the file must be closed to be moved
                _put_in_place(temporary, path, old)
        if not fcntl:
            _put_in_place(temporary, path, old)
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()
    with suppress(OSError):  # not every system can
        _flush_folder(path.parent)
    return True


def _take_over(descriptor: int, before: os.stat_result) -> None:
    """Gives a file the owner and the mode of another."""
    if hasattr(os, "fchown"):
        with suppress(PermissionError):
            os.fchown(descriptor, before.st_uid, before.st_gid)
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, stat.S_IMODE(before.st_mode))


def _put_in_place(temporary: Path, path: Path, old: bytes) -> None:
    _check_unchanged(path, old)
    os.replace(temporary, path)


def _check_unchanged(path: Path, old: bytes) -> None:
    if path.read_bytes() != old:
        reason = "it has been changed since it was read, and what was saved is kept"
        raise Refusal(reason, _AGAIN)


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_leftovers(folder: Path) -> None:
    """Removes what runs that were killed have left in a folder."""
    with suppress(OSError):
        for path in list(folder.iterdir()):
            if _TEMPORARY.fullmatch(path.name) and not _is_being_written(path):
                path.unlink()


def _is_being_written(path: Path) -> bool:
    if not fcntl:
        return False
    with open_regular(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _refusal(error: OSError) -> Refusal:
    known = _CAUSES.get(error.errno or 0)
    if known is None:
        return Refusal(f"it could not be written: {error.strerror or error}", _AGAIN)
    return Refusal(*known)
