"""What a sheet of paper shows of a page, as Chromium prints it."""

import io
from dataclasses import dataclass

from playwright.sync_api import Page, ViewportSize
from pypdf import PdfReader

from tests.site.screens import resize

SHEET = ViewportSize(width=680, height=970)  # A4 within margins of 15 mm, in pixels of a browser
_CUT = """() => {
  const seen = (one) => one.getClientRects().length && !one.closest("svg, .katex-mathml");
  const cut = (one) => one.clientWidth && one.scrollWidth > one.clientWidth + 1
    && getComputedStyle(one).overflowX !== "visible";
  const over = (one) => one.matches("pre, table, p, img") &&
    one.getBoundingClientRect().right > innerWidth + 1;
  return [...document.querySelectorAll("main *")]
    .filter((one) => seen(one) && (cut(one) || over(one)))
    .map((one) => `${one.tagName} ${one.className}: ${one.textContent.slice(0, 50)}`);
}"""
_WHEN_PRINTED = """() => addEventListener("beforeprint", () => {
  window.themeOnPaper = document.documentElement.dataset.theme;
})"""


@dataclass(frozen=True)
class Printed:
    """A page that was printed.

    Attributes:
        cut: The blocks that are cut at the side of a sheet.
        filled: For each sheet, the part of its height that is used, from 0 to 1.
        text: What it says.
        theme: The theme at the time.
        after: The theme when it was printed.
    """

    cut: list[str]
    filled: list[float]
    text: str
    theme: str
    after: str


def printed(page: Page) -> Printed:
    """Prints the page that a browser shows."""
    resize(page, SHEET)
    page.emulate_media(media="print")
    cut = page.evaluate(_CUT)
    page.emulate_media(media="null")
    page.evaluate(_WHEN_PRINTED)
    reader = PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True, print_background=True)))
    texts, filled = [], []
    for sheet in reader.pages:
        places: list[float] = []

        def place(
            text: str, cm: list[float], tm: list[float], *_: object, into: list[float] = places
        ) -> None:
            if text.strip():
                into.append(cm[1] * tm[4] + cm[3] * tm[5] + cm[5])

        texts.append(sheet.extract_text(visitor_text=place))
        height = float(sheet.mediabox.height)
        filled.append(1 - min(places, default=height) / height)
    theme = page.evaluate("window.themeOnPaper")
    after = page.evaluate("document.documentElement.dataset.theme")
    return Printed(cut, filled, "\n".join(texts), theme, after)
