"""What a build remembers of each page: its failures, its outputs and its pending rewrites.

Records live in the build environment, so that a second build that reads nothing stays red.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment


@dataclass(frozen=True)
class Failure:
    """Something on a page that fails the build.

    Attributes:
        cell: The index of the cell that it concerns, if any.
        refutes: Whether it shows what the page says false, not merely the page incomplete.
        expected: What the block says, where it differs from what the cell printed.
        executed: What the cell printed, its lines that agree written as in the block.
    """

    source: str
    line: int
    message: str
    remedy: str
    cell: int | None = None
    refutes: bool = False
    expected: str | None = None
    executed: str | None = None


@dataclass(frozen=True)
class Edit:
    """A block that shall be rewritten, or written after a cell that has none.

    Where it stands in the file is found when it is carried out, from what was parsed.

    Attributes:
        source: The file, as docutils names it.
        line: The line of the directive, from 1, as docutils counts it.
        cell: The index of the cell.
        cell_line: The line of the cell's directive, from 1.
        code: The code of the cell.
        old: The body of the block as it was parsed; None for a cell that has no block.
        new: What the block shall say: an expected text, not yet escaped for its format.
        got: What the block is held against.
        words: What stands after the name of the directive.
        mends: The failure that stays if the edit is refused.
        adds: Those of the words that do not stand there yet.
        displayed: The texts in `got` of values that the cell displays, of which it prints no line.
    """

    source: str
    line: int
    cell: int
    cell_line: int
    code: str
    old: str | None
    new: str
    got: str
    words: tuple[str, ...]
    mends: Failure
    adds: tuple[str, ...] = ()
    displayed: tuple[str, ...] = ()


@dataclass(frozen=True)
class FileAsRead:
    """The file that a page was parsed from.

    Attributes:
        data: All that it said.
        as_in_file: Whether that was parsed: another extension may have rewritten it.
    """

    data: bytes
    as_in_file: bool = True


@dataclass(frozen=True)
class Unchecked:
    """An output that a reader sees and nothing is held against."""

    kind: str
    source: str
    line: int


@dataclass(frozen=True)
class Block:
    """An expected block that was met.

    Attributes:
        cell: The index of its cell; None if there is none before it.
        compared: Whether it was held against what its cell printed.
    """

    source: str
    line: int
    cell: int | None
    compared: bool


@dataclass
class PageRecord:
    """All that is remembered of one page.

    Attributes:
        edits: The pending edits of its blocks.
        file: What the page was parsed from, where there are edits.
        executed: Whether the cells of the page were run in this book's builds at all.
        checked: How many outputs of each kind an expected block is held against.
    """

    failures: list[Failure] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)
    file: FileAsRead | None = None
    checked: Counter[str] = field(default_factory=Counter)
    unchecked: list[Unchecked] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    executed: bool = True


def records(env: BuildEnvironment) -> dict[str, PageRecord]:
    """The records of all pages, by document name."""
    if not hasattr(env, "verified_book_records"):
        env.verified_book_records = {}  # type: ignore[attr-defined]  # Sphinx's way to extend it
    return env.verified_book_records  # type: ignore[attr-defined]  # likewise


def record_of(env: BuildEnvironment, docname: str | None = None) -> PageRecord:
    """The record of one page, by default the page that is being read."""
    return records(env).setdefault(docname or env.docname, PageRecord())


def follow_pages(app: Sphinx, kept: Callable[[BuildEnvironment], dict[str, Any]]) -> None:
    """Keeps what an environment has of pages, by document name, in step with them."""

    def forget(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
        kept(env).pop(docname, None)  # it will be read again or has gone

    def take(app: Sphinx, env: Any, docnames: set[str], other: BuildEnvironment) -> None:
        theirs = kept(other)  # what a parallel reader has learned
        kept(env).update({name: theirs[name] for name in docnames if name in theirs})

    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", take)


def setup(app: Sphinx) -> None:
    """Keeps the records in step with the pages."""
    follow_pages(app, records)
