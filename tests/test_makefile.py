"""What the Makefile runs is there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
MODULES = sorted(set(re.findall(r"/python -m ([\w.]+)", MAKEFILE)))

# In a process of its own: setuptools warns whoever looks for pip where distutils has been imported.
LOOK = "import sys; from importlib.util import find_spec\nprint(*filter(find_spec, sys.argv[1:]))"


@pytest.mark.parametrize(("goals", "built"), [("book test", True), ("test", False)])
def test_a_site_that_the_same_call_builds_is_not_built_again(goals: str, built: bool):
    command = ["make", "--dry-run", "--old-file", ".venv/installed", *goals.split()]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert ("jupyter-book build" in said) == built
    assert ("BUILT_SITE=book/_build/html .venv/bin/python -m pytest" in said) == built
    assert said.count("-m pytest") == 1


def test_each_module_that_is_run_is_there():
    command = [sys.executable, "-c", LOOK, *MODULES]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert MODULES
    assert found.stdout.split() == MODULES
