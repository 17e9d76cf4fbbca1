"""The index of claims: its order, and what stands in view."""

import re

import pytest
from bs4 import BeautifulSoup
from docutils import nodes

from tests.verified_book.books import FRONT_MATTER, Build, sphinx_build
from verified_book.claims.claim import Claim
from verified_book.claims.listing import first_sentence, in_natural_order


@pytest.mark.parametrize(
    ("given", "ordered"),
    [
        ("A10 B1 A9 A1 B10 B2", "A1 A9 A10 B1 B2 B10"),
        ("A1b A1 A A1a2 A1a10", "A A1 A1a2 A1a10 A1b"),
        ("10 9 x", "9 10 x"),
    ],
)
def test_claims_stand_in_the_order_of_their_ids(given, ordered):
    claims = [Claim(name, "", "holds", "", [], "page", "page.md", 1) for name in given.split()]
    assert [claim.id for claim in in_natural_order(claims)] == ordered.split()


@pytest.mark.parametrize(
    ("parts", "first"),
    [
        (["One. Two."], 1),
        (["Is it? It is."], 1),
        (["Only one."], 2),
        (["In ", nodes.literal("", "a. b"), " too. Then ", nodes.literal("", "c"), "."], 3),
        (["See ", nodes.literal("", "a"), ". ", nodes.literal("", "b"), " too."], 3),
        (["Small numbers, e.g. 1e-9, i.e. few, cf. eq. 3, of 3.5 or ... end here. More."], 1),
        ([nodes.literal("", "all")], 1),
    ],
)
def test_the_first_sentence_stands_in_view(parts, first):
    given = [nodes.Text(part) if isinstance(part, str) else part for part in parts]
    shown, rest = first_sentence(nodes.paragraph("", "", *given))
    whole = " ".join("".join(part.astext() for part in given).split())
    said = "".join(part.astext() for part in shown)
    later = "".join(part.astext() for part in rest)
    assert f"{said} {later}".strip() == whole
    assert len(shown) == min(first, len(given))
    assert not re.search(r"[.?] [A-Z]", said)


CONF = """\
extensions = ["myst_nb", "verified_book.claims"]
verified_book_notes = {"here": "this book", "none": "nothing", "there": "other & notes"}
nb_execution_mode = "cache"
"""
PROOF = "```{code-cell} ipython3\n1 + 1\n```\n\n```{expect-output}\n2\n```\n"


def claim(name: str, note: str, text: str) -> str:
    return f"```{{claim}} {name}\n:note: {note}\n:verdict: holds\n\n{text}\n```\n\n{PROOF}\n"


PAGES = {
    "index.md": "# All\n\n```{toctree}\none\ntwo\n```\n\n## Here\n\n```{claims-index}\n```\n",
    "one.md": "\n".join(
        [
            f"{FRONT_MATTER}\n# Sums & more\n",
            claim("A10", "here", "It is *two*. And even.\n\nSo there."),
            claim("A9", "here", "- A list.\n- Of two."),
        ]
    ),
    "two.md": f"{FRONT_MATTER}\n# Two\n\n{claim('B1', 'there', 'One sentence.')}",
}


@pytest.fixture(scope="module")
def build(tmp_path_factory) -> Build:
    return sphinx_build(tmp_path_factory.mktemp("listing"), CONF, PAGES)


@pytest.fixture(scope="module")
def index(build) -> BeautifulSoup:
    return BeautifulSoup(build.pages["index.html"], "html.parser")


def words(element) -> str:
    return " ".join(element.get_text(" ").split())


def test_each_note_has_a_heading_with_its_count(index):
    headings = [(tag.name, words(tag)) for tag in index.select(".claims-heading")]
    assert headings == [("h3", "This book 2 claims"), ("h3", "Other & notes 1 claim")]
    assert [tag.find_parent("div")["class"][0] for tag in index.select(".claims-heading")] == [
        "claims-note"
    ] * 2


@pytest.mark.parametrize("tag", ["details", "summary", "h3", "tr"])
def test_what_begins_ends(build, tag):
    page = build.pages["index.html"]
    assert page.count(f"</{tag}>") == len(re.findall(rf"<{tag}[ >]", page)) > 0


def test_each_column_has_its_title(index):
    titles = [[words(cell) for cell in table.select("th")] for table in index.select("table")]
    listed = ["claim", "verdict", "statement", "strength", "chapter"]
    assert titles == [["note", "holds", "holds if", "fails", "claims"], listed, listed]


def test_rows_are_folded_below_their_first_sentence(index):
    listed, counted, one = index.select("table.claims-index tbody tr")
    assert [words(cell) for cell in one.select("td")] == [
        "B1",
        "holds",
        "One sentence. holds: what its cells assert and print",
        "one input",
        "Two",
    ]
    assert words(counted.summary) == "It is two ."
    more = [words(tag) for tag in counted.details.find_all("p")]
    assert more == ["And even.", "So there.", "holds: what its cells assert and print"]
    assert words(listed.summary) == "measured"
    assert words(listed.select("td")[2]).startswith("A list. Of two. measured holds:")
    assert not index.select("details.claim-more[open]")
