"""Sphinx extension: the name by which a book asks for its pages as notebooks.

What makes them is `book_site.notebooks`, which belongs to the dress of a site.
"""

from typing import TYPE_CHECKING

from verified_book.version import __version__

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata


def setup(app: "Sphinx") -> "ExtensionMetadata":
    """Sets up what makes the notebooks."""
    app.setup_extension("book_site.notebooks")  # Sphinx says so where it is not installed.
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
