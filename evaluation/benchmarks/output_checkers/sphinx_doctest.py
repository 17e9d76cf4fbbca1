"""sphinx.ext.doctest: sessions of the interactive interpreter in a Sphinx project."""

import re
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from evaluation.benchmarks.output_checkers.doctests import TEXT_ONLY, sessions
from evaluation.benchmarks.output_checkers.document import Page
from evaluation.benchmarks.output_checkers.tool import Outcome, Tool, execute

_SETTINGS = 'extensions = ["sphinx.ext.doctest"]\nmaster_doc = "{master}"\n'


class SphinxDoctest(Tool):
    """A builder that runs the doctest blocks of all pages."""

    name = "sphinx.ext.doctest"
    distribution = "sphinx"
    command = "sphinx-build -b doctest"
    purpose = (
        "A Sphinx builder that runs the `>>>` sessions and the `testcode`/`testoutput` pairs of "
        "all pages: for documentation whose examples are text, without a kernel or figures."
    )
    documentation = "https://www.sphinx-doc.org/en/master/usage/extensions/doctest.html"
    remark = (
        "With `doctest_default_flags = 0` it caught the swallowed value and the other "
        "message too; its default takes `...` for any text and compares no messages."
    )
    marks = "`...`, by default"
    cannot_show = TEXT_ONLY

    def write(self, folder: Path, pages: Sequence[Page]) -> None:
        """Writes reStructuredText with a doctest block for each cell."""
        settings = _SETTINGS.format(master=pages[0].name)
        (folder / "conf.py").write_text(settings, encoding="utf-8")
        for page, cells in zip(pages, sessions(folder, pages), strict=True):
            lines = [page.name, "=" * len(page.name), ""]
            for name, session in cells:
                lines += [name, "-" * len(name), "", ".. doctest::", ""]
                lines += [f"   {line}".rstrip() for line in session] + [""]
            (folder / f"{page.name}.rst").write_text("\n".join(lines), encoding="utf-8")

    def run(self, folder: Path, names: Sequence[str]) -> Outcome:
        """Runs the builder; the log has the line of each failed example."""
        command = [sys.executable, "-m", "sphinx", "-b", "doctest", ".", "out"]
        status, log = execute(command, folder)
        outcome = Outcome(status, log=log)
        for found in re.finditer(r'^File "([\w-]+)\.rst", line (\d+), in .*', log, re.MULTILINE):
            lines = (folder / f"{found[1]}.rst").read_text(encoding="utf-8").split("\n")
            outcome.blame(found[1], _cell_at(lines, int(found[2])), found[0])
        return outcome


def _cell_at(lines: Sequence[str], line: int) -> str:
    """The last section title above a line."""
    titles = [a for a, b in pairwise(lines[:line]) if b and set(b) == {"-"}]
    return titles[-1]
