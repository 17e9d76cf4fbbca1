"""`python -m tools.site_report`: prints what the built site costs its readers, also into README.

Five pages: the first, a lesson, its proofs, all claims, and the API. Between two marks README shows
what was printed last; the budgets stand in `tests/site/test_report.py` and `test_page_weight.py`.
"""

import os
import re
import shutil
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tools.site_report import lighthouse
from tools.site_report.axe import violations
from tools.site_report.costs import first_visit, kinds
from tools.site_report.questions import QUESTIONS
from tools.site_report.serving import BROWSERS, ROOT, Handler

PAGES = {
    "first page": "index.html",
    "a lesson": "attention/scaled_dot_product_attention.html",
    "its proofs": "proofs/scaled_dot_product_attention.html",
    "all claims": "reference/claims.html",
    "API": "reference/api.html",
}
_SMALL = 50_000  # bytes that need no word
README = ROOT / "README.md"
_MARKS = re.compile(r"(<!-- site-report -->\n).*?(?=<!-- /site-report -->)", re.DOTALL)


@dataclass(frozen=True)
class Row:
    """What a page costs who comes to it first, in kilobytes as a server sends them compressed."""

    title: str
    first: int
    requests: int
    further: int
    shift: float
    wrong: int

    def __str__(self) -> str:
        return (
            f"| {self.title} | {self.first} KB | {self.requests} | {self.further} KB "
            f"| {self.shift:.3f} | {self.wrong} |"
        )


def row(browser: Browser, address: str, title: str, name: str) -> Row:
    """Visits a page, and asks axe-core, light and dark."""
    cost = first_visit(browser, address + name)
    wrong = 0
    for theme in ("light", "dark"):
        context = browser.new_context(color_scheme=theme, bypass_csp=True)
        wrong += len(violations(context, address + name))
        context.close()
    first, further = sum(cost.sent.values()), cost.sent[address + name]
    kilobytes = round(first / 1000), round(further / 1000)
    return Row(title, kilobytes[0], len(cost.sent), kilobytes[1], cost.shift, wrong)


def answered(browser: Browser, address: str) -> int:
    """How many questions lead to their place first."""
    page = browser.new_page()
    page.goto(address + "index.html")
    found = {
        question: page.evaluate("(question) => bookSearch(question)", question)
        for question in QUESTIONS
    }
    page.close()
    return sum(
        bool(answer) and answer[0]["address"].endswith(QUESTIONS[question])
        for question, answer in found.items()
    )


def of_site(parts: Mapping[str, int]) -> str:
    """The sentences on the whole site, and on what it is made of."""
    shown = [f"{kind} {size / 1e6:.1f}" for kind, size in parts.items() if size > _SMALL]
    whole = f"The site has {sum(parts.values()) / 1e6:.1f} MB without its PDF"
    return f"{whole}: {', '.join(shown)}."


def of_search(right: int) -> str:
    """The sentence on the search."""
    return f"{right} of {len(QUESTIONS)} questions lead the search to their place first."


def report(browser: Browser, site: Path, address: str) -> str:
    """The size of the site, a line for each page, and the questions that are answered."""
    rows = [row(browser, address, title, name) for title, name in PAGES.items()]
    lines = [
        of_site(kinds(site)),
        of_search(answered(browser, address)),
        "",
        "| | first visit | requests | further page | layout shift | axe-core |",
        "| --- | --- | --- | --- | --- | --- |",
        *map(str, rows),
    ]
    return "\n".join(lines) + "\n"


def report_of_lighthouse(program: str, browser: str, address: str) -> str:
    """The median of three visits to each page, as on a desktop and as on a phone."""
    lines = [
        "",
        f"| Lighthouse | | {' | '.join(lighthouse.CATEGORIES)} |",
        f"| --- | --- |{' --- |' * len(lighthouse.CATEGORIES)}",
    ]
    for title, name in PAGES.items():
        for form in ("desktop", "mobile"):
            scores = lighthouse.scores(program, browser, address + name, form)
            lines.append(f"| {title} | {form} | {' | '.join(map(str, scores))} |")
    return "\n".join(lines) + "\n"


def written(text: str, readme: Path = README) -> None:
    """Puts a report between the marks of README.

    Raises:
        ValueError: If README has not the two marks, or has them twice.
    """
    before = readme.read_text(encoding="utf-8")
    after, number = _MARKS.subn(lambda marks: f"{marks[1]}{text}", before)
    if number != 1:
        raise ValueError(
            f"{readme}: {number} places between <!-- site-report --> and <!-- /site-report -->; "
            "the report needs one"
        )
    readme.write_text(after, encoding="utf-8")


def main() -> None:
    """Serves the built site, visits it, prints the report and writes it."""
    site = ROOT / "book" / "_build" / "html"
    if built := os.environ.get("BUILT_SITE"):
        site = Path(built).resolve()
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not site.joinpath("index.html").is_file() or program is None:
        sys.exit(f"The report needs a built site (make book) and one of {', '.join(BROWSERS)}.")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}/"
        try:
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(
                    executable_path=program, chromium_sandbox=os.geteuid() != 0
                )
                text = report(browser, site, address)
                browser.close()
        finally:
            server.shutdown()
            thread.join()
    if found := shutil.which(lighthouse.PROGRAM):
        with lighthouse.compressing(site) as address:
            text += report_of_lighthouse(found, program, address)
    else:
        text += "\nLighthouse was not installed: `npm install --global lighthouse`.\n"
    print(text)
    written(text)


if __name__ == "__main__":
    main()
