"""What a build warned of stands once more at its end."""

from pathlib import Path

from tests.verified_book.kernels.builds import Book

EXTENSION = {"extensions": ["myst_parser", "book_site.repeated_warnings"]}
REPEATED = "This build warned:\n"


def test_warnings_stand_at_the_end(tmp_path: Path):
    book = Book(tmp_path, EXTENSION)
    book.write("index.md", "# Page", "", "{ref}`nowhere`", "", "{unknown}`role`")
    build = book.start("-W", "--keep-going", "-n")
    assert build.status == 1
    before, _, after = build.log.partition(REPEATED)
    assert "writing output" in before
    first, second = after.strip().splitlines()[:2]
    assert first.startswith(f"{tmp_path / 'index.md'}:5: WARNING: Unknown interpreted text role")
    assert second.startswith(f"{tmp_path / 'index.md'}:3: WARNING: undefined label: 'nowhere'")
