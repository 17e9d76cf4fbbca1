"""What is asked of every tool, and how one is run."""

import os
import re
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import ClassVar

from evaluation.benchmarks.output_checkers.document import Page, Shows

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class NotHere(Exception):  # noqa: N818  # no error: the results say so
    """A tool that cannot be run on this machine, and why."""


@dataclass
class Outcome:
    """What a run said.

    Attributes:
        status: The exit status; the first that is not 0 where a tool is run page by page.
        places: For each page the cells that the log names, each with its line of the log.
        log: All that was printed.
    """

    status: int
    places: dict[str, dict[str, str]] = field(default_factory=dict)
    log: str = ""

    def blame(self, page: str, cell: str, line: str) -> None:
        """Notes that the log names a cell; its first line is kept."""
        self.places.setdefault(page, {}).setdefault(cell, line.strip())


class Tool(ABC):
    """A tool that checks the outputs of a page, or at least runs it.

    Attributes:
        name: As its documentation has it.
        distribution: As `pip` knows it.
        command: What is run here, with every option that matters.
        purpose: What it is for, in a sentence.
        documentation: Where it is described; empty for our own.
        remark: What else a reader should know of the verdicts.
        marks: How an author marks an output that differs from run to run.
        cannot_show: The kinds of output that its format has no place for, each with the reason.
        cannot_mark: Why no output can be marked, if so.
    """

    name: ClassVar[str]
    distribution: ClassVar[str]
    command: ClassVar[str]
    purpose: ClassVar[str]
    documentation: ClassVar[str]
    remark: ClassVar[str] = ""
    marks: ClassVar[str] = ""
    cannot_show: ClassVar[Mapping[Shows, str]] = {}
    cannot_mark: ClassVar[str] = ""

    def version(self) -> str:
        """The version that is run.

        Raises:
            NotHere: It is not installed.
        """
        try:
            return metadata.version(self.distribution)
        except metadata.PackageNotFoundError as error:
            raise NotHere(f"{self.distribution} is not installed") from error

    @abstractmethod
    def write(self, folder: Path, pages: Sequence[Page]) -> None:
        """Writes the pages: the outputs of the code of then, and the code of now.

        Args:
            folder: Where to; the modules that the cells import are there.
            pages: The pages, without what :attr:`cannot_show` names.
        """

    @abstractmethod
    def run(self, folder: Path, names: Sequence[str]) -> Outcome:
        """Runs the tool on the pages in a folder.

        Args:
            folder: Where :meth:`write` has put them.
            names: The names of all pages there.
        """


def execute(command: Sequence[str], folder: Path, **environment: str) -> tuple[int, str]:
    """Runs a command in a folder.

    Args:
        command: Its words.
        folder: Where it runs.
        environment: Variables that it gets beside those of this process.

    Returns:
        Its exit status, and what it printed on both streams, without colors.
    """
    inherited = {
        name: value
        for name, value in os.environ.items()
        # Kernels choose their own backend, only one of our own runs accepts, and no settings of
        # whoever measures are to decide.
        if name not in ("MPLBACKEND", "VERIFIED_BOOK_ACCEPT", "PYTEST_ADDOPTS")
    }
    done = subprocess.run(
        command,
        cwd=folder,
        # A module that changes within a second of its first import must not be taken from a .pyc.
        env={**inherited, "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=600,
    )
    return done.returncode, _ANSI.sub("", done.stdout)
