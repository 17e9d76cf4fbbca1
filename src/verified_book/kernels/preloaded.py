"""Kernels that are forked from a process which has imported what takes long to import.

That process is :mod:`verified_book.kernels.forkserver`; here it is started and asked for kernels.
"""

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import KernelSpec

from verified_book.kernels import forkserver

IMPORT_TIME = 120  # seconds that all the imports may take


class NotForkedError(Exception):
    """There is no forked kernel; the message says why."""


class ForkServer:
    """The process that kernels of this Python are forked from.

    Args:
        modules: What it imports, before the first kernel.
        address: Where it listens; a path that does not exist yet.
        environment: Its environment variables.
    """

    def __init__(self, modules: Sequence[str], address: Path, environment: dict[str, str]) -> None:
        self.address = str(address)
        with socket.socket(socket.AF_UNIX) as requests:
            requests.bind(self.address)
            requests.listen(64)
            number = requests.fileno()
            command = [sys.executable, forkserver.__file__, str(number), *modules]
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,  # its end is that of the build
                env=environment,
                cwd="/",
                pass_fds=[number],
                start_new_session=True,  # a Ctrl-C in the terminal is not for it
            )

    def fork(self, arguments: list[str], environment: dict[str, str], folder: str) -> int:
        """Makes a kernel.

        Args:
            arguments: What follows `python -m ipykernel_launcher`.
            environment: The environment of the kernel.
            folder: The folder in which it runs.

        Returns:
            Its process number.

        Raises:
            NotForkedError: If there is none.
        """
        request = {"arguments": arguments, "environment": environment, "folder": folder}
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(IMPORT_TIME)
                connection.connect(self.address)
                connection.sendall(json.dumps(request).encode() + b"\n")
                with connection.makefile(encoding="utf-8") as stream:
                    line = stream.readline()
        except OSError as error:
            raise NotForkedError(f"{type(error).__name__}: {error}") from error
        answer: dict[str, Any] = json.loads(line or '{"error": "the importing process has ended"}')
        if "error" in answer:
            raise NotForkedError(answer["error"])
        pid: int = answer["pid"]
        return pid

    def close(self) -> None:
        """Ends the process; its kernels go on."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        self._process.wait()


class ForkedProcess:
    """A process that is nobody's child here, with the part of `subprocess.Popen` that is asked for.

    How it has ended is not known, only that it has.
    """

    stdin = stdout = stderr = None

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._descriptor: int | None = None
        with contextlib.suppress(ProcessLookupError):  # it has ended at once
            self._descriptor = os.pidfd_open(pid)

    def poll(self) -> int | None:
        """None while it runs."""
        if self._descriptor is None:
            return 1
        return 1 if select.select([self._descriptor], [], [], 0)[0] else None

    def wait(self) -> int:
        """Waits for its end."""
        if self._descriptor is not None:
            select.select([self._descriptor], [], [])
            os.close(self._descriptor)
            self._descriptor = None
        return 1

    def send_signal(self, number: int) -> None:
        """Sends it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)


def can_fork(spec: KernelSpec) -> bool:
    """Whether a kernel, of ipykernel, runs in the Python of this build, on a platform for it."""
    version = sys.version_info
    ours = {"python", f"python{version.major}", f"python{version.major}.{version.minor}"}
    return hasattr(os, "pidfd_open") and spec.argv[0] in ours | {sys.executable}
