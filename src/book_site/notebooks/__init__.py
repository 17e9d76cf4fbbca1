"""Sphinx extension: offers each page with cells as a notebook that has run, to download."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata


def setup(app: "Sphinx") -> "ExtensionMetadata":
    """Keeps the notebooks that ran, and offers them when pages are written."""
    from book_site import __version__, settings
    from book_site.notebooks import executed, offer

    app.setup_extension("verified_book")
    settings.register(app, settings.NOTEBOOKS)
    for module in (executed, offer):
        module.setup(app)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
