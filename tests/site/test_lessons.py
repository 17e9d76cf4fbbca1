"""A lesson, a page whose proofs stand on a page of their own, stays within its bounds."""

from pathlib import Path, PurePosixPath

import pytest
from bs4 import BeautifulSoup

from tests.site.conftest import SCREEN
from tools.unheld_sentences.lessons import PROOFS, lessons

pytestmark = pytest.mark.xdist_group("site")

MOST = {"words": 1300, "cells": 12, "height": 7 * SCREEN["height"]}
BOOK = Path(__file__).parents[2] / "book"
LESSONS = [page.relative_to(BOOK).with_suffix("").as_posix() for page in lessons(BOOK)]


def beyond(open: dict[str, int], soup: BeautifulSoup) -> list[str]:
    """What a lesson has too much of, or lacks."""
    found = [
        f"{open[what]} {what}, {most} at most" for what, most in MOST.items() if open[what] > most
    ]
    if boxes := soup.select("div.claim"):
        found.append(f"{len(boxes)} claim boxes, which belong to its proofs")
    if not soup.select("a.claim-chip"):
        found.append("no chip")
    return found


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_stays_within_its_bounds(visits, pages, lesson):
    name = f"{lesson}.html"
    assert beyond(visits[name].open, pages[name]) == []


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_is_light(visits, address, lesson):
    name = f"{lesson}.html"
    sent = visits[name].cost.sent
    assert sum(sent.values()) <= 200_000, "bytes of a first visit"
    assert sent[address + name] <= 40_000, "bytes of a further page"


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_leads_to_its_proofs(pages, lesson):
    name = f"{PROOFS}/{PurePosixPath(lesson).name}.html"
    assert name in pages
    chips = pages[f"{lesson}.html"].select("a.claim-chip")
    assert any(f"{PROOFS}/{PurePosixPath(lesson).name}.html#" in chip["href"] for chip in chips)


CHIP = '<a class="claim-chip" href="#claim-a1">✓</a>'
CELL = '<div class="cell"><div class="cell_input"><pre>1 + 1</pre></div></div>'


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (f"<p>{'word ' * 1299}{CHIP}</p>{12 * CELL}", []),
        (f"<p>{'word ' * 1300}{CHIP}</p>", ["1301 words, 1300 at most"]),
        (CHIP + 13 * CELL, ["13 cells, 12 at most"]),
        (f"{CHIP}<details>{13 * CELL}<p>{'word ' * 2000}</p></details>", []),
        (f'{CHIP}<div style="height: 7000px"></div>', ["7100 height, 7000 at most"]),
        (
            f'{CHIP}<div class="claim">One.</div><div class="claim">Two.</div>',
            ["2 claim boxes, which belong to its proofs"],
        ),
        ("<p>All is so.</p>", ["no chip"]),
    ],
)
def test_a_page_beyond_a_bound_is_seen(browser, body, found):
    context = browser.new_context(viewport=SCREEN)
    context.add_init_script(path=Path(__file__).parent / "inspection.js")
    page = context.new_page()
    style = "<style>body { margin: 50px 0 } pre, p { margin: 0 } a { position: fixed }</style>"
    page.set_content(f"<!DOCTYPE html>{style}<article>{body}</article>")
    opened = page.evaluate("inspection.open()")
    context.close()
    assert beyond(opened, BeautifulSoup(body, "html.parser")) == found
