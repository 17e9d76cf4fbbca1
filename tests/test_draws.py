"""What a test draws depends on a seed and on its name alone."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[1]
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
