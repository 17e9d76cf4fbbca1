"""Puts the pages of a built site into one, in the order of the book, as it stands on paper."""

import html
import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup, Tag

from book_site.flat_names import flat_name
from book_site.paper import STYLE
from verified_book.regular import text_of_site

_NOT_PRINTED = ".headerlink, script, button, form, nav, .toctree-wrapper, .book-pdf"
_SOURCES = "details.hide:not([open])"
# Solutions stay, and so does what belongs to the row of a table.
_FOLDS = "details:not([open]):not(.claim-more), .admonition:is(.dropdown, .toggle):not(.solution)"
_LISTED = "api-summary"  # of `book_site.api`
_OBJECTS = f"table.{_LISTED} td:first-child a[href]"
_FULL = "claims-index"  # its columns have no room for numbers of pages
# A number has three places, so that those of the first printing can take the place of these.
_UNKNOWN = "000"
_STYLE = """
@page { size: A4; margin: 15mm 16mm 17mm; }
@media print {
  html { font-size: 11.5px; }
  html, body { background: #fff; }
  body { display: block; line-height: 1.4; }
  article, .book-contents { break-before: page; padding: 0 !important; }
  article p { margin-bottom: .6rem; }
  article :is(h2, h3, h4) { margin: 1.2rem 0 .5rem !important; }
  article pre { line-height: 1.25; margin: 0; padding: .4rem .6rem !important; }
  article :is(div.cell, div.settled.container, div.admonition) { margin: .6rem 0 !important; }
  article :is(td, th) { padding: .15rem .4rem !important; }
  article .cell_output { margin: .2rem 0 !important; }
  article .page-figure { max-width: 11.5cm !important; }
  article .katex-display { margin: .3rem 0 !important; }
  .book-cover { padding-top: 30vh; text-align: center; }
  .book-contents > div { columns: 2; column-gap: 2em; line-height: 1.3; }
  .book-contents li { display: flex; gap: .5em; list-style: none; }
  .book-contents li > a { flex: 1; }
  .book-contents ul { margin: 0; padding: 0; }
  .book-contents ul ul { font-size: .85em; padding-left: 2em; }
  .book-contents p { break-after: avoid; font-weight: 600; margin: .6rem 0 .1rem; }
  .page-number { font-variant-numeric: tabular-nums; white-space: pre; }
  a .page-number, .page-reference { color: #555; font-size: .85em; }
}
"""


@dataclass(frozen=True)
class Section:
    """A chapter of the book, or a part of one, with where it begins.

    Attributes:
        part: What the book calls the chapters from here on; empty if they belong to those before.
    """

    title: str
    anchor: str
    sections: list["Section"] = field(default_factory=list)
    part: str = ""


@dataclass(frozen=True)
class Assembled:
    """The book as one page.

    Attributes:
        title: The title of the book.
        chapters: The chapters in their order.
        page: The text of the page, whose addresses are from the folder of the site.
    """

    title: str
    chapters: list[Section]
    page: str


def assemble(site: Path, folds: bool = True) -> Assembled:
    """Makes one page of a site.

    Args:
        site: The folder of the built site.
        folds: Whether proofs are printed, and what else pages fold; solutions are.

    Raises:
        FileNotFoundError: If there is no built site.
        ValueError: If its first page lists no chapters.
    """
    start = site / "index.html"
    if not start.is_file():
        raise FileNotFoundError(f"{start}: there is no such file; build the book first")
    first = _read(start)
    names = list(_in_order(first, site))
    if len(names) < 2:
        raise ValueError(f"{start}: lists no chapters; it needs a theme made from pydata's")
    named = first.select_one(".logo__title") or first.title
    title = " ".join(named.get_text().split()) if named else "A book"
    chapters, articles = [], []
    places = {name: name for name, _ in names} | _described(site, [name for name, _ in names])
    for number, (name, part) in enumerate(names):
        article = _article(site, name, places, folds)
        chapters.append(_numbered(article, number, part, _key(name)))
        articles.append(str(article))
    styles = "".join(map(str, first.select('link[rel="stylesheet"]')))
    page = (
        f'<!DOCTYPE html><html lang="en" data-theme="light"><head><meta charset="utf-8">'
        f"<title>{html.escape(title)}</title>{styles}"
        f"<style>{STYLE.read_text(encoding='utf-8')}{_STYLE}</style></head>"
        f'<body><div class="bd-content"><main class="bd-main">'
        f'<div class="book-cover"><h1>{html.escape(title)}</h1></div>'
        f"{_contents(chapters)}{''.join(articles)}</main></div></body></html>"
    )
    return Assembled(title, chapters, page)


def _read(file: Path) -> BeautifulSoup:
    return BeautifulSoup(text_of_site(file), "html.parser")


def _in_order(first: BeautifulSoup, site: Path) -> Iterator[tuple[str, str]]:
    """Each page with the name of the part that begins with it, as the sidebar has them."""
    yield "index.html", ""
    seen = {"index.html"}
    part = ""
    for tag in first.select("nav.bd-links .caption-text, nav.bd-links a.reference.internal"):
        if tag.name != "a":
            part = tag.get_text().strip()
            continue
        name = unquote(urlsplit(str(tag["href"])).path)
        if name and name not in seen and (site / name).is_file():
            seen.add(name)
            yield name, part
            part = ""


