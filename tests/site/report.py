"""Prints what the built site costs its readers: python -m tests.site.report.

Four pages: the first, the longest chapter, all claims, and the API.
"""

import os
import shutil
import sys
import threading
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tests.site import lighthouse
from tests.site.axe import violations
from tests.site.costs import first_visit, weight
from tests.site.questions import QUESTIONS
from tests.site.serving import BROWSERS, ROOT, Handler

_PAGES = {
    "first page": "index.html",
    "longest chapter": "attention/scaled_dot_product_attention.html",
    "all claims": "reference/claims.html",
    "API": "reference/api.html",
}


def report(browser: Browser, site: Path, address: str) -> None:
    """Prints a line for each page, the size of the site, and the questions that are answered."""
    print(f"the site: {weight(site) / 1e6:.1f} MB")
    row = "{:<16} {:>12} {:>9} {:>13} {:>7} {:>11}"
    print(row.format("", "first visit", "requests", "further page", "shift", "axe-core"))
    for title, name in _PAGES.items():
        cost = first_visit(browser, address + name)
        wrong = 0
        for theme in ("light", "dark"):
            context = browser.new_context(color_scheme=theme, bypass_csp=True)
            wrong += len(violations(context, address + name))
            context.close()
        first, further = (
            f"{number / 1000:.0f} KB"
            for number in (sum(cost.sent.values()), cost.sent[address + name])
        )
        print(row.format(title, first, len(cost.sent), further, f"{cost.shift:.3f}", wrong))
    page = browser.new_page()
    page.goto(address + "index.html")
    answers = {
        question: page.evaluate("(question) => bookSearch(question)", question)
        for question in QUESTIONS
    }
    right = [q for q, place in QUESTIONS.items() if answers[q][:1] and _leads_to(answers[q], place)]
    print(f"the search: {len(right)} of {len(QUESTIONS)} questions lead to their place first")
    page.close()


def report_of_lighthouse(program: str, browser: str, address: str) -> None:
    """Prints the median of three visits to each page, as on a desktop and as on a phone."""
    row = "{:<16} {:<8} {:>12} {:>14} {:>15} {:>4}"
    print(row.format("Lighthouse", "", *lighthouse.CATEGORIES))
    for title, name in _PAGES.items():
        for form in ("desktop", "mobile"):
            print(
                row.format(title, form, *lighthouse.scores(program, browser, address + name, form))
            )


def _leads_to(answer: list[dict[str, str]], place: str) -> bool:
    return answer[0]["address"].endswith(place)


def main() -> None:
    """Serves the built site, and visits it."""
    site = ROOT / "book" / "_build" / "html"
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
                report(browser, site, address)
                browser.close()
        finally:
            server.shutdown()
            thread.join()
    if found := shutil.which(lighthouse.PROGRAM):
        with lighthouse.compressing(site) as address:
            report_of_lighthouse(found, program, address)
    else:
        print("Lighthouse is not installed: npm install --global lighthouse")


if __name__ == "__main__":
    main()
