"""Processes that save, and are killed while they do."""

import itertools
import os
import random
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest

Target: TypeAlias = Callable[..., object]

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills processes that it forks")


@contextmanager
def saver(target: Target, *args: Any) -> Iterator[None]:
    """Runs `target` in a process of its own, and kills it at the end, wherever it is."""
    pid = _forked(target, *args)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def killed_at_random(kills: int, within: float, target: Target, *args: Any) -> Iterator[None]:
    """Runs `target`, which saves without an end, so many times; yields after each kill."""
    rng = random.Random(0)
    for _ in range(kills):
        with saver(target, *args):
            time.sleep(rng.uniform(0, within))
        yield


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

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _STEPS and str(arguments[0]).startswith(folder):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    target(*args)
