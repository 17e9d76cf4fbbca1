"""Command lines in processes that have imported Sphinx already, which is most of a small build.

Each is forked from a server: a process of its own, as the command would be.
"""

import multiprocessing
import os
import re
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.verified_book.preloaded"])
ROOT = Path(__file__).parents[2]


def sphinx(arguments: list[str]) -> int:
    """What `python -m sphinx` does."""
    from sphinx.cmd.build import main

    return main(arguments)


def jupyter_book(arguments: list[str]) -> int:
    """What `jupyter-book` does."""
    from jupyter_book.cli.main import main

    return main(arguments)


Program = Callable[[list[str]], int]


def call(
    program: Program, arguments: list[str], folder: str, environment: dict[str, str], log: str
) -> None:
    """Runs a program as a shell would; in the process that is its own."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.path[:0] = ["", *environment.get("PYTHONPATH", "").split(os.pathsep)]
    sys.argv = [program.__name__, *arguments]
    sys.exit(program(arguments))


class Run:
    """A program that runs or has ended."""

    def __init__(
        self,
        program: Program,
        arguments: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        log: Path,
    ) -> None:
        self.log_path = log
        log.touch()
        with chdir(ROOT):  # from where the server imports
            forkserver.ensure_running()
        settings = (str(folder), {**os.environ, **environment}, str(log))
        self.process: Any = CONTEXT.Process(target=call, args=(program, [*arguments], *settings))
        self.process.start()

    @property
    def pid(self) -> int:
        """Its main process."""
        return self.process.pid

    def wait(self, within: float = 600) -> int:
        """Its exit status, when it has ended."""
        self.process.join(within)
        if self.process.exitcode is None:
            self.process.kill()
            raise TimeoutError(f"it did not end:\n{self.log}")
        return self.process.exitcode

    @property
    def log(self) -> str:
        """What it has said up to now."""
        return re.sub(r"\x1b\[[0-9;]*m", "", self.log_path.read_text(encoding="utf-8"))
