"""What a reader pays for a page of each kind, held against budgets that stand here."""

from tests.site.costs import PAGES

# Kilobytes of a first visit, its requests, kilobytes of one more page; with room for a section.
BUDGETS = {
    "first page": (160, 21, 15),
    "a lesson": (200, 25, 40),
    "its proofs": (220, 25, 70),
    "all claims": (245, 20, 80),
    "API": (105, 16, 15),
}


def test_pages_keep_to_their_budgets(visits, address):
    for title in [title for title, name in PAGES.items() if name in visits]:
        cost = visits[PAGES[title]].cost
        first, requests, further = BUDGETS[title]
        assert sum(cost.sent.values()) <= 1000 * first, title
        assert len(cost.sent) <= requests, title
        assert cost.sent[address + PAGES[title]] <= 1000 * further, title
