"""What the Makefile runs is there."""

import re
import subprocess
import sys
from pathlib import Path

MAKEFILE = (Path(__file__).parents[1] / "Makefile").read_text(encoding="utf-8")
MODULES = sorted(set(re.findall(r"/python -m ([\w.]+)", MAKEFILE)))

# In a process of its own: setuptools warns whoever looks for pip where distutils has been imported.
LOOK = "import sys; from importlib.util import find_spec\nprint(*filter(find_spec, sys.argv[1:]))"


def test_each_module_that_is_run_is_there():
    command = [sys.executable, "-c", LOOK, *MODULES]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert MODULES
    assert found.stdout.split() == MODULES
