"""What a reader pays for a page of each kind, held against budgets that stand here."""

import json

from tests.site.costs import PAGES

# Kilobytes of a first visit, its requests, kilobytes of one more page; with room for a section.
# That of all claims grows with their number, which is in their file: so many bytes for each.
A_CLAIM = 195
BUDGETS = {
    "first page": (160, 21, 15),
    "a lesson": (200, 25, 40),
    "its proofs": (220, 25, 70),
    "all claims": (245, 20, 0),
    "API": (105, 16, 15),
}


def test_pages_keep_to_their_budgets(visits, address, html):
    for title in [title for title, name in PAGES.items() if name in visits]:
        cost = visits[PAGES[title]].cost
        first, requests, further = BUDGETS[title]
        claims = json.loads((html / "claims.json").read_text())["claims"]
        bound = A_CLAIM * len(claims) if title == "all claims" else 1000 * further
        assert sum(cost.sent.values()) <= 1000 * first, title
        assert len(cost.sent) <= requests, title
        assert cost.sent[address + PAGES[title]] <= bound, title
