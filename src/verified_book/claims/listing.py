"""The index of claims as it is shown: counts, a form that filters, and tables.

Each row folds up what is known of a claim below its first sentence.
"""

import re
from collections import Counter

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.nodes import make_refnode
from sphinx.writers.html5 import HTML5Translator

from verified_book.claims.claim import VERDICTS, Claim
from verified_book.claims.domain import claims_domain
from verified_book.claims.filter import Choice, form, in_claims
from verified_book.claims.folds import pass_by
from verified_book.claims.measurements import (
    STRENGTHS,
    claim_strength,
    in_count,
    in_words,
    kind_in_words,
    lines,
)
from verified_book.claims.tables import STATES, copied, make_table, state, text, verdict
from verified_book.headings import added_heading
from verified_book.toc_order import reading_order

# Behind the end of a sentence; "e.g." and the like end none.
_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!\b[a-z]\.)(?<!\bvs\.)(?<!\bcf\.)(?<!\beq\.)\s+")


class claim_row(nodes.row):  # noqa: N801
    """A row that tells the filter what can be chosen by; elsewhere a row like any other."""


class claim_more(nodes.container):  # noqa: N801
    """The rest of what is known of a claim, folded below its first sentence."""


class claim_first(nodes.paragraph):  # noqa: N801
    """The sentence that stands on a fold; elsewhere a paragraph."""


def listing(app: Sphinx, docname: str, level: int) -> list[nodes.Node]:
    """Counts, the form that filters, and the claims of each note.

    Args:
        app: The application.
        docname: The page that shows them.
        level: The level of the headings.
    """
    claims = claims_domain(app.env).ordered_claims()
    notes = app.config.verified_book_notes
    parts: list[nodes.Node] = [_counts(claims, app)]
    groups = [
        (f"{title[:1].upper()}{title[1:]}", [claim for claim in claims if claim.note == note])
        for note, title in notes.items()
    ]
    if not notes:
        groups = [("", claims)]
    groups = [(title, in_natural_order(group)) for title, group in groups if group]
    if not groups:
        return parts
    listed = [claim for _, group in groups for claim in group]
    every = nodes.container("", classes=["claims-listing"])
    every += nodes.raw("", form(_choices(app, listed)), format="html")
    for title, group in groups:
        part = nodes.container("", classes=["claims-note"])
        if title:
            count = nodes.inline("", in_claims(len(group)), classes=["claims-count"])
            part += added_heading("", f"{title} ", count, level=level, classes=["claims-heading"])
        part += _table(app, docname, group)
        every += part
    return [*parts, every]


def in_natural_order(claims: list[Claim]) -> list[Claim]:
    """Claims by their ids, numbers in them by size; those without an id come last, as they stand.

    Examples:
        >>> [c.id for c in in_natural_order([Claim(i, *[""] * 6, 1) for i in ("A10", "", "A9")])]
        ['A9', 'A10', '']
    """

    def key(claim: Claim) -> tuple[bool, list[tuple[str, int]]]:
        found = re.findall(r"([^0-9]*)([0-9]*)", claim.id)
        return not claim.id, [(words, int(number or -1)) for words, number in found]

    return sorted(claims, key=key)


def _choices(app: Sphinx, claims: list[Claim]) -> list[Choice]:
    """What the claims of an index can be chosen by."""
    notes = app.config.verified_book_notes
    pages = [page for page in reading_order(app.env) if any(c.page == page for c in claims)]
    return [
        Choice("verdict", "Verdict", STATES, [state(claim) for claim in claims]),
        Choice("note", "Note", notes, [claim.note for claim in claims]),
        Choice(
            "chapter",
            "Chapter",
            {page: app.env.titles[page].astext() for page in pages},
            [claim.page for claim in claims],
        ),
        Choice(
            "strength",
            "Strength",
            {kind: kind_in_words(kind) for kind in STRENGTHS},
            [claim_strength(claim).kind for claim in claims],
        ),
    ]


