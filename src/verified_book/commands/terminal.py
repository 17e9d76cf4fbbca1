"""Where a command prints."""

import os
from collections.abc import Iterable
from typing import TextIO

from verified_book.commands.books import shown
from verified_book.records import Failure

_STYLES = {"red": "31", "green": "32", "yellow": "33", "faint": "2", "bold": "1"}


class Terminal:
    """Where a command prints: results to one stream, what goes on meanwhile to another.

    Attributes:
        showed_edits: Whether accepting has said anything.
    """

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._out, self._err = out, err
        self._colored = {out: _is_colored(out), err: _is_colored(err)}
        self.showed_edits = False

    def print(self, text: str, *styles: str) -> None:
        """Prints a line or more of the results."""
        print(self._styled(self._out, text, styles), file=self._out, flush=True)

    def warn(self, text: str) -> None:
        """Prints a warning."""
        print(self._styled(self._err, text, ("yellow",)), file=self._err, flush=True)

    def progress(self, page: str) -> None:
        """Shows whoever waits which page is run."""
        if self._err.isatty():
            print(self._styled(self._err, f"running {page}", ("faint",)), file=self._err)

    def edit(self, text: str) -> None:
        """Prints what accepting says: a line of a patch, or a sentence."""
        self.showed_edits = True
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
