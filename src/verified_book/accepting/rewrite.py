"""Rewrites expected blocks from what ran, for review with `git diff`."""

import os
import re
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

from sphinx.environment import BuildEnvironment
from sphinx.util import logging

from verified_book.notebook_cells import Cell
from verified_book.records import Edit, records

logger = logging.getLogger(__name__)

_Block = Callable[[str, str], list[str]]

_FENCE = re.compile(r"(?P<indent>\s*)(?P<fence>`{3,}|:{3,}|~{3,})\s*\{(?P<name>[\w-]+)\}")
_RST = re.compile(r"(?P<indent>\s*)\.\. (?P<name>[\w-]+)::")


def accepting() -> bool:
    """Whether this build shall rewrite the expected blocks that differ or are missing."""
    return bool(os.environ.get("VERIFIED_BOOK_ACCEPT"))


def replacement(source: str, line: int, text: str) -> Edit | None:
    """The edit that makes `text` the body of the expected block at a line (from 1)."""
    lines = _lines(source)
    found = _directive(lines, line, "expect-output")
    if found is None:
        return None
    start, end, indent, block = found
    return Edit(source, start, end, tuple(block(indent, text)))


def insertion(cell: Cell, text: str) -> Edit | None:
    """The edit that puts an expected block with `text` after a cell that has none."""
    found = _directive(_lines(cell.source), cell.line, "code-cell")
    if found is None:
        return None
    _, end, indent, block = found
    return Edit(cell.source, end, end, ("", *block(indent, text)))


def rewrite(env: BuildEnvironment) -> None:
    """Carries out the pending edits of all pages."""
    pending = [edit for record in records(env).values() for edit in record.edits]
    pending.sort(key=lambda edit: (edit.source, -edit.start))
    for source, edits in groupby(pending, key=lambda edit: edit.source):
        lines, count = _lines(source), 0
        for edit in edits:
            lines[edit.start : edit.end] = edit.lines
            count += 1
        Path(source).write_text("\n".join(lines), encoding="utf-8")
        logger.info("verified_book: rewrote %d expected block(s) in %s", count, source)
    for record in records(env).values():
        record.edits = []


def _lines(source: str) -> list[str]:
    return Path(source).read_text(encoding="utf-8").split("\n")


def _directive(lines: list[str], line: int, name: str) -> tuple[int, int, str, _Block] | None:
    """The nearest directive at or above a line.

    Returns:
        Its first line, its end (exclusive), its indent, and what writes a block in its format.
    """
    for start in range(min(line, len(lines)) - 1, -1, -1):
        if match := _FENCE.match(lines[start]):
            if match["name"] != name:
                return None
            closing = re.compile(
                rf"\s*{re.escape(match['fence'])}{re.escape(match['fence'][0])}*\s*"
            )
            for end in range(start + 1, len(lines)):
                if closing.fullmatch(lines[end]):
                    return start, end + 1, match["indent"], _myst_block
            return None
        if match := _RST.match(lines[start]):
            if match["name"] != name:
                return None
            end = start + 1
            while end < len(lines) and _belongs(lines[end], match["indent"]):
                end += 1
            while not lines[end - 1].strip():
                end -= 1
            return start, end, match["indent"], _rst_block
    return None


def _belongs(line: str, indent: str) -> bool:
    """Whether a line is part of an RST directive that is indented by `indent`."""
    return not line.strip() or line.startswith(indent + " ")


def _rst_block(indent: str, text: str) -> list[str]:
    inner = indent + "   "
    body = [inner + line if line else "" for line in text.split("\n")]
    return [f"{indent}.. expect-output::", "", *body]


def _myst_block(indent: str, text: str) -> list[str]:
    fence = "```"
    while fence in text:
        fence += "`"
    body = [indent + line if line else "" for line in text.split("\n")]
    return [f"{indent}{fence}{{expect-output}}", *body, indent + fence]
