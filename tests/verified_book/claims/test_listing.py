"""The index of claims: its order, and what it says."""

import pytest
from bs4 import BeautifulSoup

from tests.verified_book.books import FRONT_MATTER, Build, sphinx_build
from verified_book.claims.claim import Claim
from verified_book.claims.listing import in_natural_order


@pytest.mark.parametrize(
    ("given", "ordered"),
    [
        ("A10 B1 A9 A1 B10 B2", "A1 A9 A10 B1 B2 B10"),
    ],
)
def test_claims_stand_in_the_order_of_their_ids(given, ordered):
    claims = [Claim(name, "", "holds", "", [], "page", "page.md", 1) for name in given.split()]
    assert [claim.id for claim in in_natural_order(claims)] == ordered.split()


pytestmark = pytest.mark.xdist_group("listing")  # one process builds the pages

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


def test_a_row_says_all_that_is_known(index):
    listed, counted, one = index.select("table.claims-index tbody tr")
    measured = "as expected in one cell"
    assert [words(cell) for cell in one.select("td")] == [
        *("B1", "holds", f"One sentence. {measured}", "one input", "Two")
    ]
    assert words(counted.select("td")[2]) == f"It is two . And even. So there. {measured}"
    assert words(listed.select("td")[2]) == f"A list. Of two. {measured}"
