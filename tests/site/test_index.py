"""The filter of all claims: from a file, by keyboard, with its state in the address."""

import json
import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.xdist_group("site in use")


@pytest.fixture(scope="module")
def claims(html):
    published = json.loads((html / "claims.json").read_text(encoding="utf-8"))["claims"]
    return [claim for claim in published if claim["note"]]


@pytest.fixture
def index(html):
    """The address of the page, without a server."""
    return (html / "reference" / "claims.html").as_uri()


@pytest.fixture
def page(browser):
    context = browser.new_context()
    yield context.new_page()
    context.close()


def ids(page):
    return page.locator(
        "table.claims-index tr[data-verdict]:visible td:first-child"
    ).all_inner_texts()


def test_all_claims_stand_in_natural_order(page, index, claims):
    page.goto(index)
    by_note = {}
    for claim in claims:
        by_note.setdefault(claim["note"], []).append(claim["id"])
    shown = ids(page)
    assert sorted(shown) == sorted(claim["id"] for claim in claims)
    for of_note in by_note.values():
        ordered = sorted(of_note, key=lambda name: (name[0], int(name[1:])))
        assert [name for name in shown if name in of_note] == ordered


def test_choices_filter_and_count(page, index, claims):
    page.goto(index)
    output = page.locator("form.claims-filter output")
    expect(output).to_have_text(f"{len(claims)} claims")
    failing = [claim for claim in claims if claim["verdict"] == "fails"]
    page.locator("select[name=verdict]").select_option("fails")
    expect(output).to_have_text(f"{len(failing)} of {len(claims)} claims")
    assert sorted(ids(page)) == sorted(claim["id"] for claim in failing)
    note = failing[0]["note"]
    both = [claim for claim in failing if claim["note"] == note]
    option = page.locator("select[name=note]").locator(f"option[value='{note}']")
    expect(option).to_contain_text(f"({len(both)})")
    page.locator("select[name=note]").select_option(note)
    assert sorted(ids(page)) == sorted(claim["id"] for claim in both)
    expect(page.locator(".claims-heading:visible")).to_have_count(1)
    expect(page.locator(".claims-count:visible")).to_contain_text(f"{len(both)} of ")


def test_the_address_keeps_the_choice(page, index, claims):
    page.goto(index)
    page.locator("select[name=verdict]").select_option("holds-if")
    page.get_by_label("Words").fill("Layer  NORM")
    found = ids(page)
    assert 0 < len(found) < len(claims)
    expect(page).to_have_url(re.compile("verdict=holds-if.*text=Layer"))
    page.goto("about:blank")
    page.go_back()
    expect(page.locator("select[name=verdict]")).to_have_value("holds-if")
    expect(page.get_by_label("Words")).to_have_value("Layer  NORM")
    assert ids(page) == found
    page.get_by_role("button", name="Show all").click()
    expect(page.locator("form.claims-filter output")).to_have_text(f"{len(claims)} claims")
    expect(page).to_have_url(index)


def test_an_address_that_fits_nothing_is_taken_as_it_can_be(page, index, claims):
    page.goto(f"{index}?verdict=maybe&text=B1")
    expect(page.locator("select[name=verdict]")).to_have_value("")
    assert "B1" in ids(page)
    page.get_by_label("Words").fill("xyzzy plugh")
    assert ids(page) == []
    expect(page.locator("form.claims-filter output")).to_have_text(f"0 of {len(claims)} claims")


def test_the_keyboard_is_enough(page, index, claims):
    page.goto(index)
    page.get_by_label("Words").focus()
    page.keyboard.type("softmax")
    page.keyboard.press("Enter")
    assert 0 < len(ids(page)) < len(claims)
    page.keyboard.press("Tab")
    expect(page.locator("select[name=verdict]")).to_be_focused()
    fold = page.locator("details.claim-more:visible").first
    fold.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(fold.locator(".claim-evidence").first).to_be_visible()


def test_without_scripts_the_page_is_complete(browser, index, claims):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(index)
    expect(page.locator("form.claims-filter")).to_be_hidden()
    assert len(ids(page)) == len(claims)
    context.close()
