"""What a visit costs: bytes as a server sends them, requests, and shifts of the layout."""

import pytest
from bs4 import BeautifulSoup

from tests.site.costs import PAGES, first_visit, kinds

# Of the window, all moves together; a tenth counts as good.
STEADY = 0.02

KILOBYTE = 1000


@pytest.fixture(scope="module")
def costs(visits):
    """What each page costs who comes to it first."""
    return {name: visit.cost for name, visit in visits.items()}


def test_a_first_visit_is_light(costs):
    heavy = {name: sum(cost.sent.values()) for name, cost in costs.items()}
    assert {name: cost for name, cost in heavy.items() if cost > 250 * KILOBYTE} == {}


def test_a_further_page_is_light(costs, address):
    """Chapters with many figures and proofs, and the lists, are longer."""
    texts = {name: cost.sent[address + name] for name, cost in costs.items()}
    longest = sorted(texts.values())
    assert longest[len(longest) // 2] <= 40 * KILOBYTE
    assert longest[-1] <= 88 * KILOBYTE, texts


def test_a_visit_needs_few_requests(costs):
    assert {name: len(cost.sent) for name, cost in costs.items() if len(cost.sent) > 25} == {}


def test_the_layout_stays_where_it_is(browser, address, costs):
    """On a busy machine a page may move once; one that moves again is not steady.

    Fonts that come late move a page for who comes to it first, so a page of each kind is asked so.
    """
    moved = {name for name, cost in costs.items() if cost.shift >= STEADY}
    moved |= set(PAGES.values()) & costs.keys()
    again = {name: first_visit(browser, address + name).shift for name in moved}
    assert {name: shift for name, shift in again.items() if shift >= STEADY} == {}


def test_code_has_its_look_before_any_script_was_loaded(browser, address):
    """The theme's own script says late whether the page is light or dark."""
    seen = {}
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme=scheme)
        context.route("**/*.js*", lambda route: route.abort())
        page = context.new_page()
        page.goto(address + "gpt2/quickstart.html")
        assert page.evaluate("document.documentElement.dataset.theme") == scheme
        block = page.locator("main pre").nth(1)
        seen[scheme] = block.evaluate("(one) => getComputedStyle(one).color")
        height = block.bounding_box()["height"]
        context.unroute("**/*.js*")
        page.reload()
        assert block.bounding_box()["height"] == height
        context.close()
    assert seen["light"] != seen["dark"]


def test_no_page_loads_an_index_before_it_is_asked(costs, address):
    loading = {
        name
        for name, cost in costs.items()
        if any(
            "search" in url.replace("beam_search", "").replace("book_site_search.js", "")
            and url != address + name
            for url in cost.sent
        )
    }
    assert loading == set()


def test_the_site_is_small(html):
    """Pages are held one by one above; this keeps a library's 24 MB from coming along."""
    files = [file for file in html.rglob("*") if file.is_file()]
    beside = kinds(html).keys() - {"pages", "notebooks", "search"}
    assert sum(kinds(html)[kind] for kind in beside) < 3e6
    assert not [file for file in files if file.suffix in (".ttf", ".po", ".mo", ".map")]
    assert not list(html.glob("_static/mathjax"))


def test_each_page_says_what_it_is_about(texts):
    said = {}
    written = [name for name in texts if not name.startswith(("_modules/", "genindex", "search"))]
    for name in written:
        soup = BeautifulSoup(texts[name].partition("</head>")[0], "html.parser")
        description = soup.select_one("meta[name=description]")
        preview = soup.select_one('meta[property="og:description"]')
        assert description is not None, name
        assert preview is not None, name
        said[name] = description["content"]
        assert 20 < len(said[name]) <= 160, name
    assert len(set(said.values())) == len(said)


def test_there_is_a_page_for_what_is_not_there(html):
    page = html.joinpath("404.html").read_text(encoding="utf-8")
    assert "There is no such page" in page
    assert 'href="search.html"' in page
