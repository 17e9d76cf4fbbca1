"""What readers ask for, and the place that must come first; all of it without a server."""

import pytest
from playwright.sync_api import expect

from tests.site.questions import QUESTIONS

pytestmark = pytest.mark.xdist_group("site")


@pytest.fixture
def page(browser, html):
    """A chapter, opened from its file."""
    context = browser.new_context()
    page = context.new_page()
    page.goto((html / "normalization" / "dropout.html").as_uri())
    yield page
    context.close()


def test_forty_questions_lead_to_their_places(page, html):
    assert len(QUESTIONS) >= 40
    found = {
        question: (page.evaluate("(question) => bookSearch(question)", question) or [{}])[0]
        for question in QUESTIONS
    }
    root = html.as_uri() + "/"
    first = {
        question: entry.get("address", "").removeprefix(root) for question, entry in found.items()
    }
    assert first == QUESTIONS


def test_what_is_found_is_there(pages, page, html):
    root = html.as_uri() + "/"
    for question in QUESTIONS:
        for entry in page.evaluate("(question) => bookSearch(question)", question):
            name, _, anchor = entry["address"].removeprefix(root).partition("#")
            assert name in pages, entry
            assert not anchor or pages[name].find(id=anchor), entry


def test_the_dialog_shows_excerpts_and_leads_there(page):
    loaded = "() => Boolean(document.querySelector('script[src*=book_site_search_data]'))"
    assert not page.evaluate(loaded)
    page.keyboard.press("Control+k")
    field = page.locator("#pst-search-dialog input[type=search]")
    expect(field).to_be_focused()
    field.fill("kv cache")
    results = page.locator("#pst-search-dialog ol.book-search > li")
    expect(results.first).to_contain_text("Without reading everything again")
    expect(results.first.locator("p mark").first).to_contain_text("cache")
    expect(page.locator("#pst-search-dialog").get_by_role("status")).to_contain_text("places")
    field.press("Enter")
    page.wait_for_url("**/gpt2/generation.html#without-reading-everything-again")


def test_nothing_found_is_said(page):
    page.keyboard.press("Control+k")
    page.locator("#pst-search-dialog input[type=search]").fill("zyxwv")
    expect(page.locator("#pst-search-dialog").get_by_role("status")).to_have_text(
        "Nothing is found."
    )


def test_the_page_of_the_search_answers_its_address(page, html):
    page.goto((html / "search.html").as_uri() + "?q=kv+cache")
    results = page.locator("ol.book-search:visible > li")
    expect(results.first).to_contain_text("Without reading everything again")
