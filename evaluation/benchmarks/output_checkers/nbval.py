"""nbval: notebooks with the outputs that are stored in them."""

import re
from collections.abc import Sequence
from pathlib import Path

from evaluation.benchmarks.output_checkers.document import Page
from evaluation.benchmarks.output_checkers.notebooks import cell_names, write_notebooks
from evaluation.benchmarks.output_checkers.pytest_runs import run_pytest
from evaluation.benchmarks.output_checkers.tool import Outcome, Tool

_SANITIZERS = "sanitizers.cfg"


class Nbval(Tool):
    """Each code cell is a test; its outputs are compared with the stored ones."""

    name = "nbval"
    distribution = "nbval"
    command = "pytest --nbval"
    purpose = (
        "A pytest plugin that runs a notebook again and compares every cell with the outputs "
        "stored in it: for projects whose notebooks are kept with their outputs."
    )
    documentation = "https://nbval.readthedocs.io/"
    remark = (
        "It compares images only with `--nbdime`, which stops with an internal error under pytest "
        "9.1."
    )
    marks = "a file of regular expressions for the whole run (`--nbval-sanitize-with`)"

    def write(self, folder: Path, pages: Sequence[Page]) -> None:
        """Writes notebooks, and the sanitizers if a page has masks."""
        write_notebooks(folder, pages)
        masks = {name: mask for page in pages for name, mask in page.masks.items()}
        if masks:
            sections = [
                f"[{name}]\nregex: {mask.pattern}\nreplace: {mask.replacement}\n"
                for name, mask in masks.items()
            ]
            (folder / _SANITIZERS).write_text("\n".join(sections), encoding="utf-8")

    def run(self, folder: Path, names: Sequence[str]) -> Outcome:
        """Runs pytest; a failed test bears the number of its cell, from 0."""
        sanitizers = folder / _SANITIZERS
        masked = [f"--nbval-sanitize-with={sanitizers}"] if sanitizers.exists() else []
        pages = [f"{name}.ipynb" for name in names]
        status, log, failed = run_pytest(folder, ["-p", "nbval.plugin", "--nbval", *masked, *pages])
        outcome = Outcome(status, log=log)
        for test in failed:
            found = re.search(r"([\w-]+)(?:\.ipynb)?::Cell (\d+)", test.test)
            if found is None:
                raise RuntimeError(f"no cell is named: {test}")
            page, number = found[1], int(found[2])
            where = f"{page}.ipynb::Cell {number}"
            outcome.blame(page, cell_names(folder, page)[number], where)
        return outcome
