"""What a reader does: search, switch the theme, download the notebook."""

import json
import re
from urllib.parse import urljoin

import pytest
from playwright.sync_api import expect

from tests.site.serving import ROOT

pytestmark = pytest.mark.xdist_group("site")


@pytest.fixture
def page(browser, address):
    """The first page of the site, in light mode."""
    context = browser.new_context(color_scheme="light")
    page = context.new_page()
    page.goto(f"{address}index.html")
    yield page
    context.close()


def test_search_finds_a_layer(page):
    page.locator(".search-button__button:visible").first.click()
    field = page.locator("input[type=search]:visible").first
    field.fill("LayerNorm")
    results = page.locator("ol.book-search > li")
    expect(results.first).to_be_visible()
    field.press("Enter")
    expect(page).to_have_url(re.compile(r"/layer_normalization\.html$"))
    expect(page.locator("main")).to_contain_text("LayerNorm")


def test_theme_switch_changes_the_page(page):
    seen = {}
    for _ in range(3):  # light, dark, and the system's
        page.locator(".theme-switch-button:visible").first.click()
        theme = page.evaluate("document.documentElement.dataset.theme")
        page.evaluate("Promise.allSettled(document.getAnimations().map((each) => each.finished))")
        seen[theme] = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert seen.keys() == {"light", "dark"}
    assert seen["light"] != seen["dark"]


def test_download_menu_offers_the_notebook(page, html, pages, address):
    """The menu of each chapter names it; that of one of each kind of source is opened."""
    chapters = {name: soup for name, soup in pages.items() if soup.select_one("div.cell")}
    kinds = {}
    for name, soup in chapters.items():
        [link] = soup.select(".dropdown-download-buttons a[href$='.ipynb']")
        notebook = html / urljoin(name, link["href"])
        assert json.loads(notebook.read_text(encoding="utf-8"))["nbformat"] == 4
        source = (ROOT / "book" / name).with_suffix(".rst")
        kinds.setdefault(source.is_file(), name)
    assert len(kinds) == 2
    for name in kinds.values():
        page.goto(address + name)
        page.get_by_role("button", name="Download this page").click()
        link = page.locator(".dropdown-download-buttons a", has_text=".ipynb")
        expect(link).to_be_visible()
        answer = page.request.get(urljoin(page.url, link.get_attribute("href")))
        assert answer.ok, answer.url
        assert answer.json()["nbformat"] == 4
