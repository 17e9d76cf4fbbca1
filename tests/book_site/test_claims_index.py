"""The form that filters an index, what its rows can be chosen by, and what they fold up."""

import re

import pytest
from bs4 import BeautifulSoup
from docutils import nodes

from book_site.claims_index.rows import first_sentence
from tests.verified_book.books import Build, sphinx_build
from tests.verified_book.claims.test_listing import CONF, PAGES, words

pytestmark = pytest.mark.xdist_group("claims index")  # one process builds the pages


@pytest.fixture(scope="module")
def build(tmp_path_factory) -> Build:
    conf = CONF.replace("verified_book.claims", "book_site.claims_index")
    return sphinx_build(tmp_path_factory.mktemp("filter"), conf, PAGES)


@pytest.fixture(scope="module")
def index(build) -> BeautifulSoup:
    return BeautifulSoup(build.pages["index.html"], "html.parser")


@pytest.mark.parametrize(
    ("parts", "first"),
    [
        (["One. Two."], 1),
        (["In ", nodes.literal("", "a. b"), " too. Then ", nodes.literal("", "c"), "."], 3),
        (["Small numbers, e.g. 1e-9, i.e. few, cf. eq. 3, of 3.5 or ... end here. More."], 1),
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


def test_rows_are_folded_below_their_first_sentence(index):
    listed, counted, one = index.select("table.claims-index tbody tr")
    assert [words(cell) for cell in one.select("td")] == [
        "B1",
        "holds",
        "One sentence. as expected in one cell",
        "one input",
        "Two",
    ]
    assert words(counted.summary) == "It is two ."
    more = [words(tag) for tag in counted.details.find_all("p")]
    assert more == ["And even.", "So there.", "as expected in one cell"]
    assert words(listed.summary) == "measured"
    assert words(listed.select("td")[2]).startswith("A list. Of two. measured as expected")
    assert not index.select("details.claim-more[open]")
