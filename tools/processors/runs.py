"""What differs on one kind of processor: cells of the book, and tests."""

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.processors.kinds import Kind, environment

ROOT = Path(__file__).parents[2]
PACKAGES = ("transformer_layers", "layer_checks", "transformer_training")
TESTS = tuple(f"{folder}/{name}" for name in PACKAGES for folder in ("src", "tests"))


@dataclass(frozen=True)
class Surroundings:
    """On what cells and tests run.

    Attributes:
        kind: The kind of processor.
        threads: How many threads each process has.
        folder: What this one builds, and its cache of cells; no other takes anything from it.
    """

    kind: Kind
    threads: int
    folder: Path

    @property
    def name(self) -> str:
        """It in words."""
        return f"{self.kind.name}, {self.threads} thread{'s' if self.threads > 1 else ''}"

    @property
    def beside(self) -> int:
        """How many processes run beside each other: together they have a thread for each core."""
        return max(1, (os.cpu_count() or 1) // self.threads)


def differing_cells(where: Surroundings, book: Path) -> list[str]:
    """Runs the cells of a book; says what is not as its pages expect, with page and line."""
    found = where.folder / "book.json"
    status, log = _run(
        where,
        ["verified_book", "check", "--jobs", str(where.beside), "--builds", str(where.folder)],
        ["--json", str(found), str(book)],
        found,
    )
    if not found.exists():
        return [f"the book could not be run (status {status}):\n{log[-4000:]}"]
    content: dict[str, Any] = json.loads(found.read_text(encoding="utf-8"))
    if "error" in content:
        return [f"the book could not be run: {content['error']}"]
    cells = [told(failure) for failure in content["failures"]]
    return (
        cells if cells or not status else [f"the book ended with status {status}:\n{log[-4000:]}"]
    )


def told(failure: dict[str, Any]) -> str:
    """A failure of a page: where it is, what was expected and what was found."""
    place = f"{os.path.relpath(failure['source'])}:{failure['line']}"
    if failure["expected"] is None:
        return f"{place}: {failure['message']}"
    headline = failure["message"].partition("\n")[0]
    sides = [("expected", failure["expected"]), ("found", failure["executed"] or "")]
    lines = [f"  {side}: {line}" for side, text in sides for line in text.splitlines() or [""]]
    return "\n".join([f"{place}: {headline}", *lines])


def failing_tests(where: Surroundings, tests: Sequence[str]) -> list[str]:
    """Runs tests; says which do not pass, and why."""
    found = where.folder / "tests.xml"
    status, log = _run(
        where,
        ["pytest", "--quiet", "--numprocesses", str(where.beside), "--dist", "loadgroup"],
        ["--junit-xml", str(found), "-o", f"cache_dir={where.folder / '.pytest_cache'}", *tests],
        found,
    )
    if not found.exists():
        return [f"the tests could not be run (status {status}):\n{log[-4000:]}"]
    failures = tests_of(found.read_text(encoding="utf-8"))
    return failures if failures or not status else [f"pytest ended with {status}:\n{log[-4000:]}"]


def tests_of(report: str) -> list[str]:
    """The tests of a report, in JUnit's format, that did not pass, each with its reason."""
    said = []
    for case in ElementTree.fromstring(report).iter("testcase"):
        for kind in ("failure", "error"):
            if (failed := case.find(kind)) is not None:
                # An error outside of a test, such as one of an import, has no message of its own.
                reason = failed.text if kind == "error" else failed.get("message")
                name = f"{case.get('classname')}::{case.get('name')}"
                lines = (reason or "no reason").strip().splitlines()
                said.append("\n".join([name, *(f"  {line}" for line in lines)]))
    return said


def _run(
    where: Surroundings, module: list[str], arguments: list[str], result: Path
) -> tuple[int, str]:
    """Runs a module there, and gives its exit status and what it printed."""
    where.folder.mkdir(parents=True, exist_ok=True)
    result.unlink(missing_ok=True)  # one of an earlier run says nothing of this one
    done = subprocess.run(
        [sys.executable, "-m", *module, *arguments],
        cwd=ROOT,
        env=environment(where.kind, where.threads),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout
