"""Builds the site of a book once, in a process that `watch` starts for each change."""

import json
import sys
from pathlib import Path

from verified_book.commands import reporting
from verified_book.commands.books import book_of
from verified_book.commands.running import Listener, build_site


def build(path: str, out: str, roots: str) -> int:
    """Builds the book of a page or folder.

    Args:
        path: The page or folder.
        out: Where the site shall be.
        roots: A file for the folders that hold what the pages depend on.

    Returns:
        The exit status.
    """
    terminal = reporting.Terminal(sys.stdout, sys.stderr)
    listener = Listener(terminal.warn, terminal.reads, terminal.says)
    book = book_of(Path(path))
    outcome, patterns = build_site(book, Path(out), listener)
    found = {str(_root(book.folder, pattern)) for pattern in patterns}
    Path(roots).write_text(json.dumps(sorted(found)), encoding="utf-8")
    return reporting.told([outcome], terminal)


def _root(base: Path, pattern: str) -> Path:
    """The folder or file above all that a pattern can match.

    Examples:
        >>> _root(Path("/book"), "../src/**/*.py").as_posix()
        '/book/../src'
    """
    fixed: list[str] = []
    for part in Path(pattern).parts:
        if any(sign in part for sign in "*?["):
            break
        fixed.append(part)
    return base.joinpath(*fixed)
