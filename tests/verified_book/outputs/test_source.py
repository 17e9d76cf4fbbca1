"""A page that is no text is refused in a sentence, before anything waits for it."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.verified_book.hostile import NO_FILES
from verified_book.outputs.source import PageFileError, check_files

REMEDY = r"Remedy: put a page in its place, or exclude it in the configuration"


def check(folder: Path, *names: str, encoding: str = "utf-8-sig") -> None:
    app = SimpleNamespace(config=SimpleNamespace(source_encoding=encoding))
    check_files(app, SimpleNamespace(doc2path=lambda name: folder / name), list(names))


@pytest.mark.parametrize("kind", ["a folder", "a pipe", "a link to itself"])
def test_what_is_no_file_is_refused(tmp_path: Path, kind: str):
    NO_FILES[kind](tmp_path / "page.md")
    with pytest.raises(PageFileError, match=rf"page\.md: .*\. {REMEDY}$"):
        check(tmp_path, "page.md")


@pytest.mark.parametrize(
    ("data", "line"),
    [(bytes(10_000), 1), (b"a\r\nb\0", 2)],
)
def test_what_is_no_text_is_refused(tmp_path: Path, data: bytes, line: int):
    (tmp_path / "page.md").write_bytes(data)
    said = rf"page\.md:{line}: this is no text, it has a NUL character\. Remedy: mend or exclude it"
    with pytest.raises(PageFileError, match=said):
        check(tmp_path, "page.md")


def test_all_are_named(tmp_path: Path):
    for name in ("one.md", "three.md"):
        (tmp_path / name).mkdir()
    (tmp_path / "two.md").touch()
    with pytest.raises(PageFileError) as caught:
        check(tmp_path, "one.md", "two.md", "three.md")
    assert re.findall(r"(\w+)\.md: it is a folder", str(caught.value)) == ["one", "three"]
