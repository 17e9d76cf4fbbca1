"""Sphinx extension: figures that a reader moves, without a server.

A cell ends in `book_site.figures.interactive`, which names the figure and hands over its data. The
option `book_site_interactive` says which scripts each figure needs, from the site's `_static`
folder. They are loaded by the pages that show the figure and by no other; the still picture stays
in print and where no script runs. Data of more than `book_site_interactive_inline` characters get
a file of their own, which a reader's click loads.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from book_site.flat_names import flat_name

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx
    from sphinx.config import Config
    from sphinx.util.typing import ExtensionMetadata

SCRIPT = "book_site_interactive.js"
_DATA = re.compile(r'<script type="application/json">([^<]*)</script>')
_FIGURE = re.compile(r'<div class="live-figure" data-live="([^"]*)"')


def load_nowhere(app: "Sphinx", config: "Config") -> None:
    """Takes back what Jupyter Book does with scripts in `_static`: every page would load them."""
    own = {name for scripts in config.book_site_interactive.values() for name in scripts}
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
    known = app.config.book_site_interactive
    scripts = dict.fromkeys([SCRIPT] if names else [])
    for name in names:
        if name in known:
            scripts |= dict.fromkeys(known[name])
            continue
        there = ", ".join(sorted(known)) or "none"
        logging.getLogger(__name__).warning(
            f"book_site.interactive: no figure is named {name!r}; there are {there}. "
            "Remedy: name its scripts in book_site_interactive",
            location=pagename,
        )
    for script in scripts:
        app.add_js_file(script, loading_method="defer")


def set_apart(
    app: "Sphinx",
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: "nodes.document | None",
) -> None:
    """Writes a figure's data to a file of its own, where the page would grow too large with it."""
    if app.builder.format != "html" or "live-figure" not in (context.get("body") or ""):
        return
    number = 0

    def moved(found: re.Match[str]) -> str:
        nonlocal number
        data = found[1]
        if len(data) <= app.config.book_site_interactive_inline:
            return found[0]
        number += 1
        name = f"_static/interactive_data/{flat_name(pagename)}-{number}.js"
        file = Path(app.outdir, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"VerifiedBook.arrived={data};\n", encoding="utf-8")
        source, size = context["pathto"](name, resource=True), f"{round(len(data) / 1000)} KB"
        return (
            f'<script type="application/json" data-source="{source}" data-size="{size}"></script>'
        )

    context["body"] = _DATA.sub(moved, context["body"])


def setup(app: "Sphinx") -> "ExtensionMetadata":
    """Registers the option; scripts are added as each page is written."""
    from book_site import __version__, settings
    from verified_book.static_files import offer_static_files

    app.setup_extension("verified_book")
    settings.register(app, settings.INTERACTIVE)
    app.connect("config-inited", load_nowhere)
    offer_static_files(app, __file__)
    app.connect("html-page-context", load_where_shown)
    app.connect("html-page-context", set_apart)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
