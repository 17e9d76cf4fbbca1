"""Which pages of a book are lessons: those with a page of the same name among the proofs."""

from pathlib import Path

PROOFS = "proofs"
OTHERS = (PROOFS, "notes", "reference")
"""The folders of pages that are no lessons."""


def pages(book: Path) -> list[Path]:
    """The pages that are lessons or may become one."""
    found = [page for suffix in ("md", "rst") for page in book.rglob(f"*.{suffix}")]
    return sorted(page for page in found if not _is_left_out(page.relative_to(book).parts[0]))


def lessons(book: Path) -> list[Path]:
    """The pages that have a twin among the proofs."""
    proven = {page.stem for page in (book / PROOFS).glob("*.*")}
    return [page for page in pages(book) if page.stem in proven]


def _is_left_out(first: str) -> bool:
    return first in OTHERS or first.startswith(("_", "."))
