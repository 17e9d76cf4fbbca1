"""What a browser makes of chips: their popups by pointer, key and finger, and on paper."""

from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Page, expect

from book_site.notebooks.markdown import parts
from book_site.search.entries import entries_of_page
from tests.site.axe import violations
from tests.site.conftest import DESKTOP, NARROW
from tests.verified_book.books import FRONT_MATTER, sphinx_build

pytestmark = pytest.mark.xdist_group("site in use")

CONF = """\
extensions = ["myst_nb", "verified_book.claims", "book_site.chips"]
nb_execution_mode = "cache"
language = "en"
"""
LESSON = """\
# A lesson

The first sentence holds {chip}`A1`, the [next](https://example.org) depends {chip}`A2`, and one
is repeated {chip}`A1`.

What is so, and not what is believed {chip}`not A2`.
"""
PROOFS = f"""\
{FRONT_MATTER}
# Proofs

```{{claim}} A1
:verdict: holds

One is one, see {{claim}}`A2`.
```

```{{code-cell}} ipython3
one = 1
assert one == 1
```

```{{claim}} A2
:verdict: fails

It may be so.
:stated: The post: it *is* so.
:with luck: a lot of it.
:otherwise: nothing is.
```

```{{code-cell}} ipython3
:shows: as stated
assert one == 1
```

```{{code-cell}} ipython3
:shows: without luck
assert one == 1
```
"""
TREE = "# All\n\n```{toctree}\nlesson\nproofs/lesson\n```\n"


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    """The site of a small book in plain Sphinx."""
    pages = {"index.md": TREE, "lesson.md": LESSON, "proofs/lesson.md": PROOFS}
    return sphinx_build(tmp_path_factory.mktemp("chips"), CONF, pages).site


@pytest.fixture
def page(browser, small):
    context = browser.new_context(viewport=DESKTOP)
    page = context.new_page()
    page.goto((small / "lesson.html").as_uri())
    yield page
    context.close()


def chips(page: Page):
    return page.locator("a.claim-chip")


def popups(page: Page):
    return page.locator("claim-popup:popover-open")


def test_pointing_shows_the_claim_until_the_pointer_has_left(page):
    expect(popups(page)).to_have_count(0)
    chips(page).nth(1).hover()
    shown = popups(page)
    expect(shown).to_have_text(
        "fails claim A2 ✗ The post: it is so. In fact: It may be so. "
        "Needs: a lot of it. Otherwise: nothing is. only what was stated is shown to fail",
        use_inner_text=True,
    )
    box, at = shown.bounding_box(), chips(page).nth(1).bounding_box()
    assert abs(box["y"] - at["y"] - at["height"]) < 2
    shown.hover()  # a pointer may go there
    page.wait_for_timeout(400)
    expect(shown).to_be_visible()
    page.mouse.move(600, 800)
    expect(shown).to_have_count(0)


def test_a_chip_that_denies_shows_what_is_so_and_its_evidence_before_what_is_believed(page):
    chips(page).nth(3).hover()
    shown = popups(page)
    expect(shown).to_have_count(1)
    said = " ".join(shown.inner_text().split())
    assert said.startswith("✓ holds") or said.startswith("holds"), said
    assert "fails" not in said.split("claim A2")[0]
    assert said.index("In fact") < said.index("only what was stated") < said.index("The post")


def test_the_keyboard_reaches_a_chip_and_escape_closes_its_popup(page):
    chips(page).nth(0).focus()
    expect(popups(page)).to_contain_text("claim A1")
    page.keyboard.press("Escape")
    expect(popups(page)).to_have_count(0)
    expect(chips(page).nth(0)).to_be_focused()
    page.keyboard.press("Tab")  # to the link between them
    expect(page.get_by_role("link", name="next", exact=True)).to_be_focused()
    page.keyboard.press("Tab")
    expect(popups(page)).to_contain_text("claim A2")
    page.keyboard.press("Enter")
    page.wait_for_url("**/proofs/lesson.html#claim-a2")


def test_a_tap_shows_and_hides_the_popup_whose_link_leads_to_the_proof(browser, small):
    context = browser.new_context(viewport=NARROW, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto((small / "lesson.html").as_uri())
    chips(page).nth(2).tap()
    expect(popups(page)).to_contain_text("claim A1")
    box = popups(page).bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= NARROW["width"]
    chips(page).nth(2).tap()
    expect(popups(page)).to_have_count(0)
    chips(page).nth(2).tap()
    popups(page).get_by_role("link", name="claim A1").tap()
    page.wait_for_url("**/proofs/lesson.html#claim-a1")
    context.close()


def test_a_chip_says_what_it_stands_for(page):
    names = ["holds: claim A1, One is one, see Claim A2.", "believed, and false: claim A2"]
    for place, name in enumerate(names):
        expect(chips(page).nth(place)).to_have_accessible_name(
            name + ", The post: it is so." * place
        )
    expect(chips(page).nth(1)).to_have_accessible_description(
        "Needs: a lot of it. Otherwise: nothing is. only what was stated is shown to fail"
    )


@pytest.mark.parametrize("opened", [False, True])
def test_axe_finds_nothing_at_a_chip_or_its_popup(browser, small, opened):
    context = browser.new_context()
    address = (small / "lesson.html").as_uri()
    if opened:
        context.add_init_script(
            "addEventListener('load', () => document.querySelector('a.claim-chip').focus())"
        )
    found = violations(context, address)  # the theme has some of its own
    context.close()
    assert [wrong for wrong in found if "claim-" in wrong] == []


def test_paper_has_the_sign_and_the_number(page):
    page.emulate_media(media="print")
    assert [chip.inner_text() for chip in chips(page).all()] == ["✓ A1", "✗ A2", "✓ A1", "✓ A2"]
    page.emulate_media(media="screen")
    assert [chip.inner_text() for chip in chips(page).all()] == ["✓", "✗", "✓", "✓"]


def test_search_and_notebook_have_the_sign_without_the_popup(small):
    text = (small / "lesson.html").read_text(encoding="utf-8")
    body = BeautifulSoup(text, "html.parser").select_one("div.body")
    [cell] = parts(str(body), url="https://example.org/lesson.html")
    said = (
        "# A lesson\n\nThe first sentence holds "
        "[✓ A1](https://example.org/proofs/lesson.html#claim-a1), "
    )
    assert cell.startswith(said)
    assert cell.endswith("/lesson.html#claim-a2).")
    [entry] = entries_of_page(f"<article>{body}</article>")
    assert entry[3] == (
        "The first sentence holds ✓ A1, the next depends ✗ A2, and one is repeated ✓ A1. "
        "What is so, and not what is believed ✓ A2."
    )