def _key(name: str) -> str:
    return flat_name(name.removesuffix(".html"))


def _described(site: Path, names: list[str]) -> dict[str, str]:
    """The pages of an API's objects, each with the page that lists it."""
    return {
        _path(name, str(link["href"])): name
        for name in names
        if f'class="{_LISTED}' in text_of_site(site / name)
        for link in _read(site / name).select(_OBJECTS)
    }


def _path(name: str, address: str) -> str:
    """The page that an address on a page leads to."""
    path = unquote(urlsplit(address).path)
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name


def _describe(found: Tag, site: Path, name: str) -> None:
    """Puts descriptions of objects, which have pages of their own, in the places of lists."""
    for table in found.select(f"table.{_LISTED}"):
        for link in table.select(_OBJECTS):
            page = _read(site / _path(name, str(link["href"])))
            for description in page.select("article > section > dl"):
                for source in description.select("details.api-source"):
                    source.decompose()
                table.insert_before(description)
        table.decompose()


def _article(site: Path, name: str, places: Mapping[str, str], folds: bool) -> Tag:
    """The text of a page, whose ids and addresses are good in one page with all others.

    Args:
        site: The folder of the site.
        name: The page.
        places: For each page that is printed the one in which it stands.
        folds: Whether what is folded is printed.
    """
    found = _read(site / name).select_one("article")
    if found is None:
        raise ValueError(f"{site / name}: has no article")
    _describe(found, site, name)
    for tag in found.select("pre a.api"):  # a name in code is no place to turn pages from
        tag.unwrap()
    for tag in found.select(_NOT_PRINTED):
        tag.decompose()
    for tag in found.select(_SOURCES if folds else f"{_SOURCES}, {_FOLDS}"):
        if not tag.decomposed:
            tag.decompose()
    key = _key(name)
    for tag in found.select("[id]"):
        if not tag.find_parent("svg"):  # a drawing refers to its own, which tell what they are
            tag["id"] = f"{key}--{tag['id']}"
    for tag in found.select("[href], [src], a"):
        for attribute in ("href", "src", "xlink:href"):
            if attribute in tag.attrs and (tag.name == "a" or not tag.find_parent("svg")):
                _readdress(tag, attribute, name, places)
    found["id"] = key
    return found


def _readdress(tag: Tag, attribute: str, name: str, places: Mapping[str, str]) -> None:
    """Makes an address one within the page, or one from the folder of the site."""
    address = urlsplit(str(tag[attribute]))
    if address.scheme or address.netloc:
        return
    path = unquote(address.path)
    target = _path(name, str(tag[attribute]))
    if tag.name != "a" or target not in places:
        if path and tag.name == "a":  # a file of the site, which paper has not
            del tag[attribute]
        elif path:
            tag[attribute] = target
        return
    target = places[target]
    tag[attribute] = f"#{_key(target)}" + (f"--{address.fragment}" if address.fragment else "")
    if target != name and not tag.find_parent("svg") and not tag.find_parent(class_=_FULL):
        # The page that it leads to, which is known when the book was printed.
        text = f' <span class="page-reference">(p. {_number(str(tag[attribute]))})</span>'
        tag.insert_after(BeautifulSoup(text, "html.parser"))


def _number(address: str) -> str:
    return f'<span class="page-number" data-to="{html.escape(address[1:])}">{_UNKNOWN}</span>'


def _numbered(article: Tag, number: int, part: str, anchor: str) -> Section:
    """Numbers the chapter and its sections; the first page of the book has none."""
    heading = article.find("h1")
    title = heading.get_text().strip() if heading else anchor
    if number and isinstance(heading, Tag):
        heading.insert(0, f"{number} ")
        title = f"{number} {title}"
    sections = []
    for count, each in enumerate(article.select("section > h2"), 1):
        words = each.get_text().strip()
        if number:
            each.insert(0, f"{number}.{count} ")
            words = f"{number}.{count} {words}"
        if each.parent is not None and each.parent.get("id"):
            sections.append(Section(words, str(each.parent["id"])))
    return Section(title, anchor, sections, part)


def _contents(chapters: list[Section]) -> str:
    """The table of contents, with numbers of pages."""
    text = ""
    for chapter in chapters:
        if chapter.part:
            text += f"<p>{html.escape(chapter.part)}</p>"
        inner = "".join(f"<li>{_line(section)}</li>" for section in chapter.sections)
        text += f"<ul><li>{_line(chapter)}</li></ul>" + (
            f"<ul><ul>{inner}</ul></ul>" if inner else ""
        )
    return f'<div class="book-contents"><h1>Contents</h1><div>{text}</div></div>'


def _line(section: Section) -> str:
    link = f'<a href="#{html.escape(section.anchor)}">{html.escape(section.title)}</a>'
    return f"{link} {_number(f'#{section.anchor}')}"
