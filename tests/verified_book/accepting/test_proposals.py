"""The edits of a page take the places of the failures that they mend."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from verified_book.accepting import proposals, reruns
from verified_book.outputs.expected import Comparison
from verified_book.outputs.pages import PageCheck
from verified_book.records import Edit, Failure, FileAsRead, records


@pytest.fixture
def app(tmp_path: Path) -> Any:
    """A build that has read a page."""
    page = tmp_path / "page.md"
    page.write_bytes(b"one\r\ntwo\n")
    env = SimpleNamespace(docname="page", temp_data={}, doc2path=lambda name: page)
    app = SimpleNamespace(env=env, config=SimpleNamespace(source_encoding="utf-8-sig"))
    proposals.remember(app, "page", ["one\ntwo\n"])
    return app


def edit(cell: int) -> Edit:
    mends = Failure("page.md", cell, "differs", "mend it", cell)
    return Edit("page.md", cell, cell, cell, "code", None, "new", "new", ("image",), mends)


def test_a_block_that_will_be_written_counts_as_one_that_holds(app: Any):
    other = Failure("page.md", 9, "raised", "mend it", 9)
    check = PageCheck(executed=True, failures=[edit(3).mends, other], edits=[edit(3)])
    proposals.take(app, None, check)
    assert (check.failures, check.checked, check.words) == ([other], {3}, {3: ("image",)})
    record = records(app.env)["page"]
    assert (record.edits, record.file) == ([edit(3)], FileAsRead(b"one\r\ntwo\n", as_in_file=True))


def test_a_page_that_needs_no_edit_keeps_no_file(app: Any):
    proposals.take(app, None, PageCheck(executed=True))
    assert records(app.env) == {}


def test_a_second_run_may_ask_for_more(app: Any, monkeypatch: pytest.MonkeyPatch):
    def masked(app: Any, cells: Any, edits: list[Edit], wanted: Any) -> list[Edit]:
        return edits + wanted(cells)

    monkeypatch.setenv("VERIFIED_BOOK_ACCEPT", "1")
    monkeypatch.setenv("VERIFIED_BOOK_ACCEPT_TWICE", "1")
    monkeypatch.setattr(reruns, "masked", masked)
    check = PageCheck(executed=True, edits=[edit(3)], checked={4})
    check.compare = lambda cells: Comparison(edits=[edit(4)])
    proposals.take(app, None, check)
    assert records(app.env)["page"].edits == [edit(3), edit(4)]
