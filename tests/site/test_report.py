"""What a reader pays for the pages of the report, held against budgets that stand here.

README shows what `make site-report` measured last; its figures bind nobody.
"""

import pytest

from tools.site_report import __main__ as report
from tools.site_report.costs import first_visit

# Kilobytes of a first visit, its requests, kilobytes of one more page; with room for a section.
BUDGETS = {
    "first page": (160, 21, 15),
    "a lesson": (200, 25, 40),
    "its proofs": (220, 25, 70),
    "all claims": (245, 20, 80),
    "API": (105, 16, 15),
}


def test_each_page_of_the_report_has_a_budget():
    assert BUDGETS.keys() == report.PAGES.keys()


def test_pages_keep_to_their_budgets(visits, address):
    for title in [title for title, name in report.PAGES.items() if name in visits]:
        cost = visits[report.PAGES[title]].cost
        first, requests, further = BUDGETS[title]
        assert sum(cost.sent.values()) <= 1000 * first, title
        assert len(cost.sent) <= requests, title
        assert cost.sent[address + report.PAGES[title]] <= 1000 * further, title


def test_the_report_says_what_was_measured(browser, html, address, monkeypatch):
    """Of one page, and of all questions."""
    name = report.PAGES["API"]
    monkeypatch.setattr(report, "PAGES", {"API": name})
    *_, row = report.report(browser, html, address).splitlines()
    sent = first_visit(browser, address + name).sent
    sizes = [round(size / 1000) for size in (sum(sent.values()), sent[address + name])]
    assert row.startswith(f"| API | {sizes[0]} KB | {len(sent)} | {sizes[1]} KB | ")
    assert row.endswith(" | 0 |"), "axe-core finds something"


def test_a_report_takes_the_place_of_the_former(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text("a\n<!-- site-report -->\nold\n<!-- /site-report -->\nb\n")
    report.written("new\n", readme)
    assert readme.read_text() == "a\n<!-- site-report -->\nnew\n<!-- /site-report -->\nb\n"
    readme.write_text("a\n")
    with pytest.raises(ValueError, match=r"0 places between .* the report needs one"):
        report.written("new\n", readme)
