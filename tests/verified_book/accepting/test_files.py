"""A page is replaced as a whole or not at all, whatever happens."""

import errno
import os
import signal
import stat
import subprocess
import sys
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


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
def test_a_page_keeps_its_owner(page: Path):
    os.chown(page, 1234, 1235)
    files.replace(page, OLD, NEW)
    assert (page.stat().st_uid, page.stat().st_gid) == (1234, 1235)


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
        ("open", errno.EROFS),
        ("fsync", errno.ENOSPC),
        ("replace", errno.EIO),
        ("chmod", errno.EACCES),
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


def test_an_interrupt_leaves_the_page_and_nothing_else(page: Path, monkeypatch: pytest.MonkeyPatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        files.replace(page, OLD, NEW)
    assert names(page.parent) == ["page.md"]
    assert page.read_bytes() == OLD


def test_a_file_system_that_knows_no_owners_is_written_to(
    page: Path, monkeypatch: pytest.MonkeyPatch
):
    def fail(*args):
        raise PermissionError(errno.EPERM, "no owners here")

    monkeypatch.setattr(os, "chown", fail)
    assert files.replace(page, OLD, NEW)
    monkeypatch.delattr(os, "chown")  # nor does Windows
    assert files.replace(page, NEW, OLD)


def test_a_page_that_is_read_only_is_left_alone(page: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everything
    assert refused(page) == f"it could not be written: {os.strerror(errno.EACCES)}"


WRITER = """\
import os, sys, time
from pathlib import Path
from verified_book.accepting import files

def stop(*args):
    print("there", flush=True)
    time.sleep(60)

page, place = Path(sys.argv[1]), sys.argv[2]
real = getattr(os, place)
if place == "replace":
    def hook(*args):
        real(*args)
        stop()
else:
    hook = stop
setattr(os, place, hook)
files.replace(page, page.read_bytes(), b"new\\n" * 60_000)
"""


@pytest.mark.parametrize("place", ["fsync", "replace"])
def test_a_run_that_is_killed_leaves_the_old_page_or_the_new_one(page: Path, place: str):
    said = NEW if place == "replace" else OLD
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(page), place], stdout=subprocess.PIPE, text=True
    )
    try:
        assert writer.stdout.readline() == "there\n"
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
    assert page.read_bytes() == said


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"a\xc3\xa9\r\nb\rc", "utf-8-sig"),
        (b"\xef\xbb\xbfa\xc3\xa9", "utf-8-sig"),
        (b"a\xe9", "latin-1"),
        ("aé".encode("utf-16"), "utf-16"),
        (b"", "utf-8-sig"),
    ],
)
def test_a_page_is_written_in_its_encoding(data: bytes, encoding: str):
    page = files.decode(data, encoding)
    assert page.encode(page.text) == data
    assert not page.text.startswith("\ufeff")
    assert files.decode(page.encode(page.text + "\na"), encoding).text == page.text + "\na"


@pytest.mark.parametrize(
    ("data", "encoding", "reason"),
    [
        (b"a\nb\xe9", "utf-8-sig", "it is not written in utf-8-sig, as line 2 shows"),
        ("a".encode("utf-16-le"), "utf-16", "its bytes are not those that utf-16 writes"),
    ],
)
def test_a_page_in_another_encoding_is_refused(data: bytes, encoding: str, reason: str):
    with pytest.raises(Refusal) as caught:
        files.decode(data, encoding)
    assert caught.value.reason == reason


def test_an_output_that_the_encoding_cannot_write_is_refused():
    with pytest.raises(Refusal, match="'日', which iso8859-1 cannot write"):
        files.decode(b"a", "latin-1").encode("日")
