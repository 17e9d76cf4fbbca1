"""Chapters on paper: nothing is cut, no sheet is near-empty, all is light, proofs are open."""

import pytest

from tests.site.printing import printed

pytestmark = pytest.mark.xdist_group("site")

CHAPTERS = (
    "proofs/layer_normalization.html",
    "proofs/masks.html",
    "proofs/tokenizer.html",
)


@pytest.fixture(scope="module")
def sheets(browser, address):
    """Each chapter, printed by a reader whose screen is dark."""
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    found = {}
    for name in CHAPTERS:
        page.goto(address + name)
        found[name] = printed(page)
    context.close()
    return found


def test_nothing_is_cut(sheets):
    assert {name: sheet.cut for name, sheet in sheets.items() if sheet.cut} == {}


def test_no_sheet_is_near_empty(sheets):
    """The last one may be: there is no more to say."""
    near_empty = {
        name: (number, filled)
        for name, sheet in sheets.items()
        for number, filled in enumerate(sheet.filled[:-1], 1)
        if filled < 0.4
    }
    assert near_empty == {}


def test_sheets_are_light_and_the_screen_stays_dark(sheets):
    for name, sheet in sheets.items():
        assert (sheet.theme, sheet.after) == ("light", "dark"), name


def test_proofs_and_solutions_are_open(pages, sheets):
    for name, sheet in sheets.items():
        said = "".join(sheet.text.split())
        cells = pages[name].select("details.claim-proof div.cell_input pre, .solution pre")
        assert cells, name
        for cell in cells:
            first = "".join(cell.get_text().split("\n")[0].split())
            assert first in said or not first.isascii(), (name, first)


def test_only_the_chapter_is_printed(sheets):
    for name, sheet in sheets.items():
        assert "Skip to main content" not in sheet.text, name
