"""Results that are read again: right, or refused in a sentence; and written whole."""

import argparse
import sys
from pathlib import Path

import pytest

from evaluation.benchmarks import __main__ as benchmarks
from evaluation.recorded import at_least_one, new_file, read_results, write_results

RESULTS = {"rows": [{"é": 1}], "date": "today", "second": {"a": 1}}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "results.json"
    write_results(file, RESULTS, ensure_ascii=False)
    return file


def test_what_was_written_is_read(file: Path):
    assert read_results(file, ["rows", "date"], "make it") == RESULTS
    assert "é" in file.read_text(encoding="utf-8")
    assert [path.name for path in file.parent.iterdir()] == ["results.json"]


@pytest.mark.parametrize("text", [None, "[", "[]", '{"rows": []}'])
def test_damage_is_told_in_a_sentence(file: Path, text: str | None):
    file.unlink()
    if text is not None:
        file.write_text(text)
    said = r"results\.json: .*\. Remedy: restore it from git, or make it$"
    with pytest.raises(SystemExit, match=said):
        read_results(file, ["rows"], "make it")


def test_where_nothing_can_be_written_nothing_is_begun(file: Path):
    assert new_file(str(file)) == file
    for name in ("", str(file.parent), str(file / "below")):
        with pytest.raises(argparse.ArgumentTypeError, match="name one"):
            new_file(name)


def test_numbers_that_none_can_be_are_refused_before_anything_is_measured(monkeypatch, capsys):
    assert at_least_one("7") == 7
    for text, said in (("0", "0 is not from 1 to 10,000"), ("1.5", "'1.5' is no whole number")):
        monkeypatch.setattr(sys, "argv", ["benchmarks", f"--rounds={text}"])
        with pytest.raises(SystemExit):
            benchmarks.main()
        assert said in capsys.readouterr().err
