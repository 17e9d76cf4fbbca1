"""Pages that several processes read make the same book."""

import re

import pytest

from tests.verified_book.books import CONFIG, Block, Book, Build, Parts, cell, claim, expect, words

pytestmark = pytest.mark.xdist_group("parallel")

DIFFERS = expect("43")


def chapter(number: int) -> Parts:
    """A short chapter: three have cells, one of those in RST, and one is wrong at first."""
    after = f"See {{claim}}`c{number % 3 + 1}`."
    if number > 3:
        return [f"# Chapter {number}", after]
    block = DIFFERS if number == 2 else expect("42")
    return [f"# Chapter {number}", claim(f"c{number}"), cell(f"{number} * 0 + 42"), block, after]


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Book:
    pages: dict[str, Parts] = {"index.md": ["# A book", Block("claims-index")]}
    pages |= {
        f"c{number}.{'rst' if number == 3 else 'md'}": chapter(number) for number in range(1, 8)
    }
    config = CONFIG.replace("    nb_merge", "    verified_book_jobs: 2\n    nb_merge")
    return Book(tmp_path_factory.mktemp("parallel"), pages, config)


@pytest.fixture(scope="module")
def red(book: Book) -> Build:
    return book.build()


@pytest.fixture(scope="module")
def green(book: Book, red: Build) -> Build:
    book.write_page("c2.md", [expect("42") if part == DIFFERS else part for part in chapter(2)])
    return book.build("-W", "-n", "--keep-going")


def test_pages_are_read_by_several_processes(red: Build):
    # Sphinx names the first and the last page of what each has read.
    assert re.search(r"^reading sources\.\.\. \[ *\d+%\] \w+ \.\. \w+", red.log, re.MULTILINE)
    assert red.executed == {"c1.md", "c2.md", "c3.rst"}


def test_failures_of_all_processes_are_reported(book: Book, red: Build):
    assert red.status == 1
    (failure,) = red.failures
    text = book.read("c2.md").replace("42\n```", "43\n```")
    line = text[: text.index("```{expect-output}")].count("\n") + 1
    assert (failure.file, failure.line) == ("c2.md", line)
    assert failure.message.startswith("claim c2 no longer holds: the output differs")


def test_claims_of_all_processes_are_numbered(green: Build):
    assert green.status == 0, green.log
    assert [(item["number"], item["id"]) for item in green.claims] == [
        (1, "c1"),
        (2, "c2"),
        (3, "c3"),
    ]
    assert "all 3 0 0 3" in words(green.article("index.html"))
    for number in range(1, 8):
        assert f"See Claim c{number % 3 + 1} ." in words(green.article(f"c{number}.html"))


def test_only_what_failed_is_read_again_and_nothing_runs(green: Build):
    assert "0 added, 1 changed, 0 removed" in green.log
    assert green.executed == set()
