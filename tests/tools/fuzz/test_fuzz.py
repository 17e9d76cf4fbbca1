"""The share of `make fuzz` that every run of the tests has."""

from pathlib import Path

import pytest

from tools.fuzz.__main__ import trial


@pytest.mark.parametrize("seed", [101, pytest.param(102, marks=pytest.mark.nightly)])
def test_a_book_made_by_chance_holds(tmp_path: Path, seed: int):
    counts, wrong = trial(tmp_path / "book", seed, pages=2, segments=25)
    assert wrong == []
    assert counts.total() == 50
    assert {"missing", "right", "loosened", "wrong", "silent"} <= counts.keys()
