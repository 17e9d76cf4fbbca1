"""Runs inside each Python kernel of a build: notes the book's files that the cells open.

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
from typing import Any

# What Python and numba compile, and make anew when its source changes; first by another name.
_COMPILED = re.compile(r"\.(?:pyc|nb[ic])(?:\.\d+|\.tmp\.\w+)?$")
_WRITES = os.O_WRONLY | os.O_TRUNC
_CHANGES = {"os.rename": 1, "os.remove": 0, "os.truncate": 0}  # and which argument names the file


def note_opened(log: str, sources: Sequence[str], ignored: Sequence[str]) -> None:
    """Writes each file of the book that is opened from now on to a log, once.

    A line of the log is a JSON list: `r` (read), `rw` or `w`, the path relative to the book, and
    time and size as they were then, or null for a file that was not there.

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

    def note(path: Any, flags: int) -> None:
        if flags & getattr(os, "O_DIRECTORY", 0):
            return
        full = os.path.abspath(os.fsdecode(path))  # a number raises, and is dropped
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
            full = os.path.realpath(full)
            name = relative_to(full, sources)
        if name is None or relative_to(full, apart) is not None:
            return
        if _COMPILED.search(name):
            return
        if (kind, name) in seen:  # by another path; those that are seen are all absolute
            return
        seen.add((kind, name))
        try:
            status = os.stat(full)
            stamp = [status.st_mtime_ns, status.st_size]
        except OSError:
            stamp = None
        os.write(descriptor, json.dumps([kind, name, stamp]).encode() + b"\n")

    sys.addaudithook(hook_for(note))


def folders_of_environment() -> list[str]:
    """Where this Python and what is installed for it lies, by each name that it may go by."""
    installed = [*site.getsitepackages(), site.getusersitepackages()]
    found = [sys.prefix, sys.exec_prefix, sys.base_prefix, *installed]
    return [name for path in found for name in (os.path.abspath(path), os.path.realpath(path))]


def hook_for(note: Callable[[Any, int], None]) -> Callable[[str, tuple[Any, ...]], None]:
    """An audit hook that passes on what is opened, and with which flags."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        try:
            if event == "open":
                note(arguments[0], arguments[2])
            elif event in _CHANGES:
                note(arguments[_CHANGES[event]], os.O_WRONLY)
            elif event == "sqlite3.connect":
                note(path_of_database(arguments[0]), os.O_RDWR)
        except Exception:  # what a hook raises would end the cell, for a file that is none of ours
            return

    return hook


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
