"""Sphinx extension: descriptions and previews of pages, a site map, and a page for what is missing.

Search engines and messengers show the first paragraph of a page, unless its front matter has a
description. The site map, canonical addresses, previews, and links of notebooks to the site need to
know where it will be: `html_baseurl`, or the environment variable VERIFIED_BOOK_URL, which comes
first. Without either the site has none of them, and works anywhere.
"""

import html
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from docutils import nodes
from sphinx.errors import ConfigError

from book_site import __version__
from book_site.made_pages import pages_of_objects

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.config import Config
    from sphinx.util.typing import ExtensionMetadata

URL = "VERIFIED_BOOK_URL"
_LENGTH = 160  # what search engines show
_MISSING = """\
<section id="page-not-found">
<h1>There is no such page</h1>
<p>It may have moved. <a class="reference internal" href="{start}">The first page</a> has the table
of contents, <a class="reference internal" href="{search}">the search</a> looks into every page.</p>
</section>
"""


def find_address(app: "Sphinx", config: "Config") -> None:
    """Takes the address of the site from the environment, and makes it that of a folder."""
    address = os.environ.get(URL) or config.html_baseurl
    if not address:
        return
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        raise ConfigError(
            f"book_site.found: {address!r} is no address of a site. "
            f"Remedy: set {URL} or html_baseurl to one such as https://example.org/book/"
        )
    config.html_baseurl = address.rstrip("/") + "/"


def describe(
    app: "Sphinx",
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Adds what search engines and messengers show of a page."""
    title = re.sub(r"<[^>]+>", "", context.get("title", "")) or app.config.project
    title = html.unescape(title)
    site = app.config.project
    text = shortened(context.get("description", ""), _LENGTH)
    text = text or (description(doctree) if doctree is not None else "")
    text = text or (f"{title}: a page of {site}." if title != site else str(site))
    about = {"og:title": title, "og:description": text, "og:site_name": site}
    about["og:type"] = "website" if pagename == app.config.root_doc else "article"
    if app.config.html_baseurl:
        about["og:url"] = urljoin(app.config.html_baseurl, app.builder.get_target_uri(pagename))
    tags = [f'<meta property="{name}" content="{html.escape(of)}" />' for name, of in about.items()]
    if 'name="description"' not in context.get("metatags", ""):
        tags.append(f'<meta name="description" content="{html.escape(text)}" />')
    context["metatags"] = "\n".join([context.get("metatags", ""), *tags, ""])


def description(doctree: nodes.document) -> str:
    """The beginning of the first paragraph that is more than a line, whole words of it."""
    for paragraph in doctree.findall(nodes.paragraph):
        if not isinstance(paragraph.parent, nodes.section | nodes.document):
            continue
        text = " ".join(paragraph.astext().split())
        if len(text) > 40:
            return shortened(text, _LENGTH)
    return ""


def shortened(text: str, length: int) -> str:
    """As many whole words as fit.

    Examples:
        >>> shortened("one two three", 9), shortened("one two", 9)
        ('one two …', 'one two')
    """
    if len(text) <= length:
        return text
    return text[: length - 1].rsplit(" ", 1)[0].rstrip(",;:") + " …"


def missing_page(app: "Sphinx") -> Iterator[tuple[str, dict[str, Any], str]]:
    """The page that a server shows in the place of one that is not there."""
    start, search = (app.builder.get_target_uri(name) for name in (app.config.root_doc, "search"))
    body = _MISSING.format(start=html.escape(start), search=html.escape(search))
    yield "404", {"title": "There is no such page", "body": body}, "page.html"


def finish(app: "Sphinx", exception: Exception | None) -> None:
    """Writes the site map, and lets the page of errors find its files from any address."""
    base = app.config.html_baseurl
    if exception is not None or app.builder.format != "html" or not base:
        return
    names = sorted([*app.env.found_docs, *pages_of_objects(app.env)])
    urls = [urljoin(base, app.builder.get_target_uri(name)) for name in names]
    listed = "\n".join(f"<url><loc>{html.escape(url)}</loc></url>" for url in urls)
    Path(app.outdir, "sitemap.xml").write_text(
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{listed}\n</urlset>\n',
        encoding="utf-8",
    )
    page = Path(app.outdir, "404.html")
    if page.is_file():
        text = page.read_text(encoding="utf-8")
        if "<base " not in text:
            tag = f'<head>\n<base href="{html.escape(base)}" />'
            page.write_text(text.replace("<head>", tag, 1), encoding="utf-8")


def setup(app: "Sphinx") -> "ExtensionMetadata":
    """Runs before and when pages are written."""
    app.connect("config-inited", find_address)
    app.connect("html-page-context", describe)
    app.connect("html-collect-pages", missing_page)
    app.connect("build-finished", finish)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
