"""Sphinx extension: figures that a reader moves, without a server.

A cell ends in `verified_book.figures.live`, which names the figure and hands over its data. The
option `verified_book_live` says which scripts each figure needs, from the site's `_static` folder.
They are loaded by the pages that show the figure and by no other; the still picture stays in print
and where no script runs.
"""

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx
    from sphinx.config import Config
    from sphinx.util.typing import ExtensionMetadata

SCRIPT = "verified_book_live.js"
_FIGURE = re.compile(r'<div class="live-figure" data-live="([^"]*)"')


def load_nowhere(app: "Sphinx", config: "Config") -> None:
    """Takes back what Jupyter Book does with scripts in `_static`: every page would load them."""
    own = {name for scripts in config.verified_book_live.values() for name in scripts}
    config.html_js_files = [
        file
        for file in config.html_js_files
        if (file if isinstance(file, str) else file[0]) not in own
    ]


def load_where_shown(
    app: "Sphinx",
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: "nodes.document | None",
) -> None:
    """Loads the scripts of the figures that a page has."""
    from sphinx.util import logging

    names = list(dict.fromkeys(_FIGURE.findall(context.get("body") or "")))
    known = app.config.verified_book_live
    scripts = dict.fromkeys([SCRIPT] if names else [])
    for name in names:
        if name in known:
            scripts |= dict.fromkeys(known[name])
            continue
        there = ", ".join(sorted(known)) or "none"
        logging.getLogger(__name__).warning(
            f"verified_book.live: no figure is named {name!r}; there are {there}. "
            "Remedy: name its scripts in verified_book_live",
            location=pagename,
        )
    for script in scripts:
        app.add_js_file(script, loading_method="defer")


def setup(app: "Sphinx") -> "ExtensionMetadata":
    """Registers the option; scripts are added as each page is written."""
    from verified_book import __version__, settings
    from verified_book.static_files import offer_static_files

    app.setup_extension("verified_book")
    settings.register(app, settings.LIVE)
    app.connect("config-inited", load_nowhere)
    offer_static_files(app, __file__)
    app.connect("html-page-context", load_where_shown)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
