"""verified_book: the outputs of executed pages, against blocks of expected output.

The blocks are those that the extension writes itself when it accepts. Where a page asks for more
than it checks unasked, the page has the form of the version that knows it (see `_asks`).
"""

import importlib
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from evaluation.benchmarks.output_checkers.document import Cell, Page, cell_at
from evaluation.benchmarks.output_checkers.tool import NotHere, Outcome, Tool, execute

_SETTINGS = """\
extensions = ["verified_book"]
master_doc = "{master}"
verified_book_distributions = ["numpy"]
exclude_patterns = ["out"]
nb_execution_mode = "force"
nb_execution_allow_errors = True  # the extension reports them, and goes on
"""

_FRONT_MATTER = """\
---
file_format: mystnb
kernelspec: {name: python3, display_name: Python 3, language: python}
orphan: true
---
"""


class VerifiedBook(Tool):
    """A Sphinx build that compares what the reader will see with what stands after the cell."""

    name = "verified_book"
    distribution = "verified-transformer"
    command = "sphinx-build, with the extension verified_book"
    purpose = (
        "A Sphinx extension that compares what the cells of a MyST-NB or Jupyter Book page show "
        "with expected text in the page's own source, in the build that makes the page: for books "
        "that are executed when they are built."
    )
    documentation = ""
    marks = "fewer digits, and `...`"

    def version(self) -> str:
        """The version that `PYTHONPATH` leads to."""
        try:
            return importlib.import_module("verified_book").__version__
        except ImportError as error:
            raise NotHere("verified_book is not on PYTHONPATH") from error

    def write(self, folder: Path, pages: Sequence[Page]) -> None:
        """Has a build accept the outputs of the code of then, and puts in the code of now."""
        settings = _SETTINGS.format(master=pages[0].name)
        if not knows_words():  # it notices no module that it is not told of
            settings += 'verified_book_sources = ["*.py"]\n'
        (folder / "conf.py").write_text(settings, encoding="utf-8")
        # One page for all that show the same.
        first = {page.then: page.name for page in reversed(pages)}
        for cells, name in first.items():
            text = _FRONT_MATTER + _markdown(name, cells)
            (folder / f"{name}.md").write_text(text, encoding="utf-8")
        _, log = _build(folder, VERIFIED_BOOK_ACCEPT="1")
        accepted = {
            cells: (folder / f"{name}.md").read_text(encoding="utf-8")
            for cells, name in first.items()
        }
        for page in pages:
            text = accepted[page.then]
            if "{expect-output}" not in text or re.search(r"\{expect-output\}.*\n```$", text, re.M):
                raise RuntimeError(f"nothing was accepted:\n{text}\n{log}")
            for then, now in page.cells:
                mask = page.masks.get(then.name)
                text = _with_code(text, then, now, mask.digits if mask else None)
            (folder / f"{page.name}.md").write_text(text, encoding="utf-8")

    def run(self, folder: Path, names: Sequence[str]) -> Outcome:
        """Builds the pages; each failure has its file and line."""
        status, log = _build(folder)
        outcome = Outcome(status, log=log)
        for found in re.finditer(r"^\S*?([\w-]+)\.md:(\d+): ERROR: .*", log, re.MULTILINE):
            page, line = found[1], int(found[2])
            cell = cell_at((folder / f"{page}.md").read_text(encoding="utf-8"), line)
            message = found[0].partition(f"{page}.md:")[2]
            outcome.blame(page, cell or "", f"{page}.md:{message}")
        return outcome


def knows_words() -> bool:
    """Whether `exact`, `image` and `digest` may follow `expect-output`: since 0.2."""
    version: str = importlib.import_module("verified_book").__version__
    return tuple(map(int, version.split(".")[:2])) >= (0, 2)


def _asks(cell: Cell) -> str:
    """The words after `expect-output` by which an author asks for more than is checked unasked."""
    if knows_words():
        if cell.shows == "figure":
            return "image digest"
        if cell.aligned:
            return "exact"
    return ""


def _build(folder: Path, **environment: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "sphinx", "-q", "--no-color", ".", "out/html"]
    # The extension that this process would import, whatever the folder of the pages is.
    path = os.pathsep.join(os.path.abspath(part) for part in sys.path if part)
    return execute(command, folder, PYTHONPATH=path, **environment)


def _markdown(title: str, cells: Sequence[Cell]) -> str:
    parts = [f"# {title}"]
    for cell in cells:
        parts.append(f"## {cell.name}\n\n{_fenced(cell)}")
        if words := _asks(cell):
            parts.append(f"```{{expect-output}} {words}\n```")  # to be filled when it is accepted
    return "\n\n".join(parts) + "\n"


def _fenced(cell: Cell) -> str:
    tags = ":tags: [raises-exception]\n\n" if cell.shows == "error" else ""
    return f"```{{code-cell}} ipython3\n{tags}{cell.source}\n```"


def _with_code(text: str, then: Cell, now: Cell, marked: str | None) -> str:
    """A page with other code in a cell, and other text in its expected block if it is given."""
    before, found, after = text.partition(f"## {then.name}\n\n{_fenced(then)}\n")
    if not found:
        raise RuntimeError(f"the cell {then.name} is not as it was written:\n{text}")
    # The tags stand in the page, they go with what it shows.
    code = found.replace(then.source, now.source)
    if marked is not None:
        block = re.compile(r"(```\{expect-output\}[^\n]*\n).*?\n```", re.DOTALL)
        after = block.sub(lambda match: f"{match[1]}{marked}\n```", after, count=1)
    return before + code + after
