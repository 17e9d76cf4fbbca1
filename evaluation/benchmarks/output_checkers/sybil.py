"""Sybil: examples in Markdown, as sessions of the interactive interpreter."""

import re
from collections.abc import Sequence
from pathlib import Path

from evaluation.benchmarks.output_checkers.doctests import TEXT_ONLY, sessions
from evaluation.benchmarks.output_checkers.document import Page, cell_at
from evaluation.benchmarks.output_checkers.pytest_runs import run_pytest
from evaluation.benchmarks.output_checkers.tool import Outcome, Tool

_SETTINGS = """\
from sybil import Sybil
from sybil.parsers.myst import PythonCodeBlockParser

pytest_collect_file = Sybil(parsers=[PythonCodeBlockParser()], pattern="*.md").pytest()
"""


class SybilTool(Tool):
    """Each example is a test."""

    name = "sybil"
    distribution = "sybil"
    command = "pytest, with Sybil(parsers=[PythonCodeBlockParser()]) in conftest.py"
    purpose = (
        "Finds examples in documentation and docstrings, by parsers that can be one's own, and "
        "evaluates them in the test run: for projects whose examples are `>>>` sessions, or code "
        "that asserts."
    )
    documentation = "https://sybil.readthedocs.io/"
    marks = "`...`, with `# doctest: +ELLIPSIS`"
    cannot_show = TEXT_ONLY

    def write(self, folder: Path, pages: Sequence[Page]) -> None:
        """Writes Markdown with a fenced session for each cell."""
        (folder / "conftest.py").write_text(_SETTINGS, encoding="utf-8")
        for page, cells in zip(pages, sessions(folder, pages), strict=True):
            parts = [f"# {page.name}"]
            parts += [
                "\n".join([f"## {name}", "", "```python", *lines, "```"]) for name, lines in cells
            ]
            text = "\n\n".join(parts) + "\n"
            (folder / f"{page.name}.md").write_text(text, encoding="utf-8")

    def run(self, folder: Path, names: Sequence[str]) -> Outcome:
        """Runs pytest; a failed test bears the line of its example."""
        status, log, failed = run_pytest(folder, [f"{name}.md" for name in names])
        outcome = Outcome(status, log=log)
        for test in failed:
            found = re.search(r"([\w-]+)(?:\.md)?::line:(\d+)", test.test)
            if found is None:
                raise RuntimeError(f"no line is named: {test}")
            text = (folder / f"{found[1]}.md").read_text(encoding="utf-8")
            cell = cell_at(text, int(found[2]))
            outcome.blame(found[1], cell or "", f"{found[1]}.md::line:{found[2]}")
        return outcome
