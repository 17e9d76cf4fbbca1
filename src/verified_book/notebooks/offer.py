"""Offers the executed notebook of every chapter with cells in the theme's download menu."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import nbformat
from docutils import nodes
from nbformat import NotebookNode, v4
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder

from verified_book.markdown import Block, flow
from verified_book.markdown_inline import Page
from verified_book.notebook_cells import executed_notebook, is_cell, notebook_path

_KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}
_HIDES_INPUT = {"hide-input", "hide-cell", "remove-input", "remove-cell"}
_HIDES_OUTPUT = {"hide-output", "hide-cell", "remove-output", "remove-cell"}


def offer(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Writes the notebook of a page next to its source, and tells the theme its name."""
    builder = app.builder
    if doctree is None or not isinstance(builder, StandaloneHTMLBuilder):
        return
    if builder.name == "singlehtml":  # has no page of its own for a chapter
        return
    target = Path(builder.outdir, "_sources", *f"{pagename}.ipynb".split("/"))
    target.unlink(missing_ok=True)
    has_cells = any(True for _ in doctree.findall(is_cell))
    if not has_cells or not notebook_path(app, pagename).is_file():
        return
    labels = {
        anchor: label % ".".join(map(str, number))
        for kind, label in builder.config.numfig_format.items()
        for anchor, number in builder.fignumbers.get(kind, {}).items()
    }
    address = builder.config.html_baseurl
    page = Page(
        url=urljoin(address, builder.get_target_uri(pagename)) if address else "",
        labels=labels,
    )
    blocks = flow(doctree.children, page)
    notebook = assemble(executed_notebook(app, pagename), blocks)
    target.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, target)
    context["ipynb_source"] = f"{pagename}.ipynb"


def assemble(executed: NotebookNode, blocks: Iterable[Block]) -> NotebookNode:
    """The notebook of a page: its prose as Markdown, and every code cell as it ran.

    Args:
        executed: The notebook that ran.
        blocks: The page's prose and the places of its cells.

    Returns:
        A valid notebook. A cell that the page does not show stands before the next that it does.
    """
    waiting = {i: cell for i, cell in enumerate(executed.cells) if cell.cell_type == "code"}
    cells: list[NotebookNode] = []
    prose: list[str] = []

    def end_of_prose() -> None:
        if prose:
            cells.append(v4.new_markdown_cell("\n\n".join(prose)))
            prose.clear()

    def code_up_to(index: float) -> None:
        for i in [i for i in waiting if i <= index]:
            cells.append(_code_cell(waiting.pop(i)))

    for block in blocks:
        if isinstance(block, str):
            if block.startswith("#"):
                end_of_prose()
            prose.append(block)
        else:
            end_of_prose()
            code_up_to(block["cell_index"] - 1)
            folded = _in_dropdown(block)
            cells.append(_code_cell(waiting.pop(block["cell_index"]), folded))
    end_of_prose()
    code_up_to(float("inf"))

    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"
    metadata = {
        "kernelspec": _KERNEL | executed.metadata.get("kernelspec", {}),
        "language_info": executed.metadata.get("language_info", {"name": "python"}),
    }
    notebook = v4.new_notebook(cells=cells, metadata=metadata)
    nbformat.validate(notebook)
    return notebook


def _code_cell(ran: NotebookNode, folded: bool = False) -> NotebookNode:
    """A cell with its outputs, folded in JupyterLab where the page folds or hides it."""
    cell = v4.new_code_cell(
        ran.source,
        metadata=ran.metadata,
        outputs=ran.outputs,
        execution_count=ran.execution_count,
    )
    tags = {tag.replace("_", "-") for tag in ran.metadata.get("tags", [])}
    hidden = {}
    if folded or tags & _HIDES_INPUT:
        hidden["source_hidden"] = True
    if folded or tags & _HIDES_OUTPUT:
        hidden["outputs_hidden"] = True
    if hidden:
        cell.metadata["jupyter"] = hidden
    return cell


def _in_dropdown(cell: nodes.Node) -> bool:
    """Whether a cell is part of a solution, or of anything else, that the page folds."""
    node = cell.parent
    while node is not None:
        if {"dropdown", "toggle"} & set(node.get("classes", [])):
            return True
        node = node.parent
    return False


def setup(app: Sphinx) -> None:
    """Runs before the theme makes its buttons."""
    app.connect("html-page-context", offer, priority=450)
