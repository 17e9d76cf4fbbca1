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


def test_what_apt_get_says_is_passed_on(monkeypatch):
    def fails(*command: object, **options: object) -> None:
        raise subprocess.CalledProcessError(100, "apt-get", stderr="W: slow\nE: Unable to locate\n")

    monkeypatch.delenv(novels.VARIABLE, raising=False)
    monkeypatch.setattr(novels.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(novels.subprocess, "run", fails)
    with pytest.raises(SystemExit, match=r"said: E: Unable to locate\. Remedy: bring"):
        novels.novels()
