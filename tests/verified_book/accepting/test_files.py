"""A page is replaced as a whole or not at all, whatever happens."""

import errno
import os
import stat
from pathlib import Path

import pytest

from verified_book.accepting import files
from verified_book.accepting.spans import Refusal

OLD, NEW = b"old\n" * 50_000, b"new\n" * 60_000


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.md"
    path.write_bytes(OLD)
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_page_is_replaced_with_its_mode(page: Path):
    page.chmod(0o640)
    inode = page.stat().st_ino
    assert files.replace(page, OLD, NEW)
    assert page.read_bytes() == NEW
    assert stat.S_IMODE(page.stat().st_mode) == 0o640
    assert page.stat().st_ino != inode
    assert names(page.parent) == ["page.md"]


def refused(page: Path) -> str:
    with pytest.raises(Refusal) as caught:
        files.replace(page, OLD, NEW)
    assert caught.value.remedy
    return caught.value.reason


def test_what_an_editor_saves_at_the_last_moment_stays(page: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: page.write_bytes(b"saved"))
    assert "it has been changed" in refused(page)
    assert page.read_bytes() == b"saved"
    assert names(page.parent) == ["page.md"]


@pytest.mark.parametrize(
    ("function", "number"),
    [
        ("fsync", errno.ENOSPC),
        ("replace", errno.EIO),
    ],
)
def test_a_fault_leaves_the_page_and_nothing_else(
    page: Path, monkeypatch: pytest.MonkeyPatch, function: str, number: int
):
    def fail(*args, **kwargs):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, function, fail)
    assert refused(page) == f"it could not be written: {os.strerror(number)}"
    monkeypatch.undo()
    assert page.read_bytes() == OLD
    assert names(page.parent) == ["page.md"]


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"a\xc3\xa9\r\nb\rc", "utf-8-sig"),
        (b"\xef\xbb\xbfa\xc3\xa9", "utf-8-sig"),
        ("aé".encode("utf-16"), "utf-16"),
    ],
)
def test_a_page_is_written_in_its_encoding(data: bytes, encoding: str):
    page = files.decode(data, encoding)
    assert page.encode(page.text) == data
    assert not page.text.startswith("\ufeff")
    assert files.decode(page.encode(page.text + "\na"), encoding).text == page.text + "\na"
