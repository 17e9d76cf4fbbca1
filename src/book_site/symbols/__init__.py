"""Sphinx extension: each symbol of an equation is tied to its variable in the source beside it.

Equation and source stand in a container of the class that the option `book_site_symbols` names.
Below it the directive `symbols` holds a table of symbols and variables; the shapes in it are those
that a cell has recorded by `record`. Pointing at a symbol marks its variable, and the other way
round; the table says the same where no script runs.
"""

from typing import TYPE_CHECKING

from book_site.symbols.recording import record

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata

__all__ = ["record"]


def setup(app: "Sphinx") -> "ExtensionMetadata":
    """Registers the directive, and what marks symbols in the pages that are written."""
    from book_site import __version__, settings
    from book_site.symbols import directive, pages
    from verified_book.static_files import offer_static_files

    app.setup_extension("verified_book")
    settings.register(app, settings.SYMBOLS)
    app.add_directive("symbols", directive.SymbolsDirective)
    app.connect("verified-book-page", directive.tie)
    app.connect("html-page-context", pages.mark)
    app.add_css_file("book_site_symbols.css")
    offer_static_files(app, __file__)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
