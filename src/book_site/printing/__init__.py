"""Sphinx extension: pages that print well, and what the book as one PDF is printed from.

On paper a page is light, its lines wrap, its proofs and solutions are open, and blocks break where
a sheet ends. `python -m book_site pdf` prints what the builder `singlehtml` makes of the book.
"""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata

STYLE = Path(__file__).parent / "static" / "book_site_print.css"

# Themes mark the dark mode at the root; the style of a sheet is that of the light one.
_LIGHT = """\
(() => {
  const root = document.documentElement;
  let theme;
  addEventListener("beforeprint", () => {
    theme ??= root.dataset.theme;
    root.dataset.theme = "light";
  });
  addEventListener("afterprint", () => {
    if (theme) root.dataset.theme = theme;
    theme = undefined;
  });
})();"""


def write_all_nodes(app: "Sphinx") -> None:
    """Lets `singlehtml` write each node as `html` does, where an extension names only one of both.

    Sphinx takes the functions for `html` unless there are any for `singlehtml`, of any node.
    """
    functions = app.registry.translation_handlers
    functions["singlehtml"] = {**functions.get("html", {}), **functions.get("singlehtml", {})}


def setup(app: "Sphinx") -> "ExtensionMetadata":
    """Adds the style of printed pages, and a script of a few lines to each."""
    from book_site import __version__
    from verified_book.static_files import offer_static_files

    offer_static_files(app, __file__)
    app.add_css_file(STYLE.name)
    app.add_js_file(None, body=_LIGHT)
    app.connect("builder-inited", write_all_nodes)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
