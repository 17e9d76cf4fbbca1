"""Pages as notebooks with stored outputs."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from evaluation.benchmarks.output_checkers.document import Cell, Page


def write_notebooks(folder: Path, pages: Sequence[Page]) -> None:
    """Writes each page as a notebook: it is run as it was then, and gets the code of now."""
    executed: dict[tuple[Cell, ...], str] = {}
    for page in pages:
        if page.then not in executed:
            notebook = _notebook(page.then)
            NotebookClient(notebook, resources={"metadata": {"path": str(folder)}}).execute()
            executed[page.then] = nbformat.writes(notebook)
        changed = json.loads(executed[page.then])
        code = [cell for cell in changed["cells"] if cell["cell_type"] == "code"]
        for cell, now in zip(code, page.now, strict=True):
            cell["source"] = now.source
        text = json.dumps(changed, indent=1)
        (folder / f"{page.name}.ipynb").write_text(text + "\n", encoding="utf-8")


def cell_names(folder: Path, page: str) -> list[str]:
    """The names of the code cells of a page, in order."""
    notebook = json.loads((folder / f"{page}.ipynb").read_text(encoding="utf-8"))
    return [cell["metadata"]["name"] for cell in notebook["cells"] if cell["cell_type"] == "code"]


def _notebook(cells: Sequence[Cell]) -> Any:
    parts: list[Any] = []
    for cell in cells:
        parts.append(nbformat.v4.new_markdown_cell(f"## {cell.name}"))
        tags = ["raises-exception"] if cell.shows == "error" else []
        described = {"name": cell.name, "tags": tags}
        parts.append(nbformat.v4.new_code_cell(cell.source, metadata=described))
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return nbformat.v4.new_notebook(cells=parts, metadata={"kernelspec": kernel})
