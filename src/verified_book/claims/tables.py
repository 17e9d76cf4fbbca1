"""What a page shows of claims that stand on others: verdicts and copied statements, in tables."""

from collections.abc import Sequence

from docutils import nodes
from sphinx import addnodes
from sphinx.util import docname_join

from verified_book.claims.claim import VERDICTS, Claim

STATES = {**VERDICTS, "broken": "not proven"}


def state(claim: Claim) -> str:
    """The verdict of a claim, or that it is broken: one of `STATES`, if nothing is misspelt."""
    return "broken" if claim.broken else claim.verdict


def verdict(claim: Claim) -> nodes.inline:
    """The verdict of a claim in words, with its look."""
    name = state(claim)
    return nodes.inline("", STATES.get(name, name), classes=["claim-verdict", f"claim-{name}"])


def copied(parts: list[nodes.Node], docname: str) -> nodes.container:
    """A copy of a part of a claim for another page: its references lead from there."""
    copy = nodes.container("", *[node.deepcopy() for node in parts])
    for inner in list(copy.findall(nodes.Element, include_self=False)):
        inner["ids"] = []
        if isinstance(inner, addnodes.pending_xref):
            if inner["reftype"] == "doc" and inner["refdomain"] == "std":
                inner["reftarget"] = "/" + docname_join(inner["refdoc"], inner["reftarget"])
            inner["refdoc"] = docname
        elif isinstance(inner, nodes.math_block):
            inner["number"] = inner["label"] = None
        elif isinstance(inner, nodes.footnote_reference | nodes.footnote):
            inner.parent.remove(inner)
        elif "refid" in inner:  # to a place on its own page
            inner.replace_self(inner.children)
    return copy


def said(claim: Claim, docname: str) -> list[nodes.Node]:
    """What a claim says: what was stated, if it differs, and then what is so."""
    found = copied(claim.statement, docname)
    if not claim.stated:
        return found.children
    label(found, "In fact:")
    line = nodes.paragraph("", claim.stated_title, *claim.stated_nodes, classes=["claim-stated"])
    return [*copied([line], docname).children, *found.children]


def label(statement: nodes.Element, words: str) -> None:
    """Puts words before a statement, into its first paragraph if it begins with one."""
    first = statement[0] if statement.children else None
    if not isinstance(first, nodes.paragraph):
        statement.insert(0, first := nodes.paragraph())
    first.insert(0, [nodes.inline("", words, classes=["claim-field"]), nodes.Text(" ")])


def text(words: str) -> nodes.paragraph:
    """A cell of words."""
    return nodes.paragraph("", words)


def make_table(head: list[str], rows: Sequence[Sequence[nodes.Element]], name: str) -> nodes.table:
    """A table of cells, with a class of its own."""
    group = nodes.tgroup(cols=len(head))
    group += [nodes.colspec(colwidth=20) for _ in head]  # characters, where text is plain
    header = nodes.row("", *[nodes.entry("", text(title)) for title in head])
    group += nodes.thead("", header)
    group += nodes.tbody(
        "", *[nodes.row("", *[nodes.entry("", cell) for cell in row]) for row in rows]
    )
    return nodes.table("", group, classes=[name])
