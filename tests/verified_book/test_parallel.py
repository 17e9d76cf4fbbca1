"""Pages that several processes read make the same book."""

import os
import re
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from sphinx.domains import Domain

from tests.verified_book.books import CONFIG, Block, Book, Build, Parts, cell, claim, expect, words
from verified_book import parallel

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


def test_pages_are_read_by_several_processes(red: Build):
    # Sphinx names the first and the last page of what each has read.
    assert re.search(r"^reading sources\.\.\. \[ *\d+%\] \w+ \.\. \w+", red.log, re.MULTILINE)
    assert red.executed == {"c1.md", "c2.md", "c3.rst"}


def test_failures_and_claims_of_all_processes_are_those_of_the_book(book: Book, red: Build):
    assert red.status == 1
    (failure,) = red.failures
    text = book.read("c2.md").replace("42\n```", "43\n```")
    line = text[: text.index("```{expect-output}")].count("\n") + 1
    assert (failure.file, failure.line) == ("c2.md", line)
    assert failure.message.startswith("claim c2 no longer holds: the output differs")
    found = [(item["number"], item["id"], item["proven"]) for item in red.claims]
    assert found == [(1, "c1", True), (2, "c2", False), (3, "c3", True)]
    for number in (2, 3, 5, 6):
        assert f"See Claim c{number % 3 + 1} ." in words(red.article(f"c{number}.html"))


class Merging(Domain):
    """A domain that can be merged."""

    def merge_domaindata(self, docnames: object, otherdata: object) -> None:
        """Merges."""


def application(
    monkeypatch: pytest.MonkeyPatch, *, given: str = "", safe: bool | None = True, **config: Any
) -> Any:
    """As much of Sphinx as chooses how many processes read pages; `given` on the command line."""
    monkeypatch.setattr(sys, "argv", ["sphinx-build", *([f"-j{given}"] if given else [])])
    settings = {"verified_book_jobs": 0, "verified_book_parallel_safe": [], **config}
    extension = SimpleNamespace(parallel_read_safe=safe, parallel_write_safe=True)
    env = SimpleNamespace(domains={"a": object.__new__(Merging)})
    return SimpleNamespace(
        config=SimpleNamespace(**settings),
        extensions={"another": extension},
        env=env,
        parallel=int(given or 1),
    )


@pytest.mark.parametrize(
    ("given", "jobs", "cores", "readers"),
    [("", 0, 8, 8), ("", 3, 8, 3), ("1", 3, 8, 1)],
)
def test_as_many_readers_as_were_asked_for_or_as_there_are_cores(
    monkeypatch: pytest.MonkeyPatch, given: str, jobs: int, cores: int | None, readers: int
):
    app = application(monkeypatch, given=given, verified_book_jobs=jobs)
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    parallel.prepare(app)
    assert app.parallel == readers


@pytest.mark.parametrize(("jobs", "said"), [(2, 1), (1, 0)])
def test_an_extension_that_hinders_is_named_where_it_does(
    monkeypatch: pytest.MonkeyPatch, jobs: int, said: int
):
    app = application(monkeypatch, safe=None, verified_book_jobs=jobs)
    told: list[tuple[str, ...]] = []
    monkeypatch.setattr(parallel.logger, "info", lambda *text: told.append(text))
    parallel.prepare(app)
    assert app.parallel == 1
    assert [text[-1] for text in told] == ["another"] * said


def test_an_extension_that_says_nothing_may_be_named_as_safe(monkeypatch: pytest.MonkeyPatch):
    named = {"verified_book_parallel_safe": ["another", "not there"], "verified_book_jobs": 2}
    for safe, readers in ((None, 2), (False, 1)):
        app = application(monkeypatch, safe=safe, **named)
        parallel.prepare(app)
        assert app.parallel == readers


def test_a_domain_that_cannot_be_merged_is_read_by_one_process(monkeypatch: pytest.MonkeyPatch):
    app = application(monkeypatch, given="2")
    app.env.domains["b"] = object.__new__(Domain)
    parallel.prepare(app)
    assert app.parallel == 1
