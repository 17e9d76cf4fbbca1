"""README shows what `make site-report` prints of the site as it is."""

import re

import pytest

from tests.site import report
from tests.site.costs import first_visit, kinds, weight
from tests.site.questions import QUESTIONS

pytestmark = pytest.mark.xdist_group("site")

REMEDY = "run make site-report, and review README"


@pytest.fixture(scope="module")
def shown():
    """What README says, the rows of pages by their titles."""
    text = report.README.read_text(encoding="utf-8")
    block = text.partition("<!-- site-report -->")[2].partition("<!-- /site-report -->")[0]
    assert block, "README has no report"
    return block


def test_the_size_of_the_site_is_that_of_readme(html, shown):
    [megabytes] = re.findall(r"The site has ([\d.]+) MB", shown)
    assert float(megabytes) == pytest.approx(weight(html) / 1e6, rel=0.04), REMEDY


def test_the_parts_of_a_site_are_its_files(tmp_path):
    for name, size in {
        "a.html": 60_000,
        "b/c.html": 70_000,
        "search_data.js": 9,
        "d.pdf": 5,
    }.items():
        tmp_path.joinpath(name).parent.mkdir(exist_ok=True)
        tmp_path.joinpath(name).write_bytes(b" " * size)
    assert kinds(tmp_path) == {"pages": 130_000, "search": 9}
    assert report.of_site(kinds(tmp_path)) == "The site has 0.1 MB without its PDF: pages 0.1."


def test_readme_counts_the_questions_that_there_are(shown):
    [(right, asked)] = re.findall(r"(\d+) of (\d+) questions", shown)
    assert int(right) == int(asked) == len(QUESTIONS), REMEDY


@pytest.mark.parametrize("title", report.PAGES)
def test_a_page_costs_what_readme_says(browser, address, shown, title):
    [cells] = re.findall(rf"^\| {title} \| (\d+) KB \| (\d+) \| (\d+) KB \|.*\|$", shown, re.M)
    first, requests, further = map(int, cells)
    cost = first_visit(browser, address + report.PAGES[title])
    assert len(cost.sent) == requests, REMEDY
    assert sum(cost.sent.values()) / 1000 == pytest.approx(first, abs=2, rel=0.02), REMEDY
    sent = cost.sent[address + report.PAGES[title]]
    assert sent / 1000 == pytest.approx(further, abs=2, rel=0.02), REMEDY


def test_a_report_takes_the_place_of_the_former(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text("a\n<!-- site-report -->\nold\n<!-- /site-report -->\nb\n")
    report.written("new\n", readme)
    assert readme.read_text() == "a\n<!-- site-report -->\nnew\n<!-- /site-report -->\nb\n"
    readme.write_text("a\n")
    with pytest.raises(ValueError, match=r"0 places between .* the report needs one"):
        report.written("new\n", readme)
