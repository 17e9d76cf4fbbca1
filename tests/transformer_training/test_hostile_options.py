"""Each option with values that nobody means: it is right, or one sentence names it.

The cases come from the fields of `TrainingConfig`, so that a new option has its own.
"""

import os
import sys
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

import pytest

from transformer_training.__main__ import main
from transformer_training.config import TrainingConfig, _flag
from transformer_training.run import Run

OPTIONS = {each.name: each for each in fields(TrainingConfig)}
NUMBERS = ["-1", "1e300", "nan", "9" * 5000]
TEXTS = {
    "empty": "",
    "NUL": "a\0b",
    "no UTF-8": "\udcff",
}
FILES = ["a folder", "a FIFO", "zeros", "bytes", "empty file"]
TOML = ["[[1]]", "{a = 1}", "'text'", "nan"]
CHOSEN = {name: each.metadata["allowed"] for name, each in OPTIONS.items()}
IS_TEXT = [name for name, each in OPTIONS.items() if isinstance(each.default, str | tuple)]
IS_NUMBER = [name for name, each in OPTIONS.items() if type(each.default) in (int, float)]
IS_PATH = ["data", "out", "tokenizer"]


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """One step is enough, and the machine is a small one."""
    step = Run.next_step

    def only(self: Run) -> None:
        step(self)
        self.step = self.config.steps

    monkeypatch.setattr(Run, "next_step", only)
    # The package has a function of the module's name.
    module = sys.modules["transformer_training.estimate"]
    monkeypatch.setattr(module, "_memory", lambda device: 1 << 33)


@pytest.fixture
def tell(small: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Any:
    """Runs the command, holds what it says against its status, and gives the sentence."""

    def told(*options: str, without: str = "") -> str:
        base = [*small, "--out", str(tmp_path / "out"), "--sample-every", "1"]
        if without:
            place = base.index(without)
            del base[place : place + 2]
        monkeypatch.setattr("sys.argv", ["x", *base, *options])
        status = main()
        said = capsys.readouterr().err
        assert status in (0, 1, 2)
        assert (said == "") == (status == 0)
        assert said.count("\n") == (status != 0)
        assert not said or said.startswith("transformer_training: ")
        return said

    return told


OTHER_NAMES = {"start": "--from"}


def places(folder: Path, kind: str) -> Path:
    """Makes what a path may lead to, other than the file that it should."""
    path = folder / kind.replace(" ", "-")
    if kind == "a folder":
        path.mkdir()
    elif kind == "a FIFO":
        os.mkfifo(path)
    else:
        path.write_bytes({"zeros": bytes(3 << 20), "bytes": b"\xff\xfe", "empty file": b""}[kind])
    return path


@pytest.mark.parametrize("value", NUMBERS, ids=lambda value: repr(value[:20]))
@pytest.mark.parametrize("name", IS_NUMBER)
def test_numbers(name, value, tell):
    said = tell(f"{_flag(name)}={value}")
    assert not said or _flag(name) in said
    if value in ("-1", "nan", "1e300"):
        assert said


@pytest.mark.parametrize("value", TEXTS)
@pytest.mark.parametrize("name", IS_TEXT)
def test_texts(name, value, tell, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    said = tell(f"{_flag(name)}={TEXTS[value]}")
    assert not said or _flag(name) in said or OTHER_NAMES.get(name, _flag(name)) in said
    if CHOSEN[name] or value in ("NUL", "no UTF-8"):
        assert said


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (name, kind)
        for name in (*IS_PATH, "config")
        for kind in FILES
        if (name, kind) != ("data", "zeros")  # a text, of one word
    ],
)
def test_what_paths_lead_to(name, kind, tell, tmp_path):
    said = tell(f"{_flag(name)}={places(tmp_path, kind)}")
    if (name, kind) in (("out", "a folder"), ("config", "empty file")):
        return
    assert _flag(name) in said


@pytest.mark.parametrize("name", OPTIONS)
def test_files_of_options(name, tell, tmp_path, monkeypatch):
    monkeypatch.setattr("transformer_training.__main__.train", lambda config: None)
    path = tmp_path / "run.toml"
    flag = _flag(name) if name in ("data", "out", "steps") else ""
    for value in TOML:
        path.write_text(f"{name} = {value}\n")
        said = tell("--config", str(path), without=flag)
        named = name in said.replace("-", "_") or OTHER_NAMES.get(name, name) in said
        assert not said or named, value


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("data = [1]", "--data must be text"),
        ("data = []", "--data must name one text file or more"),
        ("[model]\nsteps = 3", "there is no option 'model'"),
        ("a = " + "[" * 100_000, "is no TOML"),
        ("steps = " + "9" * 5000, "is no TOML"),
        ("lr = 1" + "0" * 400, "lr must be of type float"),
        ("steps = 3\nste", "is no TOML"),
        ("prompt = '\\u0000'", None),
        ('prompt = "\\u0000"', "--prompt must be text"),
    ],
    ids=lambda text: str(text)[:20],
)
def test_files_that_are_damaged(content, said, tell, tmp_path):
    path = tmp_path / "run.toml"
    path.write_text(content)
    told = tell("--config", str(path), without="--data" if "data" in content else "")
    assert (said or "") in told
    assert bool(told) == bool(said)


def test_each_number_has_a_range():
    def is_open(option: "Field[Any]") -> bool:
        return option.metadata["allowed"] is None

    assert not [name for name in IS_NUMBER if is_open(OPTIONS[name])]
