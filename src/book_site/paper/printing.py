"""Prints a built book into one PDF."""

from pathlib import Path

from verified_book.commands.books import CommandError, shown
from verified_book.regular import SiteFileError


def print_book(site: str, out: str | None, folds: bool) -> int:
    """Writes the PDF of a built book, and offers it on the first page of the site.

    Returns:
        The exit status.

    Raises:
        CommandError: If there is no built book, or nothing to print it with.
    """
    try:
        from book_site.paper import pdf
    except ImportError as error:
        raise CommandError(
            f"pdf needs {error.name}; run: python -m pip install ./src/book_site"
        ) from None
    folder = Path(site)
    target = Path(out) if out else folder / "book.pdf"
    try:
        pages = pdf.write(folder, target, folds)
        pdf.offer(folder, target, pages)
    except SiteFileError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"{error.filename or target}: {error.strerror or error}") from error
    print(f"{shown(target)}: {pages} pages, {target.stat().st_size / 1e6:.1f} MB")
    return 0
