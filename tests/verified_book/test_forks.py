"""A process that builds a book is a fresh one, but for what it has imported."""

import os
import sys
from pathlib import Path

from tests.verified_book import forks


def told(arguments: list[str]) -> int:
    """Prints what it finds where it runs."""
    print("sphinx.application" in sys.modules, sys.modules.get("rfc3987_syntax", "to be imported"))
    print(sys.argv, arguments, os.getcwd(), os.environ.get("ONE"), "new" in sys.path)
    print("to the other stream", file=sys.stderr)
    return 3


def test_a_program_runs_in_its_folder_with_its_arguments_and_variables(tmp_path: Path):
    environment = {"ONE": "1", "PYTHONPATH": "new"}
    run = forks.Run(told, ["-x", "y"], tmp_path, environment, tmp_path / "log")
    assert run.wait() == 3
    lines = run.log.splitlines()
    assert "True None" in lines
    assert f"['told', '-x', 'y'] ['-x', 'y'] {tmp_path} 1 True" in lines
    assert "to the other stream" in lines
    assert "ONE" not in os.environ
