"""The rows of an index: each folds up what is known of a claim below its first sentence."""

import re
from itertools import islice

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

from verified_book.claims import listing
from verified_book.claims.claim import Claim

# Behind the end of a sentence; "e.g." and the like end none.
_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!\b[a-z]\.)(?<!\bvs\.)(?<!\bcf\.)(?<!\beq\.)\s+")


class claim_more(nodes.container):  # noqa: N801
    """The rest of what is known of a claim, folded below its first sentence."""


class claim_first(nodes.paragraph):  # noqa: N801
    """The sentence that stands on a fold; elsewhere a paragraph."""


def fold(app: Sphinx, container: nodes.container, claims: list[Claim]) -> None:
    """Folds the rows of an index."""
    tables = container.findall(nodes.tbody)
    cells = [next(islice(row.findall(nodes.entry), 2, None)) for body in tables for row in body]
    for cell, claim in zip(cells, claims, strict=True):
        cell.clear()
        cell += folded(claim, app.env.docname)


def folded(claim: Claim, docname: str) -> nodes.container:
    """The first sentence of a claim, and below it all else that is known of it."""
    statement = listing.statement(claim, docname)
    rest = claim_more("", is_open=claim.broken)
    found = nodes.container("")
    paragraph = statement.children[0] if claim.statement else None
    if isinstance(paragraph, nodes.paragraph):
        statement.remove(paragraph)
        first, others = first_sentence(paragraph)
        rest += claim_first("", "", *first)
        rest += [nodes.paragraph("", "", *others)] if others else []
    else:
        shown = len(claim.statement)
        found += statement.children[:shown]
        statement.children[:shown] = []
        rest += claim_first("", "measured")
    rest += statement.children
    found += rest
    return found


def first_sentence(paragraph: nodes.Element) -> tuple[list[nodes.Node], list[nodes.Node]]:
    """What stands in the first sentence of a paragraph, and what follows it."""
    children = list(paragraph.children)
    for place, child in enumerate(children):
        end = _SENTENCE_END.search(child.astext()) if isinstance(child, nodes.Text) else None
        if end is None or (end.end() == len(child.astext()) and place + 1 == len(children)):
            continue
        before, after = child.astext()[: end.start()], child.astext()[end.end() :]
        first = [*children[:place], nodes.Text(before)]
        return first, [nodes.Text(after), *children[place + 1 :]]
    return children, []


def open_more(self: HTML5Translator, node: claim_more) -> None:
    """Begins a fold."""
    self.body.append(f'<details class="claim-more"{" open" if node["is_open"] else ""}>\n')


def close_more(self: HTML5Translator, node: claim_more) -> None:
    """Ends a fold."""
    self.body.append("</details>\n")


def open_first(self: HTML5Translator, node: claim_first) -> None:
    """Begins what stands on a fold."""
    self.body.append("<summary>")


def close_first(self: HTML5Translator, node: claim_first) -> None:
    """Ends what stands on a fold."""
    self.body.append("</summary>\n")


def setup(app: Sphinx) -> None:
    """Registers the nodes; where no HTML is written, Sphinx takes what they are made from."""
    app.add_node(claim_first, html=(open_first, close_first))
    app.add_node(claim_more, html=(open_more, close_more))
    app.connect(listing.LISTED, fold)
