"""The index as it is shown: letters, and below each a list."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from docutils import nodes
from sphinx.util.nodes import make_refnode

from verified_book.headings import heading

if TYPE_CHECKING:
    from sphinx.application import Sphinx

    from book_site.general_index.entries import IndexEntry, Place

_SIGNS = "Signs"
_CLAIMS = ("claim", "claims")


def listing(
    app: "Sphinx", docname: str, level: int, entries: Iterable["IndexEntry"]
) -> list[nodes.Node]:
    """The letters as links, and the entries of each.

    Args:
        app: The application.
        docname: The page that shows them.
        level: The level of the headings.
        entries: The entries in their order.
    """
    by_letter = sorted(entries, key=lambda entry: letter(entry.word) != _SIGNS)
    groups = [(key, list(group)) for key, group in groupby(by_letter, lambda e: letter(e.word))]
    links = nodes.paragraph(classes=["general-index-letters"])
    shown: list[nodes.Node] = [links]
    for key, group in groups:
        anchor = f"index-{key.lower()}"
        links += [nodes.reference("", key, refid=anchor, internal=True), nodes.Text(" ")]
        title = heading(level, key, ids=[anchor])
        lines = nodes.bullet_list(classes=["general-index", "simple"])
        lines += [_line(app, docname, entry) for entry in group]
        shown += [title, lines]
    return shown if groups else []


def letter(word: str) -> str:
    """The letter that a word stands under; all that begins with another sign stands together.

    Examples:
        >>> letter("mask"), letter("__call__"), letter("ε")
        ('M', 'Signs', 'Signs')
    """
    first = word[0].upper()
    return first if first.isascii() and first.isalpha() else _SIGNS


def _line(app: "Sphinx", docname: str, entry: "IndexEntry") -> nodes.list_item:
    line = nodes.paragraph()
    if entry.is_name and len(entry.places) == 1:
        (place,) = entry.places
        line += _link(app, docname, place, nodes.literal("", entry.word))
        line += nodes.Text(f", {place.title}" if place.title else "")
    else:
        word = nodes.literal("", entry.word) if entry.is_name else nodes.Text(entry.word)
        line += _link(app, docname, entry.told, word) if entry.told else word
        line += _links(app, docname, ", ", "; ", entry.places)
        claims = f"{'; ' if entry.places else ', '}{_CLAIMS[len(entry.claims) > 1]} "
        line += _links(app, docname, claims, ", ", entry.claims)
    return nodes.list_item("", line)


def _links(
    app: "Sphinx", docname: str, lead: str, between: str, places: Sequence["Place"]
) -> Iterable[nodes.Node]:
    for number, place in enumerate(places):
        yield nodes.Text(between if number else lead)
        yield _link(app, docname, place, nodes.Text(place.title))


def _link(app: "Sphinx", docname: str, place: "Place", shown: nodes.Node) -> nodes.reference:
    return make_refnode(app.builder, docname, place.page, place.anchor, nodes.inline("", "", shown))
