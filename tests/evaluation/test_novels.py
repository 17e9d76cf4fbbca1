"""The novels of an experiment: read out of their package, or refused in a sentence."""

import hashlib
import io
import subprocess
import tarfile
import zlib
from pathlib import Path

import pytest

from evaluation import novels

ASCII, UTF8 = bytes.fromhex("00040009"), bytes.fromhex("00008009")
BOOKS = [[f"BOOK {i}", "", "One line", f"and another of {i}.", "", "", "£5!"] for i in range(6)]
TEXTS = [f"BOOK {i}\nOne line and another of {i}.\n£5!\n" for i in range(6)]


def data_of(books: list[list[str]]) -> bytes:
    """Such a file of R's data as the package has."""
    found = b""
    for lines in books:
        packed = b"X\n what R writes before the lines"
        for line in lines:
            text = line.encode()
            packed += (ASCII if line.isascii() else UTF8) + len(text).to_bytes(4, "big") + text
        found += len(packed).to_bytes(4, "big") + zlib.compress(packed)
    return found


def tar_of(data: bytes, name: str = "./usr/lib/R/janeaustenr/data/Rdata.rdb") -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return file.getvalue()


def holds(monkeypatch, tar: bytes) -> None:
    monkeypatch.setattr(novels, "_output", lambda *command: tar)


def test_a_paragraph_becomes_a_line():
    assert novels.texts_of(data_of(BOOKS)) == TEXTS


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\0\0\0\x09" + zlib.compress(b"short"), "not the length"),
        (b"\0\0\0\x05" + zlib.compress(b"plain"), "no strings"),
        (data_of([["a"]])[:4] + zlib.compress(b"cut"), "not the length"),
    ],
)
def test_data_of_another_form_are_refused(data, said):
    with pytest.raises(ValueError, match=said):
        novels.texts_of(data)


def test_what_follows_the_strings_is_refused():
    packed = ASCII + (1).to_bytes(4, "big") + b"a" + b"\0\0\0\xfe"
    with pytest.raises(ValueError, match="byte 9 of an object begins no string"):
        novels.texts_of(len(packed).to_bytes(4, "big") + zlib.compress(packed))


def test_a_package_is_read(monkeypatch):
    holds(monkeypatch, tar_of(data_of(BOOKS)))
    digest = hashlib.sha256("".join(TEXTS).encode()).hexdigest()
    assert novels.read(Path("a.deb"), digest) == dict(zip(novels.NOVELS, TEXTS, strict=True))


def test_another_text_is_refused(monkeypatch):
    holds(monkeypatch, tar_of(data_of(BOOKS)))
    with pytest.raises(SystemExit, match=r"a\.deb: holds another text .* Remedy: take version"):
        novels.read(Path("a.deb"))


@pytest.mark.parametrize("tar", [tar_of(b"", "./usr/another"), b"no tar"])
def test_another_package_is_refused(monkeypatch, tar):
    holds(monkeypatch, tar)
    with pytest.raises(SystemExit, match=r"a\.deb: is not the package .* Remedy: apt-get download"):
        novels.read(Path("a.deb"))


def test_the_variable_names_the_package(monkeypatch, tmp_path):
    monkeypatch.setenv(novels.VARIABLE, str(tmp_path / "mine.deb"))
    monkeypatch.setattr(novels, "read", lambda package: {"read": package.name})
    assert novels.novels() == {"read": "mine.deb"}


def test_without_apt_get_the_remedy_is_named(monkeypatch):
    monkeypatch.delenv(novels.VARIABLE, raising=False)
    monkeypatch.setattr(novels.shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match=rf"no apt-get here\. Remedy: .* {novels.VARIABLE}$"):
        novels.novels()


def test_what_apt_get_says_is_passed_on(monkeypatch):
    def fails(*command: object, **options: object) -> None:
        raise subprocess.CalledProcessError(100, "apt-get", stderr="W: slow\nE: Unable to locate\n")

    monkeypatch.delenv(novels.VARIABLE, raising=False)
    monkeypatch.setattr(novels.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(novels.subprocess, "run", fails)
    with pytest.raises(SystemExit, match=r"said: E: Unable to locate\. Remedy: bring"):
        novels.novels()
