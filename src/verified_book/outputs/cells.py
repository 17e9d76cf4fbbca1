"""The code cells of a page, with what they printed and where they stand in the source."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from docutils import nodes
from myst_nb.core.render import get_mime_priority
from nbformat import NotebookNode
from sphinx.application import Sphinx

from verified_book.outputs import client
from verified_book.outputs.rendered import Look, Piece, evidence_of, pieces, plain
from verified_book.outputs.source_lines import in_cell

_HIDES_OUTPUT = {"remove-cell", "remove_cell", "remove-output", "remove_output"}

RST_CELL_PLACES = "verified_book_cell_places"
"""Attribute of an RST page's document: the source file and line of each of its cells."""


@dataclass(frozen=True)
class Cell:
    """An executed code cell.

    Attributes:
        index: Its place in the page's notebook.
        line: The source line of its directive, from 1; 1 where the format knows no lines.
        node: Its container in the doctree; None when the page does not show it.
        options: What else its directive or its metadata gives it, such as `shows`.
    """

    index: int
    source: str
    line: int
    code: str
    tags: frozenset[str]
    outputs: list[NotebookNode]
    ran: bool
    node: nodes.container | None
    look: Look
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def shown(self) -> list[Piece]:
        """What a reader sees below the cell."""
        return pieces(self.outputs, self.look)

    @property
    def errors(self) -> list[str]:
        """The tracebacks of what the cell raised, also in a display hook."""
        return [
            plain("\n".join(output["traceback"]))
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
        return [found for output in self.outputs if (found := evidence_of(output))]


def is_cell(node: nodes.Node) -> bool:
    """Whether a doctree node is a code cell of MyST-NB."""
    return isinstance(node, nodes.container) and node.get("nb_element") == "cell_code"


def unfinished(app: Sphinx, cells: list[Cell]) -> list[Cell]:
    """The cell that stopped the page that is being read, and those after it, which have not run."""
    if client.execution_error(app) is None:
        return []
    started = [place for place, cell in enumerate(cells) if cell.ran]
    return cells[max(started, default=0) :]


def cells_of(app: Sphinx, doctree: nodes.document) -> list[Cell]:
    """The code cells of the page that is being read, in order."""
    notebook = client.notebook_of_page(app)
    if notebook is None:
        return []
    shown = {node["cell_index"]: node for node in doctree.findall(nodes.container) if is_cell(node)}
    numbers = [i for i, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
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
            look=_look(app, notebook.cells[index].metadata),
            options=dict(notebook.cells[index].metadata),
        )
        for index, (source, line) in zip(numbers, _places(doctree, notebook, numbers), strict=True)
    ]


def _places(
    doctree: nodes.document, notebook: NotebookNode, numbers: list[int]
) -> Iterator[tuple[str, int]]:
    """Source file and line of each code cell."""
    if RST_CELL_PLACES in doctree:
        yield from doctree[RST_CELL_PLACES]
        return
    lines = notebook.metadata.get("source_map")
    for number in numbers:
        if lines:  # MyST-NB's map has the line below each opening fence, counted from 0
            yield doctree["source"], lines[number]
        else:
            yield in_cell(doctree["source"], number + 1), 1


def _look(app: Sphinx, metadata: dict[str, Any]) -> Look:
    """How the page shows a cell: by the configuration, the page's and the cell's own."""
    config = client.configuration(app)
    own = metadata.get(config.cell_metadata_key, {})
    tags = set(metadata.get("tags", []))
    removed = {name for name in ("stdout", "stderr") if f"remove-{name}" in tags}
    if own.get("remove_code_outputs", config.remove_code_outputs) or tags & _HIDES_OUTPUT:
        removed.add("outputs")
    if own.get("output_stderr", config.output_stderr).startswith("remove"):
        removed.add("stderr")
    return Look(
        mime_priority=tuple(get_mime_priority("html", app.config.nb_mime_priority_overrides)),
        merge_streams=own.get("merge_streams", config.merge_streams),
        removed=frozenset(removed),
    )
