"""Makes a table of a page that describes objects, and a page of each description."""

import html
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from docutils.utils import new_document
from sphinx import addnodes
from sphinx.util import logging
from sphinx.util.osutil import relative_uri

from book_site.api.addresses import described, has_pages
from book_site.api.entries import Entry, entries
from book_site.made_pages import MADE, made_before
from verified_book.regular import discard
from verified_book.sealed import write_sealed

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

logger = logging.getLogger(__name__)

_WAITING = "book_site_api_waiting"
_BESIDE = "book_site_api_beside"
_FEW = 2  # methods that need no table
_END = re.compile(r"\.(?=\s+[A-Z]|\s*$)")
_BETWEEN = addnodes.index | nodes.comment | nodes.system_message | nodes.target


@dataclass(frozen=True)
class _Waiting:
    """An object whose page is to be written.

    Attributes:
        listing: The page that lists it.
        heading: The section there.
        page: Its own page.
    """

    listing: str
    heading: str
    entry: Entry
    page: str


def list_entries(app: "Sphinx", doctree: nodes.document, docname: str) -> None:
    """Puts tables in the places of descriptions, which wait for their pages."""
    if docname not in app.config.book_site_api or not has_pages(app):
        return
    found = list(entries(doctree))
    places = {name: page for name, (page, _) in described(app).items()}
    waiting = [
        _Waiting(docname, _heading(entry.node), entry, places[entry.name]) for entry in found
    ]
    setattr(app.builder, _WAITING, [*getattr(app.builder, _WAITING, []), *waiting])
    own = app.builder.get_target_uri(docname)
    for run in _runs(found):
        addresses = [
            relative_uri(own, app.builder.get_target_uri(places[entry.name])) for entry in run
        ]
        run[0].node.parent.replace(run[0].node, _table(run, addresses))
        for entry in run[1:]:
            entry.node.parent.remove(entry.node)


def _runs(found: Sequence[Entry]) -> list[list[Entry]]:
    """Descriptions that stand together."""
    runs: list[list[Entry]] = []
    for entry in found:
        if runs and _follows(runs[-1][-1].node, entry.node):
            runs[-1].append(entry)
        else:
            runs.append([entry])
    return runs


def _follows(first: nodes.Node, second: nodes.Node) -> bool:
    if first.parent is not second.parent:
        return False
    siblings = first.parent.children
    between = siblings[siblings.index(first) + 1 : siblings.index(second)]
    return all(isinstance(node, _BETWEEN) for node in between)


def _heading(node: nodes.Node) -> str:
    """The section that an entry stands in."""
    section = node.parent
    while section is not None and not isinstance(section, nodes.section):
        section = section.parent
    return section["ids"][0] if section is not None else ""


def _table(listed: Sequence[Entry], addresses: Sequence[str], anchors: bool = True) -> nodes.table:
    """A line for each: its name, which leads to it, and its first sentence.

    Args:
        listed: What is described.
        addresses: Where.
        anchors: Whether a row has the anchor that its description had on this page.
    """
    body = nodes.tbody()
    for entry, address in zip(listed, addresses, strict=True):
        name = nodes.literal("", entry.title.rpartition(".")[2])
        link = nodes.reference("", "", name, internal=True, refuri=address)
        row = nodes.row(ids=[entry.name] if anchors else [])
        row += nodes.entry("", nodes.paragraph("", "", link))
        row += nodes.entry("", nodes.paragraph("", "", *summary(entry.content)))
        body += row
    group = nodes.tgroup("", *(nodes.colspec(colwidth=w) for w in (30, 70)), body, cols=2)
    return nodes.table("", group, classes=["api-summary"])


def summary(content: nodes.Element) -> Iterator[nodes.Node]:
    """The first sentence of a description."""
    first = next((node for node in content if isinstance(node, nodes.paragraph)), None)
    for child in first.children if first else ():
        end = _END.search(child) if isinstance(child, nodes.Text) else None
        if end:
            yield nodes.Text(str(child)[: end.end()])
            return
        yield child.deepcopy()


