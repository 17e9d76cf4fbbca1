"""nbmake: notebooks that must run."""

import re
from collections.abc import Sequence
from pathlib import Path

from evaluation.benchmarks.output_checkers.document import Page
from evaluation.benchmarks.output_checkers.notebooks import cell_names, write_notebooks
from evaluation.benchmarks.output_checkers.pytest_runs import run_pytest
from evaluation.benchmarks.output_checkers.tool import Outcome, Tool


class Nbmake(Tool):
    """Each notebook is a test, which fails when a cell raises."""

    name = "nbmake"
    distribution = "nbmake"
    command = "pytest --nbmake"
    purpose = (
        "A pytest plugin that runs notebooks and fails when a cell raises; it compares no output, "
        "and does not set out to: for notebooks that must keep running."
    )
    documentation = "https://github.com/treebeardtech/nbmake"
    marks = "not needed, no output is compared"

    def write(self, folder: Path, pages: Sequence[Page]) -> None:
        """Writes notebooks."""
        write_notebooks(folder, pages)

    def run(self, folder: Path, names: Sequence[str]) -> Outcome:
        """Runs pytest; the traceback bears the number of the cell, from 1."""
        pages = [f"{name}.ipynb" for name in names]
        status, log, failed = run_pytest(folder, ["-p", "nbmake.pytest_plugin", "--nbmake", *pages])
        outcome = Outcome(status, log=log)
        for test in failed:
            page = re.search(r"([\w-]+)\.ipynb", test.test)
            place = re.search(r"Cell In\[(\d+)\], line \d+", test.text)
            if page is None or place is None:
                raise RuntimeError(f"no cell is named: {test}")
            where = f"{page[0]}: {place[0]}"
            outcome.blame(page[1], cell_names(folder, page[1])[int(place[1]) - 1], where)
        return outcome
