"""Ends the kernels of a process that has gone, and removes its folder: a program of its own.

It reads from its owner which kernels run. The end of that input means that the owner has ended, in
whatever way: a process that is killed closes its pipes too. Each kernel leads a process group, so
what a cell has started ends with it, also while the kernel is deep in a long call of C code.
"""

import contextlib
import os
import shutil
import signal
import sys
from typing import BinaryIO


def kill_group(leader: int) -> None:
    """Kills a kernel and what its cells have started."""
    with contextlib.suppress(OSError):  # nothing is left of it
        os.killpg(leader, signal.SIGKILL)


def keep_watch(reports: BinaryIO, folder: str) -> None:
    """Waits for the owner to end, and then clears up behind it.

    Args:
        reports: Lines of its owner: `+123` a kernel started, `-123` it ended.
        folder: What the owner leaves behind.
    """
    running: set[int] = set()
    for line in reports:
        if line.endswith(b"\n"):  # or else the owner died while it wrote
            change = running.add if line.startswith(b"+") else running.discard
            change(int(line[1:]))
    for leader in running:
        kill_group(leader)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    keep_watch(sys.stdin.buffer, sys.argv[1])
