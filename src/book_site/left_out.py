"""Sphinx extension: takes files out of the built site that no page needs, and what loads them."""

import re
from collections.abc import Iterable
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

from book_site import __version__, settings
from book_site.site_files import text_of_site


def slim(app: Sphinx, exception: Exception | None) -> None:
    """Takes out of the site what the configuration leaves out, with the tags that load it."""
    if exception is not None or app.builder.format != "html":
        return
    static = Path(app.outdir, "_static")
    patterns = app.config.book_site_leaves_out
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


def setup(app: Sphinx) -> ExtensionMetadata:
    """Runs when all pages are written."""
    settings.register(app, settings.LEFT_OUT)
    app.connect("build-finished", slim, priority=900)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
