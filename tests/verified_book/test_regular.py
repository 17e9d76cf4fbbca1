"""Whatever stands in the place of a file is read or refused at once, in a sentence."""

import hashlib
import re
from pathlib import Path

import pytest

from tests.verified_book.hostile import GIGABYTE, NO_FILES
from verified_book import regular


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("a folder", "it is a folder"),
        ("a pipe", "it is a pipe, a socket or a device, and no file"),
        ("a gigabyte of zeros", f"it has {GIGABYTE:,} bytes, and no more than {regular.MOST:,}"),
    ],
)
def test_what_is_no_file_is_refused(tmp_path: Path, kind: str, said: str):
    path = tmp_path / "file"
    NO_FILES[kind](path)
    with pytest.raises(OSError, match=re.escape(said)) as caught:
        regular.read_regular(path)
    assert caught.value.filename == str(path)
    if kind == "a pipe":
        with pytest.raises(OSError, match=said):
            regular.digest_of(path)


def test_a_file_is_read_to_its_last_byte(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"\0\r\n\xff")
    link = tmp_path / "link"
    link.symlink_to("file")
    assert regular.read_regular(link, most=4) == b"\0\r\n\xff"
    assert regular.digest_of(link) == hashlib.sha256(b"\0\r\n\xff").hexdigest()
    with pytest.raises(OSError, match="it has 4 bytes, and no more than 3 are read"):
        regular.read_regular(link, most=3)
