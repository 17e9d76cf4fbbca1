"""The code cells of a page: where they stand, how the page shows them, what the checks read."""

from types import SimpleNamespace

import pytest
from docutils import nodes
from docutils.utils import new_document
from myst_nb.core.config import NbParserConfig
from nbformat import NotebookNode, v4

from verified_book.outputs.cells import RST_CELL_PLACES, Cell, cells_of, is_cell, unfinished
from verified_book.outputs.rendered import Look

LOOK = Look(("text/plain",), False, frozenset())


def stream(name: str, text: str) -> NotebookNode:
    return v4.new_output("stream", name=name, text=text)


def cell(*outputs: NotebookNode) -> Cell:
    return Cell(0, "a.md", 1, "", frozenset(), list(outputs), True, None, LOOK)


def test_errors_are_read_without_colors():
    traceback = ["\x1b[31m----\x1b[0m", "ValueError: no"]
    error = v4.new_output("error", ename="ValueError", evalue="no", traceback=traceback)
    assert cell(error, error).errors == ["----\nValueError: no"] * 2
    assert cell(stream("stdout", "a")).errors == []


@pytest.mark.parametrize(
    ("metadata", "found"),
    [
        ({}, []),
        ({"evidence": {"kind": "equal"}}, [{"kind": "equal"}]),
        ({"evidence": "of another library"}, []),
    ],
)
def test_evidence_is_read_from_the_metadata_of_outputs(metadata, found):
    output = v4.new_output("execute_result", {"text/plain": "1"}, metadata=metadata)
    assert cell(stream("stdout", "a"), output).evidence == found


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (nodes.container(nb_element="cell_code", cell_index=0), True),
        (nodes.container(), False),
        (nodes.paragraph(nb_element="cell_code"), False),
    ],
)
def test_cells_are_told_from_other_containers(node, expected):
    assert is_cell(node) is expected


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


def test_cells_know_their_places_in_notebook_source_and_page():
    made = notebook(
        v4.new_markdown_cell("# A"), code("a"), code("b", None, "remove-cell"), source_map=[0, 7, 9]
    )
    document = doctree(1)
    first, second = cells_of(page(made), document)
    assert (first.index, first.line, first.code, first.ran) == (1, 7, "a", True)
    assert (second.index, second.line, second.code, second.ran) == (2, 9, "b", False)
    assert first.node is document.children[0]
    assert second.node is None
    assert {first.source, second.source} == {"page.md"}


def test_cells_of_an_rst_page_stand_where_the_page_says():
    document = doctree(0, 1)
    document[RST_CELL_PLACES] = [("page.rst", 5), ("included.rst", 2)]
    found = cells_of(page(notebook(code(), code(), source_map=[1, 1])), document)
    assert [(cell.source, cell.line) for cell in found] == [("page.rst", 5), ("included.rst", 2)]


@pytest.mark.parametrize(
    ("tags", "removed"),
    [
        ("", ""),
        ("remove-cell", "outputs"),
        ("remove_output", "outputs"),
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
        ({"output_stderr": "remove"}, {}, "stderr"),
        ({"output_stderr": "warn"}, {}, ""),
        ({"remove_code_outputs": True}, {}, "outputs"),
        ({"remove_code_outputs": True}, {"remove_code_outputs": False}, ""),
        ({}, {"output_stderr": "remove", "remove_code_outputs": True}, "stderr outputs"),
    ],
)
def test_so_do_the_configuration_and_the_cell_that_overrides_it(settings, own, removed):
    made = notebook(code(mystnb=own), source_map=[1])
    (found,) = cells_of(page(made, **settings), doctree(0))
    assert found.look.removed == frozenset(removed.split())


def test_the_types_of_output_are_preferred_as_on_the_page():
    app = page(notebook(code(), source_map=[1]))
    (found,) = cells_of(app, doctree(0))
    before = found.look.mime_priority
    assert before.index("text/html") < before.index("text/plain")
    app.config.nb_mime_priority_overrides = [("html", "text/plain", 0)]
    (found,) = cells_of(app, doctree(0))
    assert found.look.mime_priority[0] == "text/plain"


@pytest.mark.parametrize(
    ("counts", "error", "left"),
    [
        ([1, 2, 3], None, []),
        ([1, 2, None], "CellTimeoutError", ["b", "c"]),
        ([1, None, None], "DeadKernelError", ["a", "b", "c"]),
        ([1, 2, 3], "CellTimeoutError", ["c"]),
    ],
)
def test_the_cell_that_stopped_a_page_and_those_after_it_are_unfinished(counts, error, left):
    cells = [code(name, count) for name, count in zip("abc", counts, strict=True)]
    executed = {"error": error} if error else {"error": None}
    app = page(notebook(*cells, source_map=[1, 2, 3]), executed)
    found = cells_of(app, doctree(0, 1, 2))
    assert [cell.code for cell in unfinished(app, found)] == left
