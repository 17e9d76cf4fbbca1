"""Prints the book that Sphinx's builder `singlehtml` has written into one PDF with an outline."""

import html
import os
import re
import shutil
from pathlib import Path

from playwright.sync_api import Error, Page, sync_playwright

from book_site.site_files import SiteFileError, text_of_site
from verified_book.commands.books import CommandError, one_line, shown

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_STYLE = Path(__file__).parent / "pdf.css"
_FOOTER = (
    '<div style="color: #555; font-size: 8px; text-align: center; width: 100%">'
    '<span class="pageNumber"></span></div>'
)
# Sources of figures nobody asked to see. A file of the site is nowhere in a PDF.
_LEAVE_OUT = """(folds) => {
  document.querySelectorAll("details.hide:not([open])").forEach((one) => one.remove());
  if (!folds) {
    const closed = "details:not([open]):not(.claim-more), .admonition.dropdown:not(.solution)";
    document.querySelectorAll(closed).forEach((one) => one.remove());
  }
  const files = 'a[href]:not([href^="#"], [href^="index.html#"], [href*=":"])';
  document.querySelectorAll(files).forEach((one) => one.removeAttribute("href"));
}"""
_OFFERED = re.compile(r'\n?<p class="book-pdf">.*?</p>')


def print_book(book: str, target: str, folds: bool) -> int:
    """Writes the PDF of a book, and offers it on the first page of the site that it lies in.

    Args:
        book: What `singlehtml` has written.
        target: The file that is written.
        folds: Whether proofs are printed, and what else pages fold; solutions are.

    Returns:
        The exit status.

    Raises:
        CommandError: If there is no such page, nothing to print it with, or no place for the PDF.
    """
    page, file = Path(book), Path(target)
    if not page.is_file():
        raise CommandError(f"{shown(page)}: there is no such file; build it with -b singlehtml")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"{shown(file)}: {one_line(error)}") from error
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        raise CommandError(f"the PDF is printed by Chromium; install one of {', '.join(BROWSERS)}")
    try:
        with sync_playwright() as playwright:
            # Chromium refuses to run as root, which is who runs in a container, with its sandbox.
            chromium = playwright.chromium.launch(
                executable_path=program, chromium_sandbox=os.geteuid() != 0
            )
            opened = chromium.new_page(color_scheme="light")
            opened.goto(page.resolve().as_uri())
            file.write_bytes(_printed(opened, folds))
            chromium.close()
        offer(file)
    except (OSError, SiteFileError, Error) as error:  # the last is of the browser
        raise CommandError(f"{shown(file)}: {one_line(error)}") from error
    print(f"{shown(file)}: {file.stat().st_size / 1e6:.1f} MB")
    return 0


def _printed(page: Page, folds: bool) -> bytes:
    page.set_default_timeout(600_000)
    page.evaluate(_LEAVE_OUT, folds)
    page.add_style_tag(path=_STYLE)
    return page.pdf(
        prefer_css_page_size=True,
        print_background=True,
        display_header_footer=True,
        header_template="<span></span>",
        footer_template=_FOOTER,
        outline=True,
        tagged=True,
    )


def offer(file: Path) -> None:
    """Links the first page of the site to the PDF beside it; a link of before goes."""
    start = file.with_name("index.html")
    if start.is_file():
        size = f"{file.stat().st_size / 1e6:.1f} MB"
        link = f'<a href="{html.escape(file.name)}">The book as one PDF</a> ({size})'
        text = _OFFERED.sub("", text_of_site(start))
        text = text.replace("</h1>", f'</h1>\n<p class="book-pdf">{link}</p>', 1)
        start.write_text(text, encoding="utf-8")
