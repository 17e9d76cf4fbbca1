"""Sphinx extension: an API whose page is a table of names, and each object has a page of its own.

The option `book_site_api` names pages that describe objects with autodoc, as they stand in the
book's folder. The site has a table there, with a line for each; the description, the object's
source and what the author wrote below it stand on a page beside it, which is named by the object.
References and `objects.inv` lead there, and so do the objects that a page's code imports.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata


def setup(app: "Sphinx") -> "ExtensionMetadata":
    """Registers the option, and what splits the pages that it names."""
    from book_site import __version__, settings
    from book_site.api import addresses, links, pages, source
    from verified_book.static_files import offer_static_files

    app.setup_extension("verified_book")
    settings.register(app, settings.API)
    app.connect("doctree-read", source.show)
    app.connect("env-updated", pages.outdated)
    app.connect("write-started", addresses.lead_to_pages)
    app.connect("doctree-resolved", pages.list_entries, priority=800)
    app.connect("html-collect-pages", pages.written)
    app.connect("html-page-context", pages.stand_beside, priority=800)  # in the theme's place
    # When symbols are tied to the source that they stand in.
    app.connect("html-page-context", links.link_names, priority=800)
    app.connect("build-finished", addresses.lead_back, priority=990)
    app.add_css_file("book_site_api.css")
    offer_static_files(app, __file__)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
