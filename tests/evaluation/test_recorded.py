"""Results that are read again: right, or refused in a sentence; and written whole."""

import argparse
import json
import re
import sys
from pathlib import Path

import pytest

from evaluation.benchmarks import __main__ as benchmarks
from evaluation.benchmarks.output_checkers import __main__ as output_checkers
from evaluation.recorded import at_least_one, new_file, read_results, write_results
from evaluation.survey import __main__ as survey
from evaluation.survey import cited, counts
from tests.verified_book.hostile import DAMAGES, NO_FILES

RESULTS = {"rows": [{"é": 1}], "date": "today", "torch": "2", "second": {"a": 1}}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "results.json"
    write_results(file, RESULTS, ensure_ascii=False)
    return file


def test_what_was_written_is_read(file: Path):
    assert read_results(file, ["rows", "date"], "make it") == RESULTS
    assert "é" in file.read_text(encoding="utf-8")
    assert [path.name for path in file.parent.iterdir()] == ["results.json"]


@pytest.mark.parametrize("kind", DAMAGES)
def test_damage_is_told_in_a_sentence(file: Path, kind: str):
    DAMAGES[kind](file)
    said = r"results\.json: .*\. Remedy: restore it from git, or make it$"
    with pytest.raises(SystemExit, match=said):
        read_results(file, ["rows"], "make it")


@pytest.mark.parametrize("program", [counts, cited, survey, output_checkers])
def test_programs_tell_it_before_they_begin(file: Path, monkeypatch, program: object):
    file.write_text("[")
    monkeypatch.setattr(survey.recorded, "__defaults__", (file,))
    words = ["--output", str(file), "--only"]
    words += ["cog"] if program is output_checkers else ["nothing", "--update"]
    monkeypatch.setattr(sys, "argv", ["program", *words])
    with pytest.raises(SystemExit, match=r"results\.json: it does not hold results\. Remedy: "):
        program.main()


@pytest.mark.parametrize("kind", [*NO_FILES, "none", "no folder"])
def test_where_nothing_can_be_written_nothing_is_begun(file: Path, kind: str):
    name = {"none": "", "no folder": str(file / "below")}.get(kind, str(file))
    if kind in ("none", "no folder", "a gigabyte of zeros"):
        assert new_file(str(file)) == file
    else:
        NO_FILES[kind](file)
    if kind != "a gigabyte of zeros":
        with pytest.raises(argparse.ArgumentTypeError, match="name one"):
            new_file(name)


@pytest.mark.parametrize("text", ["0", "-1", "1e300", "NaN", str(2**64), "", "1.5", "9" * 5000])
def test_numbers_that_none_can_be(text: str, monkeypatch, capsys):
    for option in ("rounds", "threads"):
        monkeypatch.setattr(sys, "argv", ["benchmarks", f"--{option}={text}"])
        with pytest.raises(SystemExit):
            benchmarks.main()
        assert re.search("is no whole number|is not from 1 to 10,000", capsys.readouterr().err)


def test_a_number():
    assert at_least_one("7") == 7


def test_the_recorded_results_are_read():
    assert json.loads(survey.RESULTS.read_text(encoding="utf-8")) == survey.recorded()
