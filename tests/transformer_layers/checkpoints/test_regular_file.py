"""What is no regular file is refused before it is opened."""

import os
from pathlib import Path

import pytest

from transformer_layers.checkpoints import regular_file
from transformer_layers.checkpoints.regular_file import open_regular, read_regular, require_regular


def test_a_file_and_a_link_to_it(tmp_path):
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_bytes(b"abc")
    link.symlink_to(path)
    for each in (path, link):
        assert require_regular(each) == 3
        assert read_regular(each, largest=3) == b"abc"


def _pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize("read", [open_regular, lambda path: read_regular(path, 9)])
@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda path: None, FileNotFoundError, "there is no such file"),
        (lambda path: path.symlink_to("nothing"), FileNotFoundError, "is a link that leads to no"),
        (Path.mkdir, ValueError, "is a folder, and must be a regular file"),
        (_pipe, ValueError, "is a pipe"),
        (lambda path: path.symlink_to("/dev/zero"), ValueError, "is a device"),
    ],
)
def test_anything_else(tmp_path, monkeypatch, read, make, error, said):
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "file")
    with pytest.raises(error, match=f"{tmp_path / 'file'}: {said}"):
        read(tmp_path / "file")


def test_a_file_that_is_too_large(tmp_path):
    path = tmp_path / "file"
    path.touch()
    os.truncate(path, 1 << 30)
    with pytest.raises(ValueError, match=r"has 1,073,741,824 bytes, and one of its kind has 9 at"):
        read_regular(path, largest=9)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_a_pipe_that_takes_the_files_place_lets_nobody_wait(tmp_path, monkeypatch):
    path = tmp_path / "file"
    os.mkfifo(path)
    monkeypatch.setattr(regular_file, "require_regular", lambda *_: 0)
    assert read_regular(path, largest=9) == b""
