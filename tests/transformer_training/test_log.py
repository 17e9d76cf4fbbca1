"""What a log says of lines that it has lost."""

import os
from pathlib import Path

import pytest

from tests.transformer_training.processes import losses
from transformer_training.log import Log


@pytest.fixture
def path(tmp_path: Path) -> Path:
    Log(tmp_path, 0, 99, 1).close()
    for step in range(12):
        written = Log(tmp_path, step, 99, 1)
        written.write(step + 1, {"loss": 1.0})
        written.close()
    return tmp_path / "log.jsonl"


def test_gaps_are_named(path, capsys):
    lines = path.read_text().splitlines(keepends=True)
    lines[1] = lines[1].replace("1.0", "1.1")
    path.write_text("".join(lines[:4] + lines[7:]))
    for kept in ("; what was there is kept as log.jsonl.damaged\n", "\n"):
        Log(path.parent, 10, 99, 1).close()
        has = f"{path}: has no whole line of step 2, steps 5 to 7, and goes on without"
        assert capsys.readouterr().out == has + kept
    assert path.read_text() == "".join([lines[0], *lines[2:4], *lines[7:10]])
    assert "1.1" in (path.parent / "log.jsonl.damaged").read_text()


def test_nothing_is_said_of_a_line_that_was_cut(path, capsys):
    os.truncate(path, path.stat().st_size - 9)
    Log(path.parent, 11, 99, 1).close()
    assert capsys.readouterr().out == ""
    assert len(losses(path.parent)) == 11
