"""Files that come from elsewhere: what is opened, up to which size, and what is refused."""

import errno
import os
import re

import pytest

from transformer_layers.gpt2.files.regular_file import open_regular, read_regular


def refused(path, error, message, **options):
    with pytest.raises(error, match=re.escape(f"{path}: {message}")):
        read_regular(path, **options)


def test_reads_files_and_what_links_lead_to(tmp_path):
    path, link = tmp_path / "a", tmp_path / "link"
    path.write_bytes(b"12345678")
    link.symlink_to(path)
    assert read_regular(path, 8) == read_regular(link) == b"12345678"
    with open_regular(path) as file:
        assert file.read(3) == b"123"


def test_refuses_a_larger_file(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"123456789")
    message = "has 9 bytes, of at most 8, so it is not what its name says; copy it again"
    refused(path, ValueError, message, largest=8)


def test_refuses_a_file_that_grows_while_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"123456789")
    smaller = os.stat_result([*os.stat(path)[:6], 1, *os.stat(path)[7:]])
    monkeypatch.setattr(os, "fstat", lambda _: smaller)
    refused(path, ValueError, "has 9 bytes, of at most 8", largest=8)


def test_refuses_what_is_no_file(tmp_path):
    refused(tmp_path / "a", FileNotFoundError, "there is no such file")
    refused(tmp_path, ValueError, "is a folder; the file itself must be there")
    (tmp_path / "gone").symlink_to(tmp_path / "nothing")
    refused(tmp_path / "gone", FileNotFoundError, "is a link that leads nowhere")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    refused(tmp_path / "loop", FileNotFoundError, "is a link that leads to itself")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_waits_for_no_writer(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", ValueError, "is a pipe or a device; the file itself must be there")


def test_refuses_what_may_not_be_read(tmp_path, monkeypatch):
    def refuse(path, flags):
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(os, "open", refuse)
    message = "cannot be read: Permission denied; see that you may, and copy it again"
    refused(tmp_path / "a", PermissionError, message)
