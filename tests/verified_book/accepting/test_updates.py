"""The edits of a build: carried out together, refused one by one, each with its reason."""

import logging
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from myst_nb.core.config import NbParserConfig

from tests.verified_book.accepting.edits import CONFIG, FRONT_MATTER, RST, edit, markdown
from verified_book.accepting import files, mode
from verified_book.accepting.rst_spans import Rst
from verified_book.accepting.updates import rewrite
from verified_book.records import FileAsRead, PageRecord

MD_CELL = "```{code-cell}\n1\n```\n"
MD_PAGE = f"{FRONT_MATTER}{MD_CELL}\n```{{expect-output}}\nold\n```\n\n{MD_CELL}\nEnd.\n"
RST_CELL = ".. code-cell::\n\n   1\n"
RST_PAGE = f"{RST_CELL}\n.. expect-output::\n\n   old\n\n{RST_CELL}"


class Books:
    """A folder with pages, and what a build would have recorded of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pages: dict[str, PageRecord] = {}
        self.names: dict[str, str] = {}
        self.encoding = "utf-8-sig"

    def ask(self, name: str, outputs: dict[int, str], page: str | bytes) -> Path:
        """Writes a page and records edits of it."""
        path = self.folder / name
        path.write_bytes(page.encode() if isinstance(page, str) else page)
        self.names[path.stem] = str(path)
        record = self.pages[path.stem] = PageRecord()
        record.file = FileAsRead(path.read_bytes())
        text = files.decode(path.read_bytes(), self.encoding).text
        language = RST if name.endswith(".rst") else markdown()
        spans = language.spans(text)
        for index, output in outputs.items():
            asked = edit(spans, index, output, source=str(path))
            record.edits.append(asked)
        return path

    def app(self) -> Any:
        """As much of Sphinx as is needed."""
        config = SimpleNamespace(
            source_encoding=self.encoding,
            verified_book_accept_command="accept",
            source_suffix={".rst": "restructuredtext", ".md": "myst-nb", ".ipynb": "myst-nb"},
        )
        env = SimpleNamespace(
            doc2path=self.names.__getitem__,
            verified_book_records=self.pages,
            myst_config=CONFIG,
            mystnb_config=NbParserConfig(),
        )
        return SimpleNamespace(config=config, env=env, srcdir=str(self.folder))

    def accept(self) -> None:
        """Carries out what was asked for."""
        app = self.app()
        rewrite(app, app.env)
        assert all(record.edits == [] and record.file is None for record in self.pages.values())
        left = [path.name for path in self.folder.rglob("*") if path.name.endswith(".tmp")]
        assert left == []

    def reasons(self) -> list[str]:
        """Why edits were refused."""
        failures = [failure for record in self.pages.values() for failure in record.failures]
        assert all(failure.remedy for failure in failures)
        assert all(failure.message.startswith("differs\nnot accepted: ") for failure in failures)
        return [failure.message.removeprefix("differs\nnot accepted: ") for failure in failures]


@pytest.fixture
def books(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Books:
    monkeypatch.setenv("VERIFIED_BOOK_ACCEPT", "1")
    return Books(tmp_path)


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    logger = logging.getLogger("sphinx")
    logger.addHandler(caplog.handler)
    before = logger.level, logger.propagate
    logger.setLevel(logging.INFO)  # which also forgets what was found disabled before
    logger.propagate = False
    yield caplog
    logger.removeHandler(caplog.handler)
    logger.setLevel(before[0])
    logger.propagate = before[1]


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("utf-8-sig", MD_PAGE.replace("\n", "\r\n").encode()),
        ("latin-1", MD_PAGE.replace("End", "Ëñd").encode("latin-1")),
    ],
)
def test_all_else_stays_byte_for_byte(books: Books, encoding: str, text: bytes):
    books.encoding = encoding
    page = books.ask("page.md", {1: "néw"}, text)
    books.accept()
    codec = {"utf-8-sig": "utf-8"}.get(encoding, encoding)
    assert page.read_bytes() == text.replace("old".encode(codec), "néw".encode(codec))


def test_a_write_that_would_change_more_is_refused(books: Books, monkeypatch: pytest.MonkeyPatch):
    text = f"{RST_PAGE}\nEnd.\n"
    write = Rst.new_block
    monkeypatch.setattr(Rst, "new_block", lambda *args: [*write(*args), "more\n"])
    page = books.ask("page.rst", {1: "new", 2: "more"}, text)
    books.accept()
    assert page.read_text() == text.replace("old", "new")
    assert books.reasons() == ["page, line 9: the page would read as another one"]


def test_what_will_differ_is_warned_of_after_all_is_written(
    books: Books, log: pytest.LogCaptureFixture
):
    outputs = {1: "<A at 0x7f0000000000>\ny", 2: "Wall time: 3 s"}
    books.ask("a.md", outputs, MD_PAGE.replace("old", "<A at ...>\nx"))
    books.ask("b.md", {1: "new"}, MD_PAGE)
    books.accept()
    *written, warning = log.records
    assert [record.levelname for record in written] == ["INFO", "INFO"]
    # Sphinx puts the place before it, if a build in this process has set up its logging.
    assert warning.getMessage().endswith(
        "verified_book: a timing was accepted, and will differ next time: Wall time: 3 s\n"
        "  Remedy: Write `...` for it, as `accept --twice` does for what moves."
    )
    assert (warning.type, warning.subtype) == ("verified_book", "volatile")
    assert warning.location == f"page:{FRONT_MATTER.count(chr(10)) + 10}"


@pytest.mark.parametrize(
    ("value", "on"),
    [
        ("1", True),
        ("dry", True),
        ("", False),
        ("0", False),
    ],
)
def test_zero_does_not_accept(monkeypatch: pytest.MonkeyPatch, value: str, on: bool):
    monkeypatch.setenv("VERIFIED_BOOK_ACCEPT", value)
    monkeypatch.setenv("VERIFIED_BOOK_ACCEPT_TWICE", "1")
    assert mode.is_on() == mode.is_twice() == on
    assert mode.is_dry() == (value == "dry")


def test_one_edit_that_is_refused_leaves_the_others(books: Books):
    books.encoding = "latin-1"
    page = books.ask("page.md", {1: "日本", 2: "more"}, MD_PAGE)
    books.accept()
    assert page.read_text() == MD_PAGE.replace("\nEnd", "\n```{expect-output}\nmore\n```\n\nEnd")
    line = FRONT_MATTER.count("\n") + 5
    assert books.reasons() == [
        f"page, line {line}: the output has the character '日', which iso8859-1 cannot write"
    ]


def test_a_page_that_was_saved_meanwhile_keeps_what_was_saved(books: Books):
    page = books.ask("page.md", {1: "new", 2: "more"}, MD_PAGE)
    page.write_text("saved")
    reason = "it has been changed since it was read, and what was saved is kept"
    books.accept()
    assert [text.partition(": ")[2] for text in books.reasons()] == [reason, reason]
    assert page.read_text() == "saved"
