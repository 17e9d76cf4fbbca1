"""What a visit to a page costs, measured in a browser."""

import gzip
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Error, Page, Response

# Pages of each kind, whose costs have budgets of their own.
PAGES = {
    "first page": "index.html",
    "a lesson": "attention/scaled_dot_product_attention.html",
    "its proofs": "proofs/scaled_dot_product_attention.html",
    "all claims": "reference/claims.html",
    "API": "reference/api.html",
}
_PACKED = (".woff2", ".woff", ".png")
_SHIFT = """() => { window.shift = new Promise((resolve) => {
  let sum = 0;
  new PerformanceObserver((list) => {
    list.getEntries().forEach((entry) => { if (!entry.hadRecentInput) sum += entry.value; });
  }).observe({ type: "layout-shift", buffered: true });
  document.fonts.ready.then(() => setTimeout(() => resolve(sum), 300));
}); }"""


@dataclass(frozen=True)
class Cost:
    """What a page costs who comes to it first.

    Attributes:
        sent: The bytes of each address, as a server sends them that compresses.
        shift: How far the layout moved while it loaded, as browsers measure it.
    """

    sent: dict[str, int]
    shift: float


def first_visit(browser: Browser, url: str) -> Cost:
    """Visits a page with nothing kept from before."""
    context = browser.new_context()
    cost = visited(context.new_page(), url)
    context.close()
    return cost


def visited(
    page: Page,
    url: str,
    meanwhile: Callable[[], None] = lambda: None,
    sizes: dict[str, int] | None = None,
) -> Cost:
    """Goes to an address, in a page whose context has kept nothing from before.

    Args:
        page: The page.
        url: The address.
        meanwhile: Is called while the layout is watched; must change nothing of it.
        sizes: What is known of the bytes of addresses, and is added to. Who gives it may keep files
            from one visit to the next: what a page asks for is what it would be sent at first.
    """
    answers: list[Response] = []
    sizes = {} if sizes is None else sizes

    def heard(answer: Response) -> None:
        answers.append(answer)

    page.on("response", heard)
    page.goto(url, wait_until="load")
    page.evaluate(_SHIFT)
    meanwhile()
    shift = page.evaluate("window.shift")
    page.remove_listener("response", heard)
    for answer in answers:
        if answer.url not in sizes:
            sizes[answer.url] = _sent(answer)
    return Cost({answer.url: sizes[answer.url] for answer in answers}, shift)


def _sent(answer: Response) -> int:
    try:
        body = answer.body()
    except Error:  # the browser had the file from a page before, and has let its bytes go
        body = answer.frame.page.request.get(answer.url).body()
    return len(body if answer.url.endswith(_PACKED) else gzip.compress(body, 6))


_KINDS = {
    ".html": "pages",
    ".ipynb": "notebooks",
    ".json": "data",
    ".js": "scripts",
    ".css": "styles",
    ".woff2": "fonts",
    ".svg": "images",
    ".png": "images",
}


def kinds(site: Path) -> dict[str, int]:
    """The bytes of a site by what they are, most first, without the book as one PDF."""
    found: Counter[str] = Counter()
    for file in site.rglob("*"):
        if file.is_file() and file.suffix != ".pdf":
            kind = _KINDS.get(file.suffix, "others")
            found["search" if "search_data" in file.name else kind] += file.stat().st_size
    return dict(found.most_common())
