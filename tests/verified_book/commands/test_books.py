"""Which folder is a book, and where its builds lie."""

from pathlib import Path

import pytest

from tests.verified_book.commands.conftest import write
from verified_book.commands.books import Book, book_of


def test_the_nearest_book_of_the_repository_is_that_of_a_page(tmp_path: Path):
    write(tmp_path, {"conf.py": "", "a/conf.py": "", "a/b/page.md": "", "a/b/c/page.md": ""})
    page = tmp_path / "a/b/page.md"
    assert book_of(page) == book_of(page.parent) == Book(tmp_path / "a", "Sphinx")
    inner = tmp_path / "a/b/c/page.md"
    (inner.parent / ".git").mkdir()
    assert book_of(inner) == Book(inner.parent, "page", "page.md")
    assert book_of(inner.parent) == Book(inner.parent, "page")


@pytest.mark.parametrize(
    ("folder", "files", "builds"),
    [
        ("docs", {"docs/conf.py": "exclude_patterns = ['_build']"}, "docs/_build"),
        ("docs/source", {"docs/source/conf.py": "'_build'"}, "docs/source/_build"),
        ("docs", {"docs/conf.py": ""}, None),
    ],
)
def test_builds_lie_where_the_book_has_them_and_else_apart(
    tmp_path: Path, folder: str, files: dict[str, str], builds: str | None
):
    write(tmp_path, files)
    found = Book(tmp_path / folder, "Sphinx").builds()
    if builds is None:
        assert not found.is_relative_to(tmp_path)
        assert found.name.startswith(f"{Path(folder).name}-")
        assert found != Book(tmp_path / "another", "page", "page.md").builds()
    else:
        assert found == tmp_path / builds
