"""Sphinx extension: the name by which a book asks for its pages as notebooks.

What makes them is :mod:`book_site.notebooks`, which belongs to the dress of a site.
"""

from typing import TYPE_CHECKING

from sphinx.errors import ExtensionError

from verified_book.version import __version__

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata

_MAKER = "book_site.notebooks"


def setup(app: "Sphinx") -> "ExtensionMetadata":
    """Sets up what makes the notebooks."""
    try:
        app.setup_extension(_MAKER)
    except ExtensionError as error:
        if getattr(error.orig_exc, "name", "") not in ("book_site", _MAKER):
            raise
        raise ExtensionError(
            f"verified_book.notebooks: {_MAKER} is not installed. "
            "Remedy: install book_site beside verified_book, or leave this extension out"
        ) from error
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
