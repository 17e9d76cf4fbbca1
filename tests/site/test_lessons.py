"""A lesson, a page whose proofs stand on a page of their own, stays within its bounds."""

from pathlib import Path, PurePosixPath

import pytest
from bs4 import BeautifulSoup

from tests.site.conftest import SCREEN
from tests.site.lessons import PROOFS, lessons

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


@pytest.fixture(scope="module")
def lessons_visited(visits):
    """The visits to the lessons of a half of the site."""
    found = {f"{lesson}.html" for lesson in LESSONS} & visits.keys()
    assert len(found) > 5
    return {name: visits[name] for name in found}


def test_lessons_stay_within_their_bounds(lessons_visited, texts):
    found = {
        name: beyond(visit.open, BeautifulSoup(texts[name], "html.parser"))
        for name, visit in lessons_visited.items()
    }
    assert {name: each for name, each in found.items() if each} == {}


def test_lessons_lead_to_their_proofs(texts):
    for lesson in LESSONS:
        name = f"{PROOFS}/{PurePosixPath(lesson).name}.html"
        assert name in texts
        chips = BeautifulSoup(texts[f"{lesson}.html"], "html.parser").select("a.claim-chip")
        assert any(f"{name}#" in chip["href"] for chip in chips), lesson


CHIP = '<a class="claim-chip" href="#claim-a1">✓</a>'
CELL = '<div class="cell"><div class="cell_input"><pre>1 + 1</pre></div></div>'


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (f"<p>{'word ' * 1299}{CHIP}</p>{12 * CELL}", []),
        (CHIP + 13 * CELL, ["13 cells, 12 at most"]),
        (f"{CHIP}<details>{13 * CELL}<p>{'word ' * 2000}</p></details>", []),
        (f'{CHIP}<div style="height: 7000px"></div>', ["7100 height, 7000 at most"]),
        ('<div class="claim">One.</div>', ["1 claim boxes, which belong to its proofs", "no chip"]),
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
