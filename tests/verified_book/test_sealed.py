"""A value that was sealed comes back as it was, or not at all."""

from pathlib import Path

import pytest

from tests.verified_book.hostile import DAMAGES, flipped
from verified_book.sealed import read_sealed, write_sealed

VALUE = {"a": [1, 2.5, None, "é\n"], "b": {"": True, "pages": ["x", "y/z"]}}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "sealed.json"
    write_sealed(file, VALUE)
    return file


def test_what_was_written_is_read(file: Path):
    assert read_sealed(file) == VALUE
    write_sealed(file, [])
    assert read_sealed(file) == []
    assert [path.name for path in file.parent.iterdir()] == ["sealed.json"]


def test_one_bit_is_noticed_wherever_it_is(file: Path):
    unharmed = 0
    for data in flipped(file.read_bytes(), most=30):
        file.write_bytes(data)
        try:
            assert read_sealed(file) == VALUE
            unharmed += 1
        except ValueError:
            pass
    assert unharmed < 3  # a space that became a tab


@pytest.mark.parametrize("kind", ["a folder", "a pipe", "half", "brackets"])
def test_damage_is_an_error_that_names_the_file(file: Path, kind: str):
    DAMAGES[kind](file)
    with pytest.raises((OSError, ValueError)) as caught:
        read_sealed(file)
    assert str(file) in (getattr(caught.value, "filename", None) or str(caught.value))
