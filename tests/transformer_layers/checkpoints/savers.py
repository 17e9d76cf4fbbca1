"""Processes that save, and are killed while they do."""

import itertools
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

Target: TypeAlias = Callable[..., object]

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills processes that it forks")


def killed_at_each_step(folder: Path, target: Target, *args: Any) -> Iterator[int]:
    """Runs `target`, and kills it at its first step in a folder, its second, and so on.

    Yields:
        The step, each time, until a run comes to its end.
    """
    for step in itertools.count(1):
        pid = _forked(_killed_at, step, str(folder), target, *args)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        assert status in (0, -signal.SIGKILL)
        yield step
        if status == 0:
            return


def _forked(target: Target, *args: Any) -> int:
    # Forked, since a new process needs seconds to import torch. No thread of torch's is needed.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*fork")
        pid = os.fork()
    if pid == 0:
        status = 1
        try:
            # What a killed process wrote is there, flushed or not; flushing takes most of the time.
            os.fsync = lambda fd: None
            target(*args)
            status = 0
        finally:
            os._exit(status)
    return pid


_STEPS = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.scandir")


def _killed_at(last: int, folder: str, target: Target, *args: Any) -> None:
    left = [last]

    def count() -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    _at_each_step(folder, count)
    target(*args)


def _at_each_step(folder: str, act: Callable[[], None]) -> None:
    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _STEPS and str(arguments[0]).startswith(folder):
            act()

    sys.addaudithook(hook)
