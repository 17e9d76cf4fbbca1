"""Pages as sessions of the interactive interpreter, and what such a session shows."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evaluation.benchmarks.output_checkers import interpreter
from evaluation.benchmarks.output_checkers.document import Cell, Mask, Page, Shows

TEXT_ONLY: Final[Mapping[Shows, str]] = {
    "html": "a doctest shows text only, no table in HTML",
    "latex": "a doctest shows text only, no formula in LaTeX",
    "figure": "a doctest shows text only, no figure",
}


@dataclass(frozen=True)
class Shown:
    """What a cell shows in an interactive session.

    Attributes:
        statements: Its source, statement by statement.
        text: What it prints, the value of its last expression included.
        error: The last line of its traceback; empty if it raises nothing.
        stderr: What it writes there.
    """

    statements: tuple[str, ...]
    text: str
    error: str
    stderr: str


def shown(folder: Path, documents: Sequence[Sequence[Cell]]) -> list[list[Shown]]:
    """Runs documents and returns what each of their cells shows.

    Args:
        folder: Where the modules are that the cells import.
        documents: The cells of each.
    """
    sources = [[cell.source for cell in cells] for cells in documents]
    done = subprocess.run(
        [sys.executable, "-P", interpreter.__file__],
        input=json.dumps(sources),
        env={**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return [
        [Shown(tuple(one["statements"]), one["text"], one["error"], one["stderr"]) for one in cells]
        for cells in json.loads(done.stdout)
    ]


def sessions(folder: Path, pages: Sequence[Page]) -> list[list[tuple[str, list[str]]]]:
    """Each page as a list of cells: the name, and the lines of a session with the shown output."""
    then = shown(folder, [page.then for page in pages])
    return [
        [
            (old.name, _session(new, was, page.masks.get(old.name)))
            for (old, new), was in zip(page.cells, outputs, strict=True)
        ]
        for page, outputs in zip(pages, then, strict=True)
    ]


def _session(cell: Cell, was: Shown, mask: Mask | None) -> list[str]:
    """The code of a cell as it is now, above what it showed."""
    parts = interpreter.statements(cell.source)
    if mask:
        parts[-1] += "  # doctest: +ELLIPSIS"
    lines = []
    for part in parts:
        first, *rest = part.split("\n")
        lines += [f">>> {first}", *(f"... {line}" for line in rest)]
    if mask:
        return [*lines, mask.ellipsis]
    if was.error:
        return [*lines, "Traceback (most recent call last):", "    ...", was.error]
    return lines + was.text.splitlines()
