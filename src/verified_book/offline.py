"""Keeps every request of the built site on its own host, and leaves out what no page needs.

MathJax comes from the PyPI package sphinx-mathjax-offline instead of a public server. Used as an
extension, that package would copy 24 MB; the pages need a tenth of it.
"""

import re
import shutil
from importlib import metadata
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ExtensionError

_PACKAGE = "sphinx-mathjax-offline"
_MATHJAX = "mathjax/tex-chtml.js"
# The extensions are fetched only by pages with commands such as \cancel.
_NEEDED = re.compile(r"static/(mathjax/(?:tex-chtml\.js|input/tex/extensions/.*\.js|.*\.woff))$")
_NOTICE = """\
MathJax 3.2.2, https://www.mathjax.org
Licensed under the Apache License, Version 2.0, https://www.apache.org/licenses/LICENSE-2.0
"""
# Draws icons that a site adds to Font Awesome's; the theme's own icons are web fonts.
_ICON_SCRIPT = re.compile(r'<script[^>]* src="[^"]*/scripts/fontawesome\.js[^"]*"></script>\s*')


def point_to_mathjax(app: Sphinx, config: Config) -> None:
    """Makes the pages load the site's own MathJax."""
    config.mathjax_path = _MATHJAX


def copy_mathjax(app: Sphinx) -> None:
    """Puts MathJax into the site before a page is written, which names the file's checksum."""
    if app.builder.format != "html":
        return
    static = Path(app.outdir, "_static")
    for source, place in mathjax_files():
        target = static / place
        if not target.is_file() or target.stat().st_size != source.stat().st_size:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    static.joinpath("mathjax", "NOTICE.txt").write_text(_NOTICE, encoding="utf-8")


def mathjax_files() -> list[tuple[Path, str]]:
    """The files of MathJax that pages may ask for, each with its place below `_static`."""
    try:
        files = metadata.files(_PACKAGE) or []
    except metadata.PackageNotFoundError:
        files = []
    found = [
        (Path(str(file.locate())), match[1])
        for file in files
        if (match := _NEEDED.search(file.as_posix()))
    ]
    if not any(place == _MATHJAX for _, place in found):
        raise ExtensionError(
            f"verified_book: {_MATHJAX} of the package {_PACKAGE} was not found. "
            f"Remedy: python -m pip install {_PACKAGE}"
        )
    return found


def load_mathjax(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Loads MathJax on every page: the titles and claims of other pages bring their maths along."""
    app.env.get_domain("math").data["has_equations"][pagename] = True


def slim(app: Sphinx, exception: Exception | None) -> None:
    """Takes the script for added icons and the source maps out of the site."""
    if exception is not None or app.builder.format != "html":
        return
    site = Path(app.outdir)
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        slimmer = _ICON_SCRIPT.sub("", text)
        if slimmer != text:
            page.write_text(slimmer, encoding="utf-8")
    for pattern in ("scripts/fontawesome.js*", "**/*.map"):
        for file in site.joinpath("_static").glob(pattern):
            file.unlink()


def setup(app: Sphinx) -> None:
    """Runs before Sphinx's own use of MathJax, and last of all when a build finishes."""
    app.connect("config-inited", point_to_mathjax)
    app.connect("builder-inited", copy_mathjax)
    app.connect("html-page-context", load_mathjax, priority=400)
    app.connect("build-finished", slim, priority=900)
