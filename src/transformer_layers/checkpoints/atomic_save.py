"""Two files that are saved as one: written aside, and put in their places when both are whole.

Beside them there may be files that say the same once more, in the forms that other programs read.
"""

import errno
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from transformer_layers.checkpoints.folder import CONFIG, WEIGHTS

if sys.platform != "win32":
    import fcntl

# Readers that find two files which do not belong together wait so many seconds and read again: a
# process that saves may have been between them.
PAUSES = (0.0, 0.01, 0.02, 0.04, 0.08, 0.16)

_PREFIX = ".unfinished-"


class Pair(NamedTuple):
    """Two files that belong together.

    Attributes:
        first: Name of the one that is written and replaced first.
        second: Name of the other.
    """

    first: str
    second: str


CHECKPOINT = Pair(WEIGHTS, CONFIG)
TOKENIZER = Pair("merges.txt", "vocab.json")
# The same tokenizer for others: what it computes, and which of its tokens begin and end a text.
TOKENIZER_FOR_OTHERS = ("tokenizer.json", "tokenizer_config.json")


@contextmanager
def saving(
    folder: str | os.PathLike[str], pair: Pair, beside: Sequence[str] = ()
) -> Iterator[Path]:
    """Gives a place to write two files to, which take their own places when both are written.

    What goes wrong before that leaves the files that were there. No more than one process or thread
    at a time saves into a folder, where the file system has locks. So whatever else was left in it
    unfinished is of a process that was killed, and is removed; but no link, and nothing that holds
    what no save writes.

    There is no replacing two files at once. Where a process is killed between them, the second one
    stays where :func:`left_behind` finds it.

    Args:
        folder: Where the files are to be; made if needed.
        pair: The files.
        beside: Further files, that say what the two say. Those of before are removed before the
            first of the two is replaced, and the new ones put in their places when both are, so
            that none ever stands beside what it does not say.

    Yields:
        A folder for all of them.

    Raises:
        OSError: If a file cannot be written.
        ValueError: If `folder` is the empty text.
    """
    require_named(folder)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder) as alone:
        if alone:
            _clean(folder, between=False)
        unfinished = Path(tempfile.mkdtemp(dir=folder, prefix=_PREFIX))
        try:
            _require_no_folders(folder, (*pair, *beside))
            yield unfinished
            for name in (*pair, *beside):
                _flush(unfinished / name)
            for name in beside:
                (folder / name).unlink(missing_ok=True)
            for name in (*pair, *beside):
                os.replace(unfinished / name, folder / name)
        except BaseException as error:
            _remove(unfinished, between=False)
            if isinstance(error, OSError):
                what = f"{folder / pair.first} and {pair.second} cannot be written: {error}"
                raise OSError(error.errno, what) from error
            raise
        with suppress(OSError):  # not every system can
            _flush(folder)
        _remove(unfinished, between=True)
        if alone:
            _clean(folder, between=True)


def left_behind(folder: Path, pair: Pair) -> list[Path]:
    """Finds the second of two files where only the first one was put in its place.

    Args:
        folder: Where both were to be.
        pair: The files.

    Returns:
        The places where there is one.
    """
    places = sorted(folder.glob(f"{_PREFIX}*/{pair.second}"))
    return [path for path in places if _of_pairs(path.parent) == {pair.second}]


def require_named(folder: str | os.PathLike[str]) -> None:
    """Refuses the empty text, which would be the working directory.

    Args:
        folder: A folder.

    Raises:
        ValueError: If it is the empty text.
    """
    if not os.fspath(folder):
        raise ValueError("folder must be the name of one, got ''; the working directory is '.'")


def _require_no_folders(folder: Path, names: Sequence[str]) -> None:
    # Nothing replaces a folder: to find the second one too late is to have replaced the first.
    for path in (folder / name for name in names):
        if path.is_dir() and not path.is_symlink():
            raise IsADirectoryError(errno.EISDIR, f"{path.name} is a folder; move it elsewhere")


@contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Waits for others that save there. Not every file system has locks: tells whether it has."""
    if sys.platform == "win32":
        yield False
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        locked = False
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            locked = True
        try:
            yield locked
        finally:
            # By closing alone the lock would stay with a process that was forked meanwhile.
            if locked:
                fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


def _clean(folder: Path, between: bool) -> None:
    for unfinished in folder.glob(_PREFIX + "*"):
        _remove(unfinished, between)


def _remove(unfinished: Path, between: bool) -> None:
    """Removes what a save wrote, unless the folder holds anything else.

    A second file by itself completes the first one until both are replaced again. It goes only
    where `between` says that they were.
    """
    names = _of_pairs(unfinished)
    if names is None or (not between and names in ({CHECKPOINT.second}, {TOKENIZER.second})):
        return
    with suppress(OSError):
        for name in TOKENIZER_FOR_OTHERS:
            (unfinished / name).unlink(missing_ok=True)
        for pair in (CHECKPOINT, TOKENIZER):
            for name in reversed(pair):  # a second file must not be left alone by a kill here
                (unfinished / name).unlink(missing_ok=True)
        unfinished.rmdir()


def _of_pairs(unfinished: Path) -> set[str] | None:
    """Which files of pairs a save's folder has; None for a link, and where what no save writes is.

    A link could lead to files of the same names anywhere.
    """
    if unfinished.is_symlink():
        return None
    try:
        with os.scandir(unfinished) as entries:
            are_files = {each.name: each.is_file(follow_symlinks=False) for each in entries}
    except OSError:  # no folder, or not there any more
        return None
    pairs = {*CHECKPOINT, *TOKENIZER}
    ours = all(are_files.values()) and are_files.keys() <= {*pairs, *TOKENIZER_FOR_OTHERS}
    return pairs & are_files.keys() if ours else None


def _flush(path: Path) -> None:
    """Has the disk hold a file, or the names in a folder, before anything else is done."""
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
