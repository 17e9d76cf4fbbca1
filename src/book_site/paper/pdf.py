"""Prints a built book into one PDF: Chromium lays it out, pypdf adds bookmarks."""

import html
import io
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright
from pypdf import PdfReader, PdfWriter
from pypdf.generic import IndirectObject

from book_site.paper.assembly import Assembled, Section, assemble
from verified_book.commands.books import CommandError
from verified_book.regular import text_of_site

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_FOOTER = (
    '<div style="color: #555; font-size: 8px; text-align: center; width: 100%">'
    '<span class="pageNumber"></span></div>'
)
_FILL = """(pages) => {
  for (const one of document.querySelectorAll(".page-number"))
    one.textContent = String(pages[one.dataset.to] ?? "").padStart(3, "\\u2007");
}"""
_OFFERED = re.compile(r'\n?<p class="book-pdf">.*?</p>')
_MOST = 4
"""How often a book is printed at most, until no number changes where its links lead."""


def write(site: Path, target: Path, folds: bool = True) -> int:
    """Writes the PDF of a built site.

    Args:
        site: The folder of the site.
        target: The file that is written.
        folds: Whether proofs are printed, and what else pages fold; solutions are.

    Returns:
        The number of its pages.

    Raises:
        CommandError: If the site or Chromium is missing, or no numbers of pages fit.
    """
    # Chromium's files count an object too few, of which pypdf warns.
    logging.getLogger("pypdf").setLevel(logging.ERROR)
    try:
        book = assemble(site, folds)
    except (FileNotFoundError, ValueError) as error:
        raise CommandError(str(error)) from None
    with _page(site, book) as page:
        printed = _print(page)
        for _ in range(_MOST):
            pages = _pages_of(PdfReader(io.BytesIO(printed)))
            page.evaluate(_FILL, pages)
            printed = _print(page)
            if _pages_of(PdfReader(io.BytesIO(printed))) == pages:
                break
        else:
            raise CommandError(f"the numbers of pages still change after {_MOST} printings")
    target.parent.mkdir(parents=True, exist_ok=True)
    return _finish(printed, book, pages, target)


@contextmanager
def _page(site: Path, book: Assembled) -> Iterator[Page]:
    """The book in a browser, in the folder of the site for as long as it is printed."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        raise CommandError(f"the PDF is printed by Chromium; install one of {', '.join(BROWSERS)}")
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".html", dir=site) as file:
        file.write(book.page)
        file.flush()
        with sync_playwright() as playwright:
            # Chromium refuses to run as root, which is who runs in a container, with its sandbox.
            chromium = playwright.chromium.launch(
                executable_path=program, chromium_sandbox=os.geteuid() != 0
            )
            page = chromium.new_page(color_scheme="light")
            page.set_default_timeout(300_000)
            page.goto(Path(file.name).as_uri())
            yield page
            chromium.close()


def _print(page: Page) -> bytes:
    return page.pdf(
        prefer_css_page_size=True,
        print_background=True,
        display_header_footer=True,
        header_template="<span></span>",
        footer_template=_FOOTER,
        tagged=False,
    )


def _pages_of(reader: PdfReader) -> dict[str, int]:
    """The number of the page, from 1, of each place that a link leads to."""
    numbers = {
        page.indirect_reference.idnum: number
        for number, page in enumerate(reader.pages, 1)
        if page.indirect_reference is not None
    }
    return {
        name.lstrip("/"): numbers[destination.page.idnum]
        for name, destination in reader.named_destinations.items()
        if isinstance(destination.page, IndirectObject)
    }


def _finish(printed: bytes, book: Assembled, pages: dict[str, int], target: Path) -> int:
    """Adds title and bookmarks."""
    writer = PdfWriter(clone_from=io.BytesIO(printed))
    writer.add_metadata({"/Title": book.title})

    def mark(section: Section, parent: IndirectObject | None) -> None:
        if section.anchor in pages:
            number = pages[section.anchor] - 1
            here = writer.add_outline_item(
                title=section.title, page_number=number, parent=parent, is_open=False
            )
            for inner in section.sections:
                mark(inner, here)

    part = None
    for chapter in book.chapters:
        if chapter.part and chapter.anchor in pages:
            part = writer.add_outline_item(
                title=chapter.part, page_number=pages[chapter.anchor] - 1
            )
        mark(chapter, part)
    writer.page_mode = "/UseOutlines"
    writer.write(target)
    return len(writer.pages)


def offer(site: Path, target: Path, pages: int) -> None:
    """Links the first page to the PDF, if it is in the site; a link of before goes."""
    start = site / "index.html"
    text = _OFFERED.sub("", text_of_site(start))
    if target.resolve().is_relative_to(site.resolve()):
        address = html.escape(target.resolve().relative_to(site.resolve()).as_posix())
        size = f"{pages} pages, {target.stat().st_size / 1e6:.1f} MB"
        link = f'<p class="book-pdf"><a href="{address}">The book as one PDF</a> ({size})</p>'
        text = text.replace("</h1>", f"</h1>\n{link}", 1)
    start.write_text(text, encoding="utf-8")
