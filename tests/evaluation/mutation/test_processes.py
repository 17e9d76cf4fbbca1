"""Trials in processes of their own, and the whole command on one small layer."""

import json
import subprocess
import sys

import pytest

from evaluation.mutation.processes import Result, read
from evaluation.mutation.trials import path_of
from evaluation.mutation.wrongs import ROOT

# Tests that hang, that end the process, that cannot be imported, and some of every other outcome.
PROBES = {
    "hangs": """
import pathlib, time

def test_a():
    pass

def test_b():
    pathlib.Path(__file__).with_name("hangs").touch()
    time.sleep(999)

def test_c():
    pass
""",
    "crashes": "import os\ndef test_a(): os.abort()\n",
    "folder/breaks": "import no_such_module\ndef test_a(): pass\n",
    "ends": """
import pytest

@pytest.mark.parametrize("n", [1, 2])
def test_a(n):
    assert n == 1

def test_b():
    with pytest.raises(ValueError):
        pass

def test_c():
    (lambda: 0)(1)

def test_d():
    with pytest.raises(ValueError, match="this"):
        raise ValueError("that")

def test_e():
    pytest.skip("never")

class TestF:
    def test_g(self):
        [].nothing

    def test_h(self):
        raise TypeError("no argument")
""",
}
# A fresh interpreter has one thread, as a process that forks should have. Time passes when one
# hangs, the first, and neither before nor after, however long the others take.
SCRIPT = """
import json, sys
from pathlib import Path
from types import SimpleNamespace
from evaluation.mutation import processes, trials
trials.TESTS = Path(sys.argv[1])
processes.AT_ONCE = 1
hangs = Path(sys.argv[1], "hangs")
processes.time = SimpleNamespace(monotonic=lambda: 100.0 if hangs.exists() else 0.0)
queue = [trials.Trial(name) for name in sys.argv[2:]]
results = processes.results_of([*queue, trials.Trial("ends", select="test_b")], seconds=1)
print(json.dumps([[result.outcomes, result.error] for result in results]))
"""


def test_what_becomes_of_tests_that_hang_crash_break_and_end(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTEST_ADDOPTS", "--randomly-seed=1")  # as of whoever runs these tests
    (tmp_path / "folder").mkdir()
    for name, text in PROBES.items():
        (tmp_path / path_of(name)).write_text(text)
    command = [sys.executable, "-c", SCRIPT, str(tmp_path), *PROBES]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    hangs, crashes, breaks, ends, selected = (Result(*each) for each in json.loads(ended.stdout))
    assert hangs == Result({"test_a": "passed", "test_b": "failed", "test_c": "not run"})
    assert crashes == Result({"test_a": "failed"})
    assert breaks.outcomes == {}
    assert "No module named 'no_such_module'" in breaks.error
    assert ends == Result(
        {
            "test_a[1]": "passed",
            "test_a[2]": "failed",
            "test_b": "not raised",
            "test_c": "unfit",
            "test_d": "failed",
            "test_e": "skipped",
            "TestF::test_g": "unfit",
            "TestF::test_h": "failed",
        }
    )
    assert [case for case, outcome in selected.outcomes.items() if outcome != "not run"] == [
        "test_b"
    ]


def test_a_process_that_ran_no_test_is_an_error_with_what_it_printed(tmp_path):
    assert read(tmp_path) == Result({}, "no test was run")
    (tmp_path / "log").write_text("a reason\n")
    assert read(tmp_path) == Result({}, "no test was run\na reason")
    records = '{"case": "test_a", "outcome": "not run"}\n{"status": 5}\n'
    (tmp_path / "records").write_text(records)
    assert read(tmp_path) == Result({}, "no test was run\na reason")


@pytest.mark.nightly
def test_the_command_on_one_small_layer():
    command = [sys.executable, "-m", "evaluation.mutation", "sinusoidal_positions"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "  1  sinusoidal_positions: sines before cosines\n" in ended.stdout
    assert "problem" not in ended.stdout
    (row,) = [line for line in ended.stdout.splitlines() if line.startswith("test_is_exact_in_")]
    assert row.split()[1:] == ["xxxxxxxxxx.x.", "11"]  # widths and dtypes are not its affair
