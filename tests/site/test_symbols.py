"""Symbols, their variables and their rows in the table: marked together, and told without it."""

import re
from pathlib import Path

import pytest

from tests.site.conftest import DESKTOP, Visit, watch

# Of what is not asked of the visits, which two workers make.
SITE = pytest.mark.xdist_group("site")

MARKED = "inspection.marked()"


@pytest.fixture(scope="module")
def with_symbols(texts, pages):
    """The pages with a table of symbols."""
    possible = [name for name, text in texts.items() if "symbols-table" in text]
    return [name for name in possible if pages[name].select_one(".symbols-table")]


@pytest.fixture
def page(browser):
    """A page whose console must stay silent."""
    context = browser.new_context(viewport=DESKTOP)
    context.add_init_script(path=Path(__file__).parent / "inspection.js")
    page = context.new_page()
    said = Visit()
    watch(page, said, "file:")
    yield page
    context.close()
    assert said.messages == []
    assert said.refused == []


@pytest.fixture(scope="module")
def seen(visits):
    """Of each page of a half of the site the places of its symbols, and what a focus marks."""
    found = {name: visit.symbols for name, visit in visits.items() if visit.symbols}
    assert len(found) > 1
    return found


def test_each_symbol_stands_in_equation_source_and_table(seen):
    for name, found in seen.items():
        assert found["places"], name
        for number, places in found["places"].items():
            assert all(places.values()), (name, number, places)


def test_the_keyboard_marks_all_places_of_a_symbol(seen):
    for name, found in seen.items():
        assert found["focused"], name
        for (number,), count, afterwards in found["focused"]:
            assert count == sum(found["places"][number].values()), name
            assert afterwards == [], name


@SITE
@pytest.mark.parametrize("which", ["one", pytest.param("all", marks=pytest.mark.nightly)])
def test_a_symbol_that_is_pointed_at_is_marked_and_a_clicked_one_stays(
    page, html, with_symbols, which
):
    for name in with_symbols if which == "all" else with_symbols[:1]:
        page.goto((html / name).as_uri())
        for kind in (".katex .symbol", "pre .symbol"):
            there = page.locator(f".equation-code {kind}").first
            there.hover()
            numbers = page.evaluate(MARKED)
            assert numbers == re.findall(r"symbol-(\d+)", there.get_attribute("class")), name
            page.mouse.move(0, 0)
            assert page.evaluate(MARKED) == [], name
        there.click()
        page.mouse.move(0, 0)
        assert page.evaluate(MARKED) == numbers, name
        pressed = page.locator('button.symbol[aria-pressed="true"]')
        assert pressed.count() >= len(numbers), name
        page.keyboard.press("Escape")
        assert page.evaluate(MARKED) == [], name
        assert pressed.count() == 0, name


@SITE
def test_marks_are_not_printed(page, html, with_symbols):
    page.goto((html / with_symbols[0]).as_uri())
    button = page.locator("button.symbol").first
    button.click()
    shadow = "e => getComputedStyle(e).boxShadow"
    assert button.evaluate(shadow) != "none"
    page.emulate_media(media="print")
    assert button.evaluate(shadow) == "none"


@SITE
def test_the_table_tells_the_shapes_without_scripts(pages, with_symbols):
    for name in with_symbols:
        for row in pages[name].select(".symbols-table tbody tr"):
            _, code, *_ = row.select("td")
            if code.select(".symbol"):
                assert code.select("p")[-1].select_one("code"), name
                assert not code.select("p")[-1].select(".symbol"), name
        head = pages[name].select_one(".symbols-table thead .symbols-sizes")
        assert head.get_text().startswith(("float", "int")), name
