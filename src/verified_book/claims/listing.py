"""The index of claims as it is shown: counts and tables.

Other extensions may change it by the event `verified-book-claims-listing`.
"""

import re
from collections import Counter
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.nodes import make_refnode

from verified_book.claims.claim import VERDICTS, Claim
from verified_book.claims.domain import claims_domain
from verified_book.claims.measurements import (
    claim_strength,
    in_count,
    in_words,
    kind_in_words,
    lines,
)
from verified_book.claims.tables import make_table, said, text, verdict

# A container is to be shown: with its claims, which stand in its rows in this order.
LISTED = "verified-book-claims-listing"


def listing(app: Sphinx, docname: str, level: int) -> list[nodes.Node]:
    """Counts, and the claims of each note.

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
    every = nodes.container("", classes=["claims-listing"])
    for title, group in groups:
        part = nodes.container("", classes=["claims-note"])
        if title:
            count = nodes.inline("", in_claims(len(group)), classes=["claims-count"])
            part += heading(level, f"{title} ", count, classes=["claims-heading"])
        rows = [_cells(app, docname, claim) for claim in group]
        head = ["claim", "verdict", "statement", "strength", "chapter"]
        part += make_table(head, rows, "claims-index")
        every += part
    app.emit(LISTED, every, [claim for _, group in groups for claim in group])
    return [*parts, every]


def in_claims(number: int) -> str:
    """A number of claims in words.

    Examples:
        >>> in_claims(1), in_claims(20)
        ('1 claim', '20 claims')
    """
    return f"{number} claim" if number == 1 else f"{number} claims"


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


def _cells(app: Sphinx, docname: str, claim: Claim) -> list[nodes.Element]:
    to_claim, to_chapter = (
        make_refnode(app.builder, docname, claim.page, claim.anchor, nodes.Text(words))
        for words in (claim.id, app.env.titles[claim.page].astext())
    )
    strength = claim_strength(claim)
    return [
        nodes.paragraph("", "", to_claim),
        nodes.paragraph("", "", verdict(claim)),
        statement(claim, docname),
        text("" if claim.broken else in_count(strength) or kind_in_words(strength.kind)),
        nodes.paragraph("", "", to_chapter),
    ]


def statement(claim: Claim, docname: str) -> nodes.container:
    """What was stated, what is so, and what was measured."""
    measured = [in_words(line, classes=["claim-evidence"]) for line in lines(claim)]
    return nodes.container("", *said(claim, docname), *measured)


def heading(level: int, *words: str | nodes.Node, **attributes: Any) -> nodes.rubric:
    """A heading of a level in HTML; elsewhere a rubric."""
    children = [nodes.Text(each) if isinstance(each, str) else each for each in words]
    return nodes.rubric("", "", *children, level=level, **attributes)  # MyST-Parser writes it


def level_below(place: nodes.Node) -> int:
    """The level of a heading in the section that a node stands in."""
    above = place.parent
    return 1 if above is None else min(6, level_below(above) + isinstance(above, nodes.section))


def setup(app: Sphinx) -> None:
    """Registers the event."""
    app.add_event(LISTED)
