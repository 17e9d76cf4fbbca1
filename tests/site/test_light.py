"""What a visit costs: bytes as a server sends them, requests, and shifts of the layout."""

import gzip

import pytest

pytestmark = pytest.mark.xdist_group("site")

KILOBYTE = 1000
PACKED = (".woff2", ".woff", ".png")
SHIFTS = """() => new Promise((resolve) => {
  let sum = 0;
  new PerformanceObserver((list) => {
    list.getEntries().forEach((entry) => { if (!entry.hadRecentInput) sum += entry.value; });
  }).observe({ type: "layout-shift", buffered: true });
  document.fonts.ready.then(() => setTimeout(() => resolve(sum), 300));
})"""


def sent(response):
    """The bytes of an answer as a server sends them that compresses."""
    body = response.body()
    return len(body) if response.url.endswith(PACKED) else len(gzip.compress(body, 6))


@pytest.fixture(scope="module")
def costs(browser, address, pages):
    """What each page costs who comes to it first, in the bytes of each address."""
    found = {}
    for name in pages:
        context = browser.new_context()
        page = context.new_page()
        answers = []
        page.on("response", lambda answer, answers=answers: answers.append(answer))
        page.goto(address + name, wait_until="load")
        page.evaluate("document.fonts.ready")
        shift = page.evaluate(SHIFTS)
        found[name] = {each.url: sent(each) for each in answers}, shift
        context.close()
    return found


def test_a_first_visit_is_light(costs):
    heavy = {name: sum(cost.values()) for name, (cost, _) in costs.items()}
    assert {name: cost for name, cost in heavy.items() if cost > 250 * KILOBYTE} == {}


def test_a_further_page_is_light(costs, address):
    """Chapters with many figures and proofs, and the lists, are longer."""
    texts = {name: cost[address + name] for name, (cost, _) in costs.items()}
    longest = sorted(texts.values())
    assert longest[len(longest) // 2] <= 40 * KILOBYTE
    assert longest[-1] <= 70 * KILOBYTE, texts


def test_a_visit_needs_few_requests(costs):
    assert {name: len(cost) for name, (cost, _) in costs.items() if len(cost) > 25} == {}


def test_the_layout_stays_where_it_is(costs):
    assert {name: shift for name, (_, shift) in costs.items() if shift >= 0.01} == {}


def test_no_page_but_the_search_loads_the_index(costs):
    loading = {
        name for name, (cost, _) in costs.items() if any("searchindex" in url for url in cost)
    }
    assert loading <= {"search.html"}


def test_the_site_is_small(html):
    files = [file for file in html.rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) < 14.5e6
    assert not [file for file in files if file.suffix in (".ttf", ".po", ".mo", ".map")]
    assert not list(html.glob("_static/mathjax"))


def test_each_page_says_what_it_is_about(pages):
    said = {}
    for name, soup in pages.items():
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
