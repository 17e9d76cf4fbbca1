"""A page that is no text is refused in a sentence, before anything waits for it."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from verified_book.outputs.source import PageFileError, check_files


def check(folder: Path, *names: str, encoding: str = "utf-8-sig") -> None:
    app = SimpleNamespace(config=SimpleNamespace(source_encoding=encoding))
    check_files(app, SimpleNamespace(doc2path=lambda name: folder / name), list(names))


@pytest.mark.parametrize(
    ("data", "line"),
    [(b"a\r\nb\0", 2)],
)
def test_what_is_no_text_is_refused(tmp_path: Path, data: bytes, line: int):
    (tmp_path / "page.md").write_bytes(data)
    said = rf"page\.md:{line}: this is no text, it has a NUL character\. Remedy: mend or exclude it"
    with pytest.raises(PageFileError, match=said):
        check(tmp_path, "page.md")
