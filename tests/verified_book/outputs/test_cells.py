"""The code cells of a page: where they stand, how the page shows them, what the checks read."""

from types import SimpleNamespace

import pytest
from docutils import nodes
from docutils.utils import new_document
from myst_nb.core.config import NbParserConfig
from nbformat import NotebookNode, v4

from verified_book.outputs.cells import Cell, cells_of, unfinished
from verified_book.outputs.rendered import Look

LOOK = Look(("text/plain",), False, frozenset())


def stream(name: str, text: str) -> NotebookNode:
    return v4.new_output("stream", name=name, text=text)


def cell(*outputs: NotebookNode) -> Cell:
    return Cell(0, "a.md", 1, "", frozenset(), list(outputs), True, None, LOOK)


def page(
    notebook: NotebookNode | None, executed: object = None, **settings: object
) -> SimpleNamespace:
    """The application while it reads a page."""
    client = SimpleNamespace(
        notebook=notebook, nb_config=NbParserConfig(**settings), exec_metadata=executed
    )
    kept = {"verified_book_client": client} if notebook is not None else {}
    config = SimpleNamespace(nb_mime_priority_overrides=[])
    return SimpleNamespace(env=SimpleNamespace(temp_data=kept), config=config)


def notebook(*cells: NotebookNode, **metadata: object) -> NotebookNode:
    return v4.new_notebook(cells=list(cells), metadata=metadata)


def code(
    source: str = "1", count: int | None = 1, tags: str = "", **metadata: object
) -> NotebookNode:
    if tags:
        metadata["tags"] = tags.split()
    return v4.new_code_cell(source, execution_count=count, metadata=metadata)


def doctree(*indices: int) -> nodes.document:
    """A page that shows the cells with these indices."""
    document = new_document("page.md")
    document += [nodes.container(nb_element="cell_code", cell_index=index) for index in indices]
    return document


@pytest.mark.parametrize(
    ("tags", "removed"),
    [
        ("remove-cell", "outputs"),
        ("remove-stdout remove-stderr", "stdout stderr"),
    ],
)
def test_tags_say_what_the_page_leaves_out(tags, removed):
    (found,) = cells_of(page(notebook(code(tags=tags), source_map=[1])), doctree(0))
    assert found.look.removed == frozenset(removed.split())
    assert found.tags == frozenset(tags.split())


@pytest.mark.parametrize(
    ("settings", "own", "removed"),
    [
        ({"remove_code_outputs": True}, {"remove_code_outputs": False}, ""),
        ({}, {"output_stderr": "remove", "remove_code_outputs": True}, "stderr outputs"),
    ],
)
def test_so_do_the_configuration_and_the_cell_that_overrides_it(settings, own, removed):
    made = notebook(code(mystnb=own), source_map=[1])
    (found,) = cells_of(page(made, **settings), doctree(0))
    assert found.look.removed == frozenset(removed.split())


@pytest.mark.parametrize(
    ("counts", "error", "left"),
    [
        ([1, 2, None], "CellTimeoutError", ["b", "c"]),
        ([1, 2, 3], "CellTimeoutError", ["c"]),
    ],
)
def test_the_cell_that_stopped_a_page_and_those_after_it_are_unfinished(counts, error, left):
    cells = [code(name, count) for name, count in zip("abc", counts, strict=True)]
    executed = {"error": error} if error else {"error": None}
    app = page(notebook(*cells, source_map=[1, 2, 3]), executed)
    found = cells_of(app, doctree(0, 1, 2))
    assert [cell.code for cell in unfinished(app, found)] == left
