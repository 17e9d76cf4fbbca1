"""Sphinx extension: pages that print well, and the whole book as one PDF.

On paper a page is light, its lines wrap, its proofs and solutions are open, and blocks break where
a sheet ends. `python -m book_site pdf` makes the PDF of a book that was built.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata

STYLE = Path(__file__).parent / "static" / "book_site_paper.css"

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


# What themes print above a page: its title, and its table of contents without numbers.
_ABOVE = re.compile(
    r'<div id="jb-print-docs-body".*?</div>\s*</div>\s*</div>'
    r'(?=\s*(?:<[^>]*id="searchbox"|<article))',
    re.DOTALL,
)


def leave_out(app: "Sphinx", exception: Exception | None) -> None:
    """Takes out of the pages what is there to be printed, and is not printed with this style."""
    if exception is not None or app.builder.format != "html":
        return
    from verified_book.regular import text_of_site

    for page in Path(app.outdir).rglob("*.html"):
        text = text_of_site(page)
        if (shorter := _ABOVE.sub("", text)) != text:
            page.write_text(shorter, encoding="utf-8")


def setup(app: "Sphinx") -> "ExtensionMetadata":
    """Adds the style of printed pages, and a script of a few lines to each."""
    from book_site import __version__
    from verified_book.static_files import offer_static_files

    offer_static_files(app, __file__)
    app.add_css_file(STYLE.name)
    app.add_js_file(None, body=_LIGHT)
    app.connect("build-finished", leave_out, priority=920)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
