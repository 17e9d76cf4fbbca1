"""Sphinx extension for books whose printed outputs and claims are checked by the build.

Works in Jupyter Book 1 and in plain Sphinx with MyST-NB. It knows nothing of what a book is about:
cells carry their evidence in the metadata of their outputs (see :mod:`verified_book.claims`).
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata

__version__ = "0.1.0"


def setup(app: "Sphinx") -> "ExtensionMetadata":
    """Registers the directives, the checks and what they need of Sphinx."""
    # Here, since a cell that imports `verified_book.figures` needs none of it, and Sphinx and
    # MyST-NB take two seconds of every chapter's time.
    from verified_book import (
        cache,
        claims,
        claims_index,
        expected,
        notebooks,
        numbering,
        offline,
        pages,
        reading,
        rst_cells,
        style,
    )

    app.setup_extension("myst_nb")
    for module in (
        cache,
        reading,
        pages,
        rst_cells,
        expected,
        claims,
        numbering,
        claims_index,
        notebooks,
        offline,
        style,
    ):
        module.setup(app)
    return {
        "version": __version__,
        "env_version": 1,
        "parallel_read_safe": True,
        "parallel_write_safe": True,
    }
