"""The code cells of a page, with what they printed and where they stand in the source."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes
from jupyter_cache import get_cache
from myst_nb.core.render import get_mime_priority
from sphinx.application import Sphinx

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_HIDES_OUTPUT = {"remove-cell", "remove_cell", "remove-output", "remove_output"}

RST_CELL_PLACES = "verified_book_cell_places"
"""Attribute of an RST page's document: the source file and line of each of its cells."""


@dataclass(frozen=True)
class Cell:
    """An executed code cell.

    Attributes:
        index: Its place in the page's notebook.
        line: The source line of its directive, from 1.
        node: Its container in the doctree; None when the page does not show it.
    """

    index: int
    source: str
    line: int
    code: str
    tags: frozenset[str]
    outputs: list[dict[str, Any]]
    ran: bool
    node: nodes.container | None

    def shown_text(self, mime_priority: list[str]) -> str:
        """The text that a reader sees below the cell, errors and stderr left out."""
        return "\n".join(text for text, _ in self._shown(mime_priority))

    def expected_text(self, mime_priority: list[str]) -> str:
        """The same as an expected block should have it: no machine-dependent number in evidence."""
        return "\n".join(pattern for _, pattern in self._shown(mime_priority))

    def _shown(self, mime_priority: list[str]) -> Iterator[tuple[str, str]]:
        """Each text output with the pattern that describes it."""
        if self.tags & _HIDES_OUTPUT:
            return
        for output in self.outputs:
            if output["output_type"] == "stream":
                if output["name"] == "stdout" and "remove-stdout" not in self.tags:
                    text = _plain(output["text"])
                    yield text, text
            elif output["output_type"] in ("execute_result", "display_data"):
                mime = next((m for m in mime_priority if m in output["data"]), None)
                if mime == "text/plain":
                    text = _plain(output["data"][mime])
                    evidence = output.get("metadata", {}).get("evidence", {})
                    yield text, evidence.get("pattern", text)

    @property
    def errors(self) -> list[str]:
        """The tracebacks of what the cell raised, also in a display hook."""
        return [
            _ANSI.sub("", "\n".join(output["traceback"]))
            for output in self.outputs
            if output["output_type"] == "error"
        ]

    @property
    def stderr(self) -> str:
        """What the cell wrote to stderr."""
        return "".join(
            output["text"]
            for output in self.outputs
            if output["output_type"] == "stream" and output["name"] == "stderr"
        )

    @property
    def evidence(self) -> list[dict[str, Any]]:
        """The evidence that outputs of the cell carry in their metadata."""
        found = (output.get("metadata", {}).get("evidence") for output in self.outputs)
        return [item for item in found if item]


def _plain(text: str) -> str:
    """Terminal colors and the last line break removed."""
    return _ANSI.sub("", text).rstrip("\n")


def is_cell(node: nodes.Node) -> bool:
    """Whether a doctree node is a code cell of MyST-NB."""
    return isinstance(node, nodes.container) and node.get("nb_element") == "cell_code"


def mime_priority(app: Sphinx) -> list[str]:
    """The output types that the HTML pages show, the preferred one first."""
    return list(get_mime_priority("html", app.config.nb_mime_priority_overrides))


def notebook_path(app: Sphinx, docname: str) -> Path:
    """Where MyST-NB has written the executed notebook of a page."""
    settings = app.env.mystnb_config  # type: ignore[attr-defined]  # MyST-NB adds it
    folder = Path(settings.output_folder)
    return folder.joinpath(*docname.split("/")).with_name(docname.split("/")[-1] + ".ipynb")


def executed_notebook(app: Sphinx, docname: str) -> nbformat.NotebookNode:
    """The notebook of a page with its outputs.

    When the outputs come from the cache, MyST-NB renders them but writes the notebook without them;
    then they are put into the written one too.
    """
    path = notebook_path(app, docname)
    notebook = nbformat.read(path, as_version=4)
    if app.config.nb_execution_mode == "cache" and _execution(app, docname).get("succeeded"):
        cache = get_cache(app.config.nb_execution_cache_path)
        _, cached = cache.merge_match_into_notebook(notebook)
        for cell, executed in zip(notebook.cells, cached.cells, strict=True):
            if cell.cell_type == "code":
                cell.outputs = executed.outputs
                cell.execution_count = executed.execution_count
        nbformat.write(notebook, path)
    return notebook


def execution_error(app: Sphinx, docname: str) -> str | None:
    """The name of the error that ended the execution of a page, if one did."""
    return _execution(app, docname).get("error")


def _execution(app: Sphinx, docname: str) -> dict[str, Any]:
    """What MyST-NB remembers of the execution of a page; nothing if it did not take place."""
    return getattr(app.env, "nb_metadata", {}).get(docname, {}).get("exec_data") or {}


def unfinished(app: Sphinx, cells: list[Cell]) -> list[Cell]:
    """The cell that stopped the page that is being read, and those after it, which have not run."""
    if execution_error(app, app.env.docname) is None:
        return []
    started = [place for place, cell in enumerate(cells) if cell.ran]
    return cells[max(started, default=0) :]


def cells_of(app: Sphinx, doctree: nodes.document) -> list[Cell]:
    """The code cells of the page that is being read, in order."""
    containers = doctree.findall(nodes.container)
    shown = {node["cell_index"]: node for node in containers if is_cell(node)}
    places = doctree.get(RST_CELL_PLACES)
    has_kernel = "kernelspec" in app.env.metadata.get(app.env.docname, {})
    has_run = has_kernel and notebook_path(app, app.env.docname).is_file()
    if not shown and not places and not has_run:
        return []
    notebook = executed_notebook(app, app.env.docname)
    code_indices = [i for i, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    if places is None:
        # MyST-NB's map has the line below each opening fence, counted from 0.
        source_map = notebook.metadata["source_map"]
        places = [(doctree["source"], source_map[index]) for index in code_indices]
    return [
        Cell(
            index=index,
            source=source,
            line=line,
            code=notebook.cells[index].source,
            tags=frozenset(notebook.cells[index].metadata.get("tags", [])),
            outputs=notebook.cells[index].outputs,
            ran=notebook.cells[index].execution_count is not None,
            node=shown.get(index),
        )
        for index, (source, line) in zip(code_indices, places, strict=True)
    ]
