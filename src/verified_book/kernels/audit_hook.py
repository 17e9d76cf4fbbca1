"""Runs inside each Python kernel of a build: notes what of the book the cells open and list.

IPython executes the text of this module as its configuration, before the first cell and outside of
the cells' namespace, also in an environment that does not have this package. So it imports nothing
but the standard library.
"""

import importlib.util
import json
import os
import re
import site
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

# What Python and numba compile, and make anew when its source changes; first by another name.
_COMPILED = re.compile(r"\.(?:pyc|nb[ic])(?:\.\d+|\.tmp\.\w+)?$|(?:^|/)__pycache__/?$")
_OF_BUILDS = {".jupyter_cache", "jupyter_execute"}  # what MyST-NB puts beside pages
_WRITES = os.O_WRONLY | os.O_TRUNC
# And which argument names the file, or the folder.
_CHANGES = {"os.rename": 1, "os.remove": 0, "os.truncate": 0, "os.mkdir": 0, "os.rmdir": 0}
_LISTS = {"os.listdir", "os.scandir"}  # Path.iterdir, glob and os.walk call these
# Who lists the folders of sys.path, a page's own among them, to find modules in them.
_IMPORTERS = {"_frozen_importlib_external", "importlib", "importlib_metadata", "pkgutil"}


def note_opened(log: str, sources: Sequence[str], ignored: Sequence[str]) -> None:
    """Writes each file of the book that is opened, and each folder listed, to a log, once.

    A line of the log is a JSON list: `r` (read), `rw` or `w`, the path relative to the book, and
    time and size as they were then, or null for a file that was not there. The path of a folder
    that was listed ends with a slash, `./` for the book's; it has :func:`names_in` it for a stamp.

    Args:
        log: The file to append to; at once, since kernels are killed at their end.
        sources: The names of the book's folder, as it was given and without links.
        ignored: Folders inside of it that hold what builds have made.
    """
    # Opened once: to open it later would be noted as well.
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    own = [folder for folder in folders_of_environment() if relative_to(folder, sources)]
    apart = [*ignored, *own]
    libraries = tuple(
        os.path.join(prefix, "")
        for prefix in {sys.prefix, sys.base_prefix, os.path.realpath(sys.base_prefix)}
        if not any(relative_to(source, [prefix]) for source in sources)
    )
    seen: set[tuple[str, str]] = set()

    def note(path: Any, flags: int, end: str = "") -> None:
        if flags & getattr(os, "O_DIRECTORY", 0):
            return
        full = os.path.abspath(os.fsdecode(path)) + end  # a number raises, and is dropped
        kind = "w" if flags & _WRITES else "rw" if flags & os.O_RDWR else "r"
        if (kind, full) in seen:
            return
        seen.add((kind, full))
        if full.endswith(".pyc"):  # all that an import opens of a module that has not changed
            if kind == "w":
                return
            full = importlib.util.source_from_cache(full)
        name = relative_to(full, sources)
        if name is None and not full.startswith(libraries):
            full = os.path.realpath(full) + end
            name = relative_to(full, sources)
        if name is None or relative_to(full, apart) is not None:
            return
        if _COMPILED.search(name):
            return
        name = name or "./"
        if (kind, name) in seen:  # by another path; those that are seen are all absolute
            return
        seen.add((kind, name))
        if end and os.path.isfile(full[:-1]):  # a recursive glob tries to list files, too
            return
        stamp = names_in(full) if end else time_and_size(full)
        os.write(descriptor, json.dumps([kind, name, stamp]).encode() + b"\n")

    sys.addaudithook(hook_for(note))


def time_and_size(path: str) -> list[int] | None:
    """Time and size of a file; None if it is not there."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return [status.st_mtime_ns, status.st_size]


def names_in(folder: str) -> list[str] | None:
    """What a folder holds, in order, without what is made there; None if it cannot be listed."""
    try:
        names = set(os.listdir(folder)) - _OF_BUILDS
    except OSError:
        return None
    return sorted(name for name in names if not _COMPILED.search(name))


def folders_of_environment() -> list[str]:
    """Where this Python and what is installed for it lies, by each name that it may go by."""
    installed = [*site.getsitepackages(), site.getusersitepackages()]
    found = [sys.prefix, sys.exec_prefix, sys.base_prefix, *installed]
    return [name for path in found for name in (os.path.abspath(path), os.path.realpath(path))]


def hook_for(note: Callable[..., None]) -> Callable[[str, tuple[Any, ...]], None]:
    """An audit hook that passes on what is opened, with which flags, and what is listed."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        try:
            if event == "open":
                note(arguments[0], arguments[2])
            elif event in _CHANGES:
                note(arguments[_CHANGES[event]], os.O_WRONLY)
            elif event == "sqlite3.connect":
                note(path_of_database(arguments[0]), os.O_RDWR)
            elif event in _LISTS and not to_find_modules(sys._getframe(1)):
                note("." if arguments[0] is None else arguments[0], os.O_RDONLY, os.sep)
        except Exception:  # what a hook raises would end the cell, for a file that is none of ours
            return

    return hook


def to_find_modules(caller: FrameType) -> bool:
    """Whether a folder is listed to find modules, of which those that are imported are noted."""
    return str(caller.f_globals.get("__name__")).partition(".")[0] in _IMPORTERS


def path_of_database(name: Any) -> str:
    """The path of a database, whose name may be a URI; the root folder for one in memory."""
    text = os.fsdecode(name)
    if text.startswith("file:"):
        text = text.removeprefix("file:").partition("?")[0].removeprefix("//")
    return os.sep if text in ("", ":memory:") else text


def relative_to(path: str, folders: Sequence[str]) -> str | None:
    """The path inside of the first folder that holds it, with slashes; None if none does."""
    for folder in folders:
        start = os.path.join(folder, "")
        if path.startswith(start):
            return path.removeprefix(start).replace(os.sep, "/")
    return None
