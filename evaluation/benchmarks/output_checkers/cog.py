"""cog: pages into which code writes."""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from evaluation.benchmarks.output_checkers.document import Cell, Page, cell_at
from evaluation.benchmarks.output_checkers.tool import Outcome, Tool, execute

_COG = [sys.executable, "-m", "cogapp", "-P"]


class Cog(Tool):
    """The text between two markers is what the code above it prints."""

    name = "cog"
    distribution = "cogapp"
    command = "cog -P --check --diff"
    purpose = (
        "Writes what Python code prints into any text file, and `--check` tells whether it would "
        "write the same again: for generated parts of pages and sources, in any markup."
    )
    documentation = "https://cog.readthedocs.io/"
    remark = (
        "The code stands in a comment, where readers do not see it; here it prints a figure as the "
        "data of its image, a table as its HTML and a formula as its LaTeX."
    )
    cannot_mark = "texts are compared as they are; the code itself must print less"

    def write(self, folder: Path, pages: Sequence[Page]) -> None:
        """Has cog write the outputs of the code of then, and puts in the code of now."""
        for page in pages:
            path = folder / f"{page.name}.md"
            path.write_text(_markdown(page.name, page.then), encoding="utf-8")
        status, log = execute(
            [*_COG, "-r", *(f"{page.name}.md" for page in pages)], folder, MPLBACKEND="agg"
        )
        if status:
            raise RuntimeError(log)
        for page in pages:
            path = folder / f"{page.name}.md"
            text = path.read_text(encoding="utf-8")
            for then, now in page.cells:
                text = text.replace(_block(then), _block(now))
            path.write_text(text, encoding="utf-8")

    def run(self, folder: Path, names: Sequence[str]) -> Outcome:
        """Checks page by page, since cog stops at the first exception."""
        outcome = Outcome(0)
        for name in names:
            command = [*_COG, "--check", "--diff", f"{name}.md"]
            status, log = execute(command, folder, MPLBACKEND="agg")
            outcome.log += log
            outcome.status = outcome.status or status
            places = list(_places(log))
            if bool(status) != bool(places):
                raise RuntimeError(f"exit status {status}, {places}\n{log}")
            text = (folder / f"{name}.md").read_text(encoding="utf-8")
            for line, what in places:
                outcome.blame(name, cell_at(text, line) or "", f"{name}.md:{line}: {what[:60]}")
        return outcome


def _places(log: str) -> Iterator[tuple[int, str]]:
    """The lines of the page that a log names, each with what it says there."""
    if found := re.search(r'^  File "[^"\n]*\.md", line (\d+), in .*', log, re.MULTILINE):
        yield int(found[1]), found[0].strip()
    line = 0  # of the page as it is, where a diff stands
    for row in log.split("\n"):
        if hunk := re.match(r"@@ -(\d+)", row):
            line = int(hunk[1])
        elif line and row[:1] in ("-", "+"):
            yield line, row
            line += row[0] == "-"
        elif line:
            line += 1


def _markdown(title: str, cells: Sequence[Cell]) -> str:
    parts = [f"# {title}"]
    parts += [f"## {cell.name}\n\n{_block(cell)}\n<!-- [[[end]]] -->" for cell in cells]
    return "\n\n".join(parts) + "\n"


def _block(cell: Cell) -> str:
    """The code between the markers, which prints what the page shows."""
    return "\n".join(["<!-- [[[cog", *_printing(cell), "]]] -->"])


def _printing(cell: Cell) -> list[str]:
    if cell.shows == "error":
        caught = 'print(f"{type(error).__name__}: {error}")'
        body = [f"    {line}" for line in cell.source.split("\n")]
        return ["try:", *body, "except Exception as error:", f"    {caught}"]
    lines = cell.code.split("\n") if cell.code else []
    if cell.shows == "figure":
        return ["from lesson import pictures", *lines, "print(pictures())"]
    method = {"html": "_repr_html_", "latex": "_repr_latex_"}.get(cell.shows)
    if cell.value:
        # What is displayed must be printed; a print is a statement of its own.
        shown = f"({cell.value}).{method}()" if method else f"repr({cell.value})"
        lines += [cell.value if cell.value.startswith("print(") else f"print({shown})"]
    if cell.shows == "text":
        return ['print("```text")', *lines, 'print("```")']
    return lines