def _counts(claims: list[Claim], app: Sphinx) -> nodes.table:
    notes = app.config.verified_book_notes
    counts = Counter((claim.note, claim.verdict) for claim in claims)
    every = Counter(claim.verdict for claim in claims if claim.note in notes or not notes)
    table = [
        (title, [counts[note, verdict] for verdict in VERDICTS]) for note, title in notes.items()
    ]
    table.append(("all", [every[verdict] for verdict in VERDICTS]))
    rows = [
        [text(str(item)) for item in [title, *numbers, sum(numbers)]] for title, numbers in table
    ]
    head = ["note" if notes else "", *VERDICTS.values(), "claims"]
    return make_table(head, rows, "claims-counts")


def _table(app: Sphinx, docname: str, claims: list[Claim]) -> nodes.table:
    head = ["claim", "verdict", "statement", "strength", "chapter"]
    table = make_table(head, [_cells(app, docname, claim) for claim in claims], "claims-index")
    body = next(table.findall(nodes.tbody))
    for row, claim in zip(list(body), claims, strict=True):
        data = {
            "verdict": state(claim),
            "note": claim.note,
            "chapter": claim.page,
            "strength": claim_strength(claim).kind,
        }
        body.replace(row, claim_row("", *row.children, data=data))
    return table


def _cells(app: Sphinx, docname: str, claim: Claim) -> list[nodes.Element]:
    to_claim, to_chapter = (
        make_refnode(app.builder, docname, claim.page, claim.anchor, nodes.inline("", words))
        for words in (claim.id, app.env.titles[claim.page].astext())
    )
    strength = claim_strength(claim)
    return [
        nodes.paragraph("", "", to_claim),
        nodes.paragraph("", "", verdict(claim)),
        _folded(claim, docname),
        text("" if claim.broken else in_count(strength) or kind_in_words(strength.kind)),
        nodes.paragraph("", "", to_chapter),
    ]


def _folded(claim: Claim, docname: str) -> nodes.container:
    """The first sentence of a claim, and below it all else that is known of it."""
    statement = copied(claim.statement, docname)
    rest = claim_more("", is_open=claim.broken)
    found = nodes.container("")
    paragraph = next(iter(statement), None)
    if isinstance(paragraph, nodes.paragraph):
        statement.remove(paragraph)
        first, others = first_sentence(paragraph)
        rest += claim_first("", "", *_lead(claim), *first)
        rest += [nodes.paragraph("", "", *others)] if others else []
        rest += statement.children
    else:
        found += statement.children
        rest += claim_first("", "measured")
    if claim.stated:
        line = nodes.paragraph("", "Stated: ", *claim.stated_nodes, classes=["claim-stated"])
        rest += copied([line], docname).children
    rest += [in_words(line, classes=["claim-evidence"]) for line in lines(claim)]
    found += rest
    return found


def _lead(claim: Claim) -> list[nodes.Node]:
    """What keeps a true statement from being read as the one that fails."""
    if claim.verdict != "fails" or not claim.stated:
        return []
    return [nodes.inline("", "Instead:", classes=["claim-field"]), nodes.Text(" ")]


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


def open_row(self: HTML5Translator, node: claim_row) -> None:
    """Begins a row, with what it can be chosen by."""
    self.visit_row(node)
    data = "".join(f' data-{name}="{self.attval(value)}"' for name, value in node["data"].items())
    self.body[-1] = self.body[-1].replace("<tr", f"<tr{data}", 1)


def close_row(self: HTML5Translator, node: claim_row) -> None:
    """Ends a row."""
    self.depart_row(node)


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
    app.add_node(claim_row, html=(open_row, close_row))
    app.add_node(claim_first, html=(open_first, close_first))
    app.setup_extension("verified_book.headings")
    plain = (pass_by, pass_by)
    more = (open_more, close_more)
    app.add_node(claim_more, html=more, latex=plain, text=plain, man=plain, texinfo=plain)
