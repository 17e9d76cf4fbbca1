"""Rewrites expected blocks from what ran, for review with `git diff`.

Only the blocks themselves are written, where their own parsers find them, into a file that replaces
the page at once. Where anything is not as it was parsed, nothing is written, and the failure that
the block should have mended says why.
"""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

    from verified_book.records import PageRecord

VARIABLE = "VERIFIED_BOOK_ACCEPT"
"""Set to accept; `dry` shows what would be written instead."""

TWICE = "VERIFIED_BOOK_ACCEPT_TWICE"
"""Set to run pages once more, and to mask by `...` what moved."""

_NO = {"", "0", "false", "no", "off"}


def _value(variable: str) -> str:
    return os.environ.get(variable, "").strip().lower()


def is_on() -> bool:
    """Whether this build shall rewrite the expected blocks that differ or are missing."""
    return _value(VARIABLE) not in _NO


def is_dry() -> bool:
    """Whether it shall only show what it would write."""
    return _value(VARIABLE) == "dry"


def is_twice() -> bool:
    """Whether pages shall run once more."""
    return is_on() and _value(TWICE) not in _NO


def rewrite(app: "Sphinx", pages: "dict[str, PageRecord]") -> None:
    """Carries out the pending edits of all pages; those that are refused stay failures."""
    if any(record.edits or record.files for record in pages.values()):
        # Here, since the directives import this package, and it needs them.
        from verified_book.accepting import updates

        updates.carry_out(app, pages, dry=is_dry())
