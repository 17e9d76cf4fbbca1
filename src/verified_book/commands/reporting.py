"""Tells people, and programs, what a run has found."""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from verified_book.accepting.updates import DRY_RUN
from verified_book.commands.books import shown
from verified_book.commands.running import Outcome
from verified_book.outputs.pages import coverage
from verified_book.records import Failure

_STYLES = {"red": "31", "green": "32", "yellow": "33", "faint": "2", "bold": "1"}


class Terminal:
    """Where a command prints: results to one stream, what goes on meanwhile to another."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._out, self._err = out, err
        self._colored = {out: _is_colored(out), err: _is_colored(err)}
        self._progress = False

    def print(self, text: str, *styles: str) -> None:
        """Prints a line or more of the results."""
        self._clear()
        print(self._styled(self._out, text, styles), file=self._out, flush=True)

    def warn(self, text: str) -> None:
        """Prints a warning."""
        self._clear()
        print(self._styled(self._err, text, ("yellow",)), file=self._err, flush=True)

    def reads(self, page: str) -> None:
        """Shows which page is run, until something else is printed."""
        if self._err.isatty():
            self._clear()
            print(f"running {page}", end="", file=self._err, flush=True)
            self._progress = True

    def says(self, text: str) -> None:
        """Prints what accepting says: a line of a patch, or a sentence."""
        style = {"-": "red", "+": "green", "@": "faint"}.get(text[:1])
        self.print(text, *([style] if style else []))

    def failure(self, failure: Failure) -> None:
        """Prints a failure as a build prints it, its place as seen from here."""
        headline, *body = failure.message.split("\n")
        self.print(f"{shown(failure.source)}:{failure.line}: ERROR: {headline}", "red", "bold")
        for line in body:
            style = {"-": "red", "+": "green"}.get(line[:1]) if failure.executed else None
            self.print(line, *([style] if style else []))
        self.print(f"  Remedy: {failure.remedy}", "faint")

    def _clear(self) -> None:
        if self._progress:
            print("\r\x1b[K", end="", file=self._err, flush=True)
            self._progress = False

    def _styled(self, stream: TextIO, text: str, styles: Iterable[str]) -> str:
        codes = ";".join(_STYLES[name] for name in styles)
        return f"\x1b[{codes}m{text}\x1b[0m" if codes and self._colored[stream] else text


def _is_colored(stream: TextIO) -> bool:
    """Whether to color what a stream shows: https://no-color.org, https://force-color.org."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (
        stream.isatty() and os.environ.get("TERM") != "dumb"
    )


def told(outcomes: list[Outcome], terminal: Terminal) -> int:
    """Prints the failures, what was not checked, and a last line with counts.

    Returns:
        The exit status.
    """
    everything = [failure for outcome in outcomes for failure in outcome.failures]
    failures = [failure for failure in everything if failure.remedy != DRY_RUN.remedy]
    unwritten = len(everything) - len(failures)  # a patch has shown them
    found = [page.record for outcome in outcomes for page in outcome.pages]
    for failure in failures:
        terminal.failure(failure)
    for line in coverage(found, Path.cwd()):
        terminal.print(line)
    checked = sum(record.checked.total() for record in found)
    unchecked = sum(len(record.unchecked) for record in found)
    said = [
        counted(len(found), "page"),
        f"{counted(checked, 'output')} checked",
        f"{unchecked} not checked",
        counted(len(failures), "failure") if failures else "no failure",
    ]
    if unwritten:
        said.append(f"{counted(unwritten, 'block')} to be written")
    terminal.print(", ".join(said), "bold", "red" if everything else "green")
    return 1 if everything else 0


def counted(number: int, noun: str) -> str:
    """A number of things in words.

    Examples:
        >>> counted(1, "page"), counted(2, "page")
        ('1 page', '2 pages')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def as_json(outcomes: list[Outcome]) -> str:
    """What was found, for programs; paths are absolute."""
    pages: list[dict[str, Any]] = []
    for page in (page for outcome in outcomes for page in outcome.pages):
        record = page.record
        pages.append(
            {
                "path": str(page.path),
                "executed": record.executed,
                "blocks": [asdict(block) for block in record.blocks],
                "checked": dict(record.checked),
                "unchecked": [asdict(output) for output in record.unchecked],
            }
        )
    failures = [asdict(failure) for outcome in outcomes for failure in outcome.failures]
    return json.dumps({"pages": pages, "failures": failures}, indent=1)
