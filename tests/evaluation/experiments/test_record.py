"""Experiments: measured, recorded, read, and refused when they are stale."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from evaluation.experiments import __main__ as program
from evaluation.experiments import names, record, recorded

NAME = "record"  # a module that is there, for one that is made up


@pytest.fixture
def folder(monkeypatch, tmp_path: Path) -> Path:
    """Where the made-up experiment has been recorded by the command."""
    made_up = SimpleNamespace(SOURCES=("evaluation/sources.py",), measure=lambda: {"shares": [0.5]})
    monkeypatch.setattr(record, "_module", lambda name: made_up)
    monkeypatch.setattr(program, "names", lambda: (NAME,))
    monkeypatch.setattr(program, "RESULTS", tmp_path)
    monkeypatch.setattr(sys, "argv", ["experiments", NAME])
    program.main()
    return tmp_path


def test_what_was_measured_is_read(folder):
    assert recorded(NAME, folder) == {"shares": [0.5]}
    written = json.loads((folder / f"{NAME}.json").read_text())
    assert list(written["sources"]) == ["evaluation/experiments/record.py", "evaluation/sources.py"]
    assert {"date", "python", "torch"} <= written.keys()


def test_a_stale_record_is_refused(folder):
    file = folder / f"{NAME}.json"
    written = json.loads(file.read_text())
    written["sources"]["evaluation/sources.py"] = "0"
    file.write_text(json.dumps(written))
    said = r"before evaluation/sources\.py changed\. Remedy: run python -m .*experiments record$"
    with pytest.raises(SystemExit, match=said):
        recorded(NAME, folder)


@pytest.mark.parametrize("name", ["huge", "record", "__main__", ""])
def test_an_unknown_experiment_is_named(name):
    with pytest.raises(ValueError, match=rf"the experiments are .*; got '{name}'"):
        recorded(name)


@pytest.mark.parametrize("name", names())
def test_each_record_is_up_to_date(name):
    assert recorded(name)
