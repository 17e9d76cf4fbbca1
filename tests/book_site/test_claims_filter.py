"""The form that filters an index, and what its rows can be chosen by."""

import re

import pytest
from bs4 import BeautifulSoup

from book_site.claims_filter import Choice, form
from tests.verified_book.books import Build, sphinx_build
from tests.verified_book.claims.test_listing import CONF, PAGES, words


def test_the_form_offers_what_differs_with_its_number():
    options = {"a": 'words & "more"', "b": "other words", "c": "of no claim"}
    choices = [
        Choice("note", "Note", options, ["b", "a", "b"]),
        Choice("verdict", "Verdict", {"holds": "holds"}, ["holds"] * 3),
    ]
    escaped = "words &amp; &quot;more&quot;"
    assert form(choices).split("\n") == [
        '<form class="claims-filter" role="search" aria-label="Filter the claims" '
        'autocomplete="off" hidden>',
        '<label>Words <input type="search" name="text" '
        'placeholder="statement, id, what was measured"></label>',
        '<label>Note <select name="note">',
        '<option value="" data-words="any">any (3)</option>',
        f'<option value="a" data-words="{escaped}">{escaped} (1)</option>',
        '<option value="b" data-words="other words">other words (2)</option>',
        "</select></label>",
        "<div>",
        '<output aria-live="polite">3 claims</output>',
        '<button type="reset">Show all</button>',
        "</div>",
        "</form>",
        "",
    ]


@pytest.fixture(scope="module")
def build(tmp_path_factory) -> Build:
    conf = CONF.replace("verified_book.claims", "book_site.claims_filter")
    return sphinx_build(tmp_path_factory.mktemp("filter"), conf, PAGES)


@pytest.fixture(scope="module")
def index(build) -> BeautifulSoup:
    return BeautifulSoup(build.pages["index.html"], "html.parser")


@pytest.mark.parametrize("tag", ["form", "label", "select", "option", "tr"])
def test_what_begins_ends(build, tag):
    page = build.pages["index.html"]
    assert page.count(f"</{tag}>") == len(re.findall(rf"<{tag}[ >]", page)) > 0


def test_rows_say_what_they_are_chosen_by(index):
    assert [
        {name: value for name, value in row.attrs.items() if name.startswith("data-")}
        for row in index.select("table.claims-index tbody tr")
    ] == [
        {f"data-{name}": value for name, value in zip(NAMES, values, strict=True)}
        for values in [
            ("holds", "here", "one", "input"),
            ("holds", "here", "one", "input"),
            ("holds", "there", "two", "input"),
        ]
    ]


NAMES = ("verdict", "note", "chapter", "strength")


def test_the_form_is_hidden_and_offers_what_differs(index):
    form = index.select_one("form.claims-filter")
    assert form.has_attr("hidden")
    assert {
        select["name"]: [(each["value"], words(each)) for each in select.select("option")]
        for select in form.select("select")
    } == {
        "note": [("", "any (3)"), ("here", "this book (2)"), ("there", "other & notes (1)")],
        "chapter": [("", "any (3)"), ("one", "Sums & more (2)"), ("two", "Two (1)")],
    }
    assert all(field.find_parent("label") for field in form.select("input, select"))
    assert (form.output["aria-live"], words(form.output)) == ("polite", "3 claims")


def test_only_an_index_loads_the_script(build):
    script = "_static/book_site_claims_filter.js"
    assert [name for name, page in build.pages.items() if script in page] == ["index.html"]
    assert (build.site / script).is_file()