def written(app: "Sphinx") -> Iterator[tuple[str, dict[str, Any], str]]:
    """The pages of the objects whose page was written; those of former objects go."""
    waiting: list[_Waiting] = getattr(app.builder, _WAITING, [])
    if not waiting:
        return
    setattr(app.builder, _WAITING, [])
    _remove_former(app, {each.page for each in waiting})
    for before, each, after in zip([None, *waiting], waiting, [*waiting[1:], None], strict=False):
        near = [
            one for one in waiting if (one.listing, one.heading) == (each.listing, each.heading)
        ]
        context = _context(app, before, each, after)
        yield each.page, {**context, _BESIDE: _beside(app, each, near)}, "page.html"


def _context(
    app: "Sphinx", before: _Waiting | None, shown: _Waiting, after: _Waiting | None
) -> dict[str, Any]:
    """What the theme needs of a page, and its neighbors."""

    def address(page: str) -> str:
        target = app.builder.get_target_uri
        return relative_uri(target(shown.page), target(page))

    def link(to: _Waiting | None) -> dict[str, str] | None:
        return {"link": address(to.page), "title": to.entry.title} if to else None

    entry, where = shown.entry, app.env.titles[shown.listing].astext()
    first = " ".join("".join(part.astext() for part in summary(entry.content)).split())
    listing = nodes.reference("", where, internal=True)
    listing["refuri"] = f"{address(shown.listing)}#{shown.heading}"
    return {
        "title": entry.title,
        "body": _body(app, shown, listing),
        "description": f"{entry.title}, in {entry.module}: {first}",
        "parents": [{"link": address(shown.listing), "title": where}],
        "prev": link(before),
        "next": link(after),
    }


def _beside(app: "Sphinx", shown: _Waiting, near: Sequence[_Waiting]) -> str:
    """The table of contents beside a page: all names, and those of the same section."""
    target = app.builder.get_target_uri

    def item(page: str, title: str) -> str:
        address = html.escape(relative_uri(target(shown.page), target(page)) or "#")
        current = " current active" if page == shown.page else ""
        return (
            f'<li class="toctree-l1{current}"><a class="reference internal" href="{address}">'
            f"{html.escape(title)}</a></li>"
        )

    first = item(shown.listing, app.env.titles[shown.listing].astext())
    rest = "".join(item(each.page, each.entry.title) for each in near)
    return f'<ul class="nav bd-sidenav">{first}{rest}</ul>'


def stand_beside(
    app: "Sphinx",
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Puts the names of the section in the place of the whole book's chapters."""
    if beside := context.get(_BESIDE):
        context["generate_toctree_html"] = lambda *_, **__: beside


def _body(app: "Sphinx", shown: _Waiting, listing: nodes.reference) -> str:
    """The text of an object's page."""
    entry = shown.entry
    section = nodes.section("", nodes.title("", "", nodes.Text(entry.title)))
    section["ids"] = [f"{entry.title}-page"]
    module = nodes.literal("", entry.module)
    section += nodes.paragraph("", "", listing, nodes.Text(" · "), module, classes=["api-place"])
    if len(methods := entry.methods) > _FEW:
        section += _table(methods, [f"#{method.name}" for method in methods], anchors=False)
    section += entry.node
    document = new_document(shown.page)
    document += section
    builder: Any = app.builder
    document.settings = builder.docsettings
    builder.current_docname, builder.secnumbers, builder.fignumbers = shown.page, {}, {}
    translator = builder.create_translator(document, builder)
    document.walkabout(translator)
    return "".join(translator.fragment)


def _remove_former(app: "Sphinx", names: set[str]) -> None:
    """Removes the pages of objects that are described no more."""
    for name in (made_before(app.env) or set()) - names:
        Path(app.builder.get_outfilename(name)).unlink(missing_ok=True)  # type: ignore[attr-defined]
    write_sealed(Path(app.doctreedir, MADE), sorted(names))


def outdated(app: "Sphinx", env: "BuildEnvironment") -> list[str]:
    """The pages that list objects, if it is not known any more which pages were made of them."""
    if not has_pages(app) or made_before(env) is not None:
        return []
    file = Path(app.doctreedir, MADE)
    if os.path.lexists(file):
        logger.info("%s is damaged: the pages of all objects are written again", file)
        discard(file)
    return [name for name in app.config.book_site_api if name in env.found_docs]
