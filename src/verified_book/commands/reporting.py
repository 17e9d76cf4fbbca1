"""Tells people, and programs, what a run has found."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from verified_book.accepting.updates import DRY_RUN
from verified_book.commands.running import Outcome
from verified_book.commands.terminal import Terminal
from verified_book.outputs.pages import coverage


def print_report(outcomes: list[Outcome], terminal: Terminal) -> int:
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
