"""What the Makefile runs is there."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

MAKEFILE = (Path(__file__).parents[1] / "Makefile").read_text(encoding="utf-8")
MODULES = sorted(set(re.findall(r"/python -m ([\w.]+)", MAKEFILE)))


@pytest.mark.parametrize("module", MODULES)
def test_each_module_that_is_run_is_there(module):
    assert find_spec(module)
