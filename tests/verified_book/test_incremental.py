"""The life of a book: what a build runs again, and what it shows, after each kind of change."""

import time
from dataclasses import dataclass

import pytest

from tests.verified_book.books import (
    Block,
    Book,
    Build,
    Part,
    Parts,
    cell,
    claim,
    expect,
    line_of,
    page,
    words,
)

pytestmark = pytest.mark.xdist_group("incremental")

STRICT = ("-W", "-n", "--keep-going")

SOUND = "def twice(x):\n    return 2 * x\n"
BROKEN = "def twice(x):\n    return 2 * x + 1\n"

ONE = claim("one", "It is twice as much.")
TWO = claim("two", "It is even.")
USE = cell("from watched import twice\ntwice(21)")
INDEX: Parts = ["# A book", "See {claim}`two`."]
ALL: Parts = ["# All claims", "See {claim}`two`.", Block("claims-index")]
EVEN = cell("assert twice(3) % 2 == 0")
FIRST: Parts = ["# First", ONE, USE, expect("42"), "## Prose", "Old prose."]
SECOND: Parts = ["# Second", TWO, USE, expect("42"), EVEN, "## More", "See {claim}`one`."]


@dataclass(frozen=True)
class Life:
    """A book and its builds, each after one change, with the pages that each has written."""

    book: Book
    builds: dict[str, Build]
    written: dict[str, set[str]]


def replaced(parts: Parts, old: Part, new: Part) -> list[Part]:
    return [new if part == old else part for part in parts]


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Life:
    pages = {
        "index.md": INDEX,
        "first.md": FIRST,
        "second.rst": SECOND,
        "all.md": ALL,
        "see.md": ["# See", "Only {claim}`two`."],
        "plain.md": ["# Plain", "No claim."],
    }
    book = Book(tmp_path_factory.mktemp("life"), pages)
    book.write("src/watched.py", SOUND)
    builds: dict[str, Build] = {}
    written: dict[str, set[str]] = {}

    def build(after: str) -> None:
        before = time.time_ns()
        builds[after] = book.build(*STRICT)
        pages = builds[after].site.glob("*.html")
        written[after] = {page.stem for page in pages if page.stat().st_mtime_ns > before}

    build("nothing")
    build("no change")
    book.write("src/watched.py", BROKEN)
    build("a broken source")
    book.write("src/watched.py", SOUND)
    first = replaced(replaced(FIRST, "Old prose.", "New prose."), "# First", "# A first chapter")
    book.write_page("first.md", first)
    build("the source mended, other prose and another title")
    second = replaced(SECOND, USE, cell("from watched import twice\ntwice(20) + 2"))
    book.write_page("second.rst", second)
    first = replaced(first, ONE, claim("one", "It is double."))
    book.write_page("first.md", first)
    build("another cell and another statement")
    second.remove(TWO)
    book.write_page("second.rst", second)
    first[1:1] = [TWO, cell("import watched\nassert watched.twice(2) == 4"), "## Zero"]
    book.write_page("first.md", first)
    build("a claim moved")
    return Life(book, builds, written)


@pytest.mark.parametrize(
    ("after", "status", "executed"),
    [
        ("nothing", 0, {"first.md", "second.rst"}),
        ("no change", 0, set()),
        ("a broken source", 1, {"first.md", "second.rst"}),
        ("the source mended, other prose and another title", 0, set()),
        ("another cell and another statement", 0, {"second.rst"}),
        ("a claim moved", 0, {"first.md"}),
    ],
)
def test_a_build_runs_the_cells_that_it_must(
    life: Life, after: str, status: int, executed: set[str]
):
    assert life.builds[after].status == status, life.builds[after].log
    logs = "\n".join(build.log for build in life.builds.values())
    assert life.builds[after].executed == executed, logs


def test_an_unchanged_build_reads_and_writes_nothing(life: Life):
    assert "0 added, 0 changed, 0 removed" in life.builds["no change"].log
    assert life.written["no change"] <= {"genindex", "search"}


def test_a_new_statement_is_in_the_index_and_in_references_and_nothing_else_is_written(life: Life):
    after = "another cell and another statement"
    assert "It is double." in life.builds[after].article("all.html")
    assert 'title="It is double."' in life.builds[after].article("second.html")
    assert life.written[after] - {"genindex", "search"} == {"index", "all", "first", "second"}


def test_a_broken_source_breaks_the_claims(life: Life):
    build = life.builds["a broken source"]
    differs = "the output differs from the expected one\n--- expected\n+++ executed\n"
    found = [(f.file, f.line, f.message.partition("@@")[0]) for f in build.failures]
    first = line_of(expect("42"), page(FIRST, ".md"), ".md")
    second, even = [line_of(part, page(SECOND, ".rst"), ".rst") for part in (expect("42"), EVEN)]
    assert found[:2] == [
        ("first.md", first, f"claim one no longer holds: {differs}"),
        ("second.rst", second, f"claim two no longer holds: {differs}"),
    ]
    assert found[2][:2] == ("second.rst", even)
    assert found[2][2].startswith("claim two no longer holds: the cell raised an error\n")
    assert "claims that no longer hold: one, two\n" in build.log
    assert [item["proven"] for item in build.claims] == [False, False]
    assert "not proven" in words(build.article("all.html"))


def test_what_was_mended_is_shown_with_new_prose_and_a_new_title_in_every_sidebar(life: Life):
    build = life.builds["the source mended, other prose and another title"]
    assert all(item["proven"] for item in build.claims)
    assert "not proven" not in words(build.article("all.html"))
    assert "New prose." in build.article("first.html")
    assert "A first chapter" in words(build.article("all.html"))
    for name in ("index.html", "second.html", "plain.html"):
        assert "A first chapter" in words(build.sidebar(name)), name


def test_references_follow_a_claim_to_another_page(life: Life):
    before = life.builds["another cell and another statement"]
    after = life.builds["a claim moved"]
    for name in ("index.html", "all.html", "see.html"):
        assert 'href="second.html#claim-two"' in before.article(name)
        assert 'href="second.html#claim-two"' not in after.article(name)
        assert 'href="first.html#claim-two"' in after.article(name)
