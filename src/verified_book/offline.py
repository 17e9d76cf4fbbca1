"""Sphinx extension: keeps every request of the built site on its own host.

MathJax comes from the PyPI package sphinx-mathjax-offline instead of a public server. Used as an
extension, that package would copy 24 MB; the pages need a tenth of it. A `mathjax_path` that the
configuration names is left as it is, and so are other renderers of maths: with
`book_site.postprocess` the pages need none.
"""

import re
import shutil
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.ext import mathjax

from verified_book import __version__, settings
from verified_book.regular import text_of_site

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.config import Config
    from sphinx.util.typing import ExtensionMetadata

_PACKAGE = "sphinx-mathjax-offline"
_MATHJAX = "mathjax/tex-chtml.js"
# The extensions are fetched only by pages with commands such as \cancel.
_NEEDED = re.compile(r"static/(mathjax/(?:tex-chtml\.js|input/tex/extensions/.*\.js|.*\.woff))$")
_NOTICE = """\
MathJax 3.2.2, https://www.mathjax.org
Licensed under the Apache License, Version 2.0, https://www.apache.org/licenses/LICENSE-2.0
"""


def point_to_mathjax(app: "Sphinx", config: "Config") -> None:
    """Makes the pages load the site's own MathJax, unless the author has chosen one."""
    renders_elsewhere = "book_site.postprocess" in config.extensions
    if config.mathjax_path == mathjax.MATHJAX_URL and not renders_elsewhere:
        mathjax_files()  # says what is missing before anything is built
        config.mathjax_path = _MATHJAX


def _has_mathjax(app: "Sphinx") -> bool:
    """Whether the pages that are being written load the site's own MathJax."""
    renderer = getattr(app.builder, "math_renderer_name", None)
    return renderer == "mathjax" and app.config.mathjax_path == _MATHJAX


def copy_mathjax(app: "Sphinx") -> None:
    """Puts MathJax into the site before a page is written, which names the file's checksum."""
    if app.builder.format != "html" or not _has_mathjax(app):
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
            f"verified_book.offline: {_MATHJAX} of the package {_PACKAGE} was not found. "
            f"Remedy: python -m pip install {_PACKAGE}, or set mathjax_path"
        )
    return found


def load_mathjax(
    app: "Sphinx",
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Loads MathJax on every page: the titles and claims of other pages bring their maths along."""
    if _has_mathjax(app):
        app.env.get_domain("math").data["has_equations"][pagename] = True


def slim(app: "Sphinx", exception: Exception | None) -> None:
    """Takes out of the site what the configuration leaves out, with the tags that load it."""
    if exception is not None or app.builder.format != "html":
        return
    static = Path(app.outdir, "_static")
    patterns = app.config.verified_book_offline_leaves_out
    files = sorted({file for pattern in patterns for file in static.glob(pattern)})
    names = [file.relative_to(static).as_posix() for file in files if file.is_file()]
    if loaded := [name for name in names if name.endswith((".js", ".css"))]:
        tags = tags_of(loaded)
        for page in Path(app.outdir).rglob("*.html"):
            text = text_of_site(page)
            slimmer = tags.sub("", text)
            if slimmer != text:
                page.write_text(slimmer, encoding="utf-8")
    for name in names:
        static.joinpath(name).unlink()
    for folder in sorted(static.rglob("*"), reverse=True):  # those within a folder before it
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def tags_of(names: Iterable[str]) -> re.Pattern[str]:
    """The tags of a page that load one of the files in the site's `_static` folder.

    Examples:
        >>> tags_of(["a.js"]).sub("", '<script src="../_static/a.js?v=1"></script><b>')
        '<b>'
    """
    file = rf'="[^"]*_static/(?:{"|".join(map(re.escape, names))})(?:[?#][^"]*)?"'
    return re.compile(rf"<script[^>]* src{file}[^>]*></script>\s*|<link[^>]* href{file}[^>]*>\s*")


def setup(app: "Sphinx") -> "ExtensionMetadata":
    """Runs before Sphinx's own use of MathJax, and last of all when a build finishes."""
    app.setup_extension("verified_book")
    app.setup_extension("sphinx.ext.mathjax")
    settings.register(app, settings.OFFLINE)
    app.connect("config-inited", point_to_mathjax)
    app.connect("builder-inited", copy_mathjax)
    app.connect("html-page-context", load_mathjax, priority=400)
    app.connect("build-finished", slim, priority=900)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
