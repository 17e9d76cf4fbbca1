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


@pytest.mark.parametrize(
    ("kernel", "title"), [("python3", "Python 3"), ("julia-1.11", "julia-1.11")]
)
def test_the_notebook_names_its_kernel_as_jupyter_shows_it(kernel, title):
    text = as_notebook([rst_cell(code="1", options={})], kernel)
    notebook = read_myst_markdown_notebook(text, MdParserConfig())
    assert notebook.metadata.kernelspec == {"name": kernel, "display_name": title}


def test_what_other_extensions_read_is_handed_on():
    options = {"tags": [], "shows": "without a bias", "caption": "Words: with a colon, and #1."}
    text = as_notebook([rst_cell(code="1", options=options)])
    notebook = read_myst_markdown_notebook(text, MdParserConfig())
    (cell,) = (cell for cell in notebook.cells if cell.cell_type == "code")
    assert {name: cell.metadata[name] for name in options} == options
