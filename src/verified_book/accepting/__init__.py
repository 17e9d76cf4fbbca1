"""Rewrites expected blocks from what ran, for review with `git diff`."""

import os

from sphinx.application import Sphinx

from verified_book.records import PageRecord

VARIABLE = "VERIFIED_BOOK_ACCEPT"
_NO = {"", "0", "false", "no", "off"}


def is_on() -> bool:
    """Whether this build shall rewrite the expected blocks that differ or are missing."""
    return os.environ.get(VARIABLE, "").strip().lower() not in _NO


def rewrite(app: Sphinx, pages: dict[str, PageRecord]) -> None:
    """Carries out the pending edits of all pages; those that are refused stay failures."""
    for record in pages.values():
        record.failures += [edit.mends for edit in record.edits]
        record.edits = []
