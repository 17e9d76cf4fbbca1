"""Sphinx extension: what happens to a site when all of its pages are written.

Each page is read once: what screen readers stumble on is mended, formulas are rendered, scripts
that a page can do without for a moment wait until it was read, and the stylesheets become one file
with the rules that the pages need. So themes need no templates.
"""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment
    from sphinx.util.typing import ExtensionMetadata

_STATIC = "book_site_static_files"  # what the environment keeps of such files

# Themes made from pydata's know late whether a reader's system is dark. Until then they have no
# rules for code: its colors come, and its lines move.
_THEME = """\
(({ dataset }) => {
  if (dataset.theme === "auto") {
    dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  }
})(document.documentElement);"""


def postprocess(app: "Sphinx", exception: Exception | None) -> None:
    """Rewrites the pages of the site, and what they load."""
    from book_site.postprocess import accessibility, formulas, scripts, stylesheets
    from book_site.postprocess.minify import minified
    from book_site.site_files import text_of_site

    if exception is not None or app.builder.format != "html":
        return
    site = Path(app.outdir)
    files = [file for file in sorted(site.rglob("*.html")) if "_static" not in file.parts]
    written = {file: text_of_site(file) for file in files}
    pages = {
        file: minified(scripts.load_late(accessibility.mend(text), file.name))
        for file, text in written.items()
    }
    formulas.typeset(pages, site)
    stylesheets.bundle(pages, site / "_static")
    for file, text in pages.items():
        if text != written[file]:
            file.write_text(text, encoding="utf-8")


def outdated_by_static_files(app: "Sphinx", env: "BuildEnvironment") -> list[str]:
    """The first page, if a stylesheet or a script is another: or Sphinx would copy none of them."""
    if app.builder.format != "html":
        return []
    folders = [Path(app.confdir, folder) for folder in app.config.html_static_path]
    files = [file for folder in folders for file in sorted(folder.rglob("*.*s")) if file.is_file()]
    now = [(str(file), hashlib.sha256(file.read_bytes()).hexdigest()) for file in files]
    before = getattr(env, _STATIC, now)
    setattr(env, _STATIC, now)
    return [app.config.root_doc] if before != now else []


def setup(app: "Sphinx") -> "ExtensionMetadata":
    """Runs after all that writes pages."""
    from book_site import __version__
    from book_site.postprocess import accessibility, formulas

    app.setup_extension("verified_book")
    formulas.setup(app)
    app.add_js_file(None, body=_THEME, priority=100)
    app.add_js_file(None, body=accessibility.KEEPS_FOCUS)
    app.connect("env-updated", outdated_by_static_files)
    app.connect("build-finished", postprocess, priority=950)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
