"""What is no regular file is refused before it is opened."""

import errno
import os
import re
import socket
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


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)  # a whole path may be too long


@pytest.mark.parametrize(
    "read", [require_regular, open_regular, lambda path: read_regular(path, 9)]
)
@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda path: None, FileNotFoundError, "there is no such file"),
        (lambda path: path.symlink_to("nothing"), FileNotFoundError, "is a link that leads to no"),
        (lambda path: path.symlink_to(path.name), FileNotFoundError, "is a link that leads to no"),
        (Path.mkdir, ValueError, "is a folder, and must be a regular file"),
        (_pipe, ValueError, "is a pipe"),
        (_socket, ValueError, "is a socket"),
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


def test_what_may_not_be_read(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.touch()

    def refuse(path, flags):
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(os, "open", refuse)
    message = f"{path}: cannot be read: Permission denied; see that you may, or copy it again"
    with pytest.raises(PermissionError, match=re.escape(message)):
        read_regular(path, largest=9)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_a_pipe_that_takes_the_files_place_lets_nobody_wait(tmp_path, monkeypatch):
    path = tmp_path / "file"
    os.mkfifo(path)
    monkeypatch.setattr(regular_file, "require_regular", lambda *_: 0)
    assert read_regular(path, largest=9) == b""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux has such files")
def test_a_file_of_the_system_that_says_it_is_empty():
    with pytest.raises(ValueError, match="has more than 9 bytes"):
        read_regular(Path("/proc/self/status"), largest=9)
