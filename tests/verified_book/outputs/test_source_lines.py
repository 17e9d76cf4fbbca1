"""Directives are named by the lines on which their authors see them."""

from types import SimpleNamespace
from typing import Any

import pytest
from myst_nb.core.read import read_myst_markdown_notebook
from myst_parser.config.main import MdParserConfig
from nbformat import NotebookNode, v4

from tests.verified_book.books import FRONT_MATTER
from verified_book.outputs import client, source
from verified_book.outputs.source_lines import true_place

CELL = "```{code-cell}\n1\n```\n"


def env_with(notebook: NotebookNode | None, text: str | None = None) -> Any:
    """As much of an environment as knows the page that is being read."""
    data: dict[str, Any] = {}
    if notebook is not None:
        data[client._KEY] = SimpleNamespace(notebook=notebook)
    if text is not None:
        data[source._KEY] = text
    page = "page.md" if text is None or text else "page.ipynb"
    return SimpleNamespace(temp_data=data, docname="page", doc2path=lambda docname: page)


@pytest.mark.parametrize(("blank", "above"), [(0, 0), (1, 3), (5, 3)])
def test_the_empty_lines_below_a_cell_count(blank: int, above: int):
    lead = "".join(f"Line {number}.\n" for number in range(above))
    head = FRONT_MATTER + CELL + "\n" * blank + lead
    text = head + "```{expect-output}\n1\n```\n"
    notebook = read_myst_markdown_notebook(text, MdParserConfig(), add_source_map=True)
    # MyST-NB takes the empty lines away and counts from the line below the cell.
    reported = notebook.metadata.source_map[1] + above + 2
    place = true_place(env_with(notebook, text), "page.md", reported)
    assert place == ("page.md", head.count("\n") + 1)


def test_what_is_known_of_no_text_is_named_by_its_cell():
    env = env_with(v4.new_notebook(), "")
    assert true_place(env, "page.ipynb", 30_005) == ("page.ipynb:cell 3", 4)
    assert true_place(env, "page.ipynb", 30_000) == ("page.ipynb:cell 3", 1)
    assert true_place(env, "page.ipynb", 7) == ("page.ipynb", 7)


def test_a_file_that_the_page_includes_has_its_own_lines():
    text = FRONT_MATTER + CELL + "\n\nText.\n"
    notebook = read_myst_markdown_notebook(text, MdParserConfig(), add_source_map=True)
    assert true_place(env_with(notebook, text), "part.md", 8) == ("part.md", 8)
