"""Sphinx extension: pages that print well, and the whole book as one PDF.

On paper a page is light, its lines wrap, its proofs and solutions are open, and blocks break where
a sheet ends. `python -m verified_book pdf` makes the PDF of a book that was built.
"""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata

STYLE = Path(__file__).parent / "static" / "verified_book_paper.css"

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


def setup(app: "Sphinx") -> "ExtensionMetadata":
    """Adds the style of printed pages, and a script of a few lines to each."""
    from verified_book import __version__
    from verified_book.static_files import offer_static_files

    offer_static_files(app, __file__)
    app.add_css_file(STYLE.name)
    app.add_js_file(None, body=_LIGHT)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
