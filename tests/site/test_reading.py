"""What a reader does: search, switch the theme, download the notebook."""

import json
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


def test_download_menu_offers_the_notebook(page, html, texts, pages, address):
    """The menu of each chapter names it; that of one of each kind of source is opened."""
    possible = {name: pages[name] for name, text in texts.items() if 'class="cell' in text}
    chapters = {name: soup for name, soup in possible.items() if soup.select_one("div.cell")}
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
