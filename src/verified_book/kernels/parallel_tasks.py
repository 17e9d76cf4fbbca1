"""Sphinx's parallel readers: none outlives its build, and a build notices when one has died."""

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sphinx.errors import SphinxError
from sphinx.util.parallel import ParallelTasks

_PR_SET_PDEATHSIG = 1


def end_with(parent: int) -> None:
    """Ends this process together with the one that has forked it, also if that is killed.

    This one may be blocked for ever: the pipe on which it sends its pages is held open by its
    siblings too.
    """
    if sys.platform == "linux":
        # At once, also in a long call of C code that lets no thread run.
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    threading.Thread(target=_exit_after, args=(parent,), daemon=True).start()


def _exit_after(parent: int) -> None:
    """Waits until a process is no longer the parent of this one, and ends this one."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


class ReaderDiedError(SphinxError):
    """A reader ended without its pages."""

    category = "Parallel build error"


def longest_first(pages: list[str], file_of: Callable[[str], str]) -> None:
    """Sorts pages by the size of their files, so that none of the long ones is read at the end.

    Args:
        pages: Their names.
        file_of: Gives the file of a page.
    """
    pages.sort(key=lambda page: -Path(file_of(page)).stat().st_size)


def shrinking_chunks(pages: Sequence[str], readers: int) -> list[Sequence[str]]:
    """Pages by the readers that take them: many at first, few at the end.

    Sphinx makes chunks of one size, so that one reader works through the last of them while the
    others have nothing left. A page by itself would be fairest; but each chunk costs the time in
    which the whole environment comes back.

    Args:
        pages: Their names.
        readers: How many read at a time.

    Examples:
        >>> [len(chunk) for chunk in shrinking_chunks("abcdefghijklmnop", 2)]
        [4, 3, 3, 2, 1, 1, 1, 1]
    """
    chunks, begun = [], 0
    while begun < len(pages):
        size = -(-(len(pages) - begun) // (2 * readers))
        chunks.append(pages[begun : begun + size])
        begun += size
    return chunks


class WatchedTasks(ParallelTasks):
    """Sphinx's parallel tasks, without two ways to lose pages.

    The original waits for ever for a reader that was killed, by the system for its memory say; and
    it forgets an error that it meets while it still hands out tasks, with all pages yet to come.
    """

    _error: Exception | None = None

    def add_task(self, *arguments: Any, **options: Any) -> None:
        """Adds a task, unless an earlier one has failed."""
        if self._error is None:
            super().add_task(*arguments, **options)

    def join(self) -> None:
        """Waits for all tasks."""
        if self._error is not None:
            raise self._error
        super().join()

    def _join_one(self) -> bool:
        try:
            for task, pipe in self._precvs.items():
                if not self._procs[task].is_alive() and not pipe.poll():
                    raise self._death_of(task)
            return self._join_first()
        except Exception as error:
            self._error = error
            raise

    def _join_first(self) -> bool:
        try:
            return super()._join_one()
        except EOFError:  # what it reads ends without the pages of one
            ended = next(task for task, pipe in self._precvs.items() if pipe.poll())
            raise self._death_of(ended) from None

    def _death_of(self, task: int) -> "ReaderDiedError":
        """The error for a reader that has ended without its pages."""
        process = self._procs[task]
        process.join(5)
        pages = ", ".join(map(str, self._args[task] or []))
        return ReaderDiedError(
            f"the process that read {pages} has died ({_cause(process.exitcode)}); "
            "build again, with fewer jobs if memory is short"
        )


def _cause(status: int | None) -> str:
    """How a process has ended."""
    if status is not None and status < 0:
        return f"killed by {signal.Signals(-status).name}"
    return f"exit status {status}"
