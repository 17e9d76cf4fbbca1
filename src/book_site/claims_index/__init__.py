"""Sphinx extension: an index of claims can be filtered, and its rows fold up all but a sentence."""

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

from book_site import __version__
from book_site.claims_index import filter, rows
from verified_book.static_files import offer_static_files


def setup(app: Sphinx) -> ExtensionMetadata:
    """Hooks into the index of claims."""
    app.setup_extension("verified_book.claims")
    rows.setup(app)
    filter.setup(app)
    offer_static_files(app, __file__)
    app.add_css_file("book_site_claims_index.css")
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
