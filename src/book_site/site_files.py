"""Reads the files of a built site, which may have been damaged."""

from pathlib import Path

from sphinx.errors import SphinxError

from verified_book.regular import read_regular


class SiteFileError(SphinxError):
    """A file of a built site cannot be read."""

    category = "Built site"


def text_of_site(file: Path) -> str:
    """The text of a file of a built site.

    Raises:
        SiteFileError: If there is none, or what is there is no text.
    """
    try:
        return read_regular(file).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not written in UTF-8"
        raise SiteFileError(
            f"{file}: {reason}. Remedy: remove it, and build the book again"
        ) from error
