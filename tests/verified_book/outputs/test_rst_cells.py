"""The notebook that the cells of an RST page become."""

import pytest
from myst_nb.core.read import read_myst_markdown_notebook
from myst_parser.config.main import MdParserConfig

from verified_book.outputs.rst_cells import as_notebook, rst_cell


@pytest.mark.parametrize(
    ("code", "tags"),
    [
        ("x = 1\n\n\nx", []),
        ('text = """\n````\n"""', ["hide-input"]),
        ("---\n:tags: no option", ["raises-exception", "hide-output"]),
        (":not: an option", []),
        ("# +++\n+++", []),
    ],
)
def test_cells_come_out_as_they_went_in(code, tags):
    places = [rst_cell(code="first = 1", options={}), rst_cell(code=code, options={"tags": tags})]
    notebook = read_myst_markdown_notebook(as_notebook(places), MdParserConfig())
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.source for cell in cells] == ["first = 1", code]
    assert [cell.metadata.get("tags", []) for cell in cells] == [[], tags]
