"""Draws depend on a seed and a name alone; runs that fail are named by their seeds."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tools.random_orders import __main__ as hard

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[3]
DRAWS = """\
import json, random
import numpy, pytest, torch

def draws():
    return [random.random(), numpy.random.random(), torch.rand(()).item()]

@pytest.fixture(scope="module")
def shared():
    return draws()

@pytest.fixture
def own(shared):
    return draws()

@pytest.fixture
def note(request):
    def write(*found):
        with open("draws.jsonl", "a") as file:
            print(json.dumps([request.node.name, *found]), file=file)
    return write

@pytest.mark.parametrize("n", range(3))
def test_a(n, own, shared, note):
    note(shared, own, draws())

def test_b(shared, note):
    note(shared, draws())

def test_c(note):
    note(draws())
"""
NAMES = ["test_a[0]", "test_a[1]", "test_a[2]", "test_b", "test_c"]


@pytest.fixture
def drawn(pytester: pytest.Pytester, monkeypatch):
    """Runs tests, and gives their names in the order in which they ran, and what each drew."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    shutil.copy(ROOT / "conftest.py", pytester.path)
    pytester.makepyfile(test_draws=DRAWS)

    def run(*options: str) -> tuple[list[str], dict[str, Any]]:
        noted = pytester.path / "draws.jsonl"
        noted.unlink(missing_ok=True)
        pytester.runpytest_inprocess("-p", "no:cacheprovider", *options).assert_outcomes(passed=5)
        found = [json.loads(line) for line in noted.read_text(encoding="utf-8").splitlines()]
        return [name for name, *_ in found], {name: draws for name, *draws in found}

    return run


def test_draws_depend_on_nothing_that_ran_before(drawn):
    order, plain = drawn()
    assert order == NAMES
    numbers = [number for draws in plain.values() for three in draws for number in three]
    assert len(set(numbers)) == len(numbers) - 3 * 3  # four tests have what they share
    assert drawn(*(f"test_draws.py::{name}" for name in NAMES[::-1])) == (NAMES[::-1], plain)
    assert drawn("--disable-plugin-autoload") == (NAMES, plain)  # as against wrong versions


def test_a_seed_gives_another_order_and_other_draws(drawn):
    _, plain = drawn()
    orders = [drawn("--randomly-seed", str(seed)) for seed in range(1, 7)]
    assert len({tuple(order) for order, _ in orders}) > 3  # of 120 orders
    assert all(draws != plain for _, draws in orders)
    assert drawn("--randomly-seed", "1") == orders[0]
    assert drawn("--randomly-seed", "1", "--numprocesses", "2")[1] == orders[0][1]
    assert drawn("--randomly-seed", "0", "--randomly-dont-reorganize") == (NAMES, plain)


@pytest.mark.parametrize("failing", [[], [13], [12, 14]])
def test_runs_that_fail_are_named_by_their_seeds(monkeypatch, capsys, failing: list[int]):
    ran = []

    def call(command: list[str], env: dict[str, str]) -> int:
        seed = int(command[command.index("--randomly-seed") + 1])
        ran.append((seed, env["PYTHONHASHSEED"], command[-2:]))
        return 5 * (seed in failing)

    monkeypatch.setattr(subprocess, "call", call)
    status = hard.main(["--runs", "3", "--seed", "12", "--busy", "0", "-k", "mean"])
    assert status == bool(failing)
    assert ran == [(seed, str(seed), ["-k", "mean"]) for seed in (12, 13, 14)]
    said = capsys.readouterr().out
    assert said.startswith("== 3 runs, seeds 12 to 14\n== run 1 of 3, seed 12: ")
    for seed in (12, 13, 14):
        expected = "failed with status 5" if seed in failing else "passed"
        assert f"seed {seed}: {expected}, " in said
    if failing:
        assert f"{len(failing)} of 3 runs failed, with the seeds {failing}\n" in said
        assert said.endswith(f"--runs 1 --seed {failing[0]} -k mean\n")
    else:
        assert said.endswith("== 3 runs passed\n")


def test_a_first_seed_is_drawn(monkeypatch):
    seeds: list[int] = []
    monkeypatch.setattr(hard, "run", lambda seed, arguments: seeds.append(seed))
    monkeypatch.setattr(random.SystemRandom, "randrange", lambda own, end: end - 7)
    assert hard.main(["--runs", "2", "--busy", "0"]) == 0
    assert seeds == [2**31 - 7, 2**31 - 6]


@pytest.mark.parametrize("options", [["--runs", "0"], ["--seed", "-1"], ["--seed", str(2**31)]])
def test_numbers_that_make_no_runs(options: list[str], capsys):
    with pytest.raises(SystemExit, match="2"):
        hard.main(options)
    assert f"got {options[1]}" in capsys.readouterr().err


def test_what_keeps_the_machine_busy_ends_with_who_asked():
    with hard.busy() as pid:
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_it_ends_where_who_asked_is_killed():
    """The killed process leaves its output to the busy one, so that this ends with both."""
    code = (
        "import subprocess, sys; from tools.random_orders.__main__ import BUSY\n"
        "subprocess.Popen([sys.executable, '-c', BUSY], stdin=subprocess.PIPE)\n"
        "print('begun', flush=True); sys.stdin.read()"
    )
    asked = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert asked.stdout.readline() == b"begun\n"
    asked.send_signal(signal.SIGKILL)
    assert asked.stdout.read() == b""  # the end of the output: nobody holds it any more
    assert asked.wait() == -signal.SIGKILL
    asked.stdin.close()
    asked.stdout.close()
