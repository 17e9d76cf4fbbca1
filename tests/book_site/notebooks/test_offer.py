"""The notebooks in the download menu; that real chapters' run again is tested with the site."""

from argparse import Namespace

import nbformat
import pytest
from nbformat import v4

from book_site.notebooks.markdown import CodeCell
from book_site.notebooks.offer import assemble, installed_by
from tests.verified_book.books import sphinx_build

pytestmark = pytest.mark.xdist_group("notebooks")

CONF = """\
extensions = ["sphinx_exercise", "verified_book.claims", "book_site.notebooks"]
html_theme = "sphinx_book_theme"
html_baseurl = "https://a.org/"
numfig = True
verified_book_notes = {"book": "this book"}
"""

MYST = """\
---
file_format: mystnb
kernelspec: {name: python3}
---
# A chapter

```{code-cell}
:tags: [remove-cell]
hidden = 40
```

See {doc}`plain` and {math}`x^2`.

```{claim} B1
:note: book
:verdict: holds

One and one is {math}`2`.
```

```{code-cell}
:tags: [hide-input, mine]
hidden + 2
```

```{expect-output}
42
```

Before.

## A middle

```{exercise} Think
:label: think
Why?
```

```{solution-start} think
:class: dropdown
```

Because.

```{code-cell}
assert hidden
```

```{solution-end}
```

## An end

```{code-cell}
:tags: [remove-cell]
last = hidden
```
"""

PAGES = {
    "index.md": "# Index\n\n```{toctree}\nplain\nmyst\n```\n",
    "plain.md": "# No cells\n",
    "myst.md": MYST,
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return sphinx_build(tmp_path_factory.mktemp("notebooks"), CONF, PAGES).site


@pytest.fixture(scope="module")
def notebook(site):
    return nbformat.read(site / "_sources" / "myst.ipynb", as_version=nbformat.NO_CONVERT)


def test_the_menu_of_a_page_with_cells_offers_it(site):
    page = site.joinpath("myst.html").read_text()
    assert 'href="_sources/myst.ipynb"' in page
    assert "notebook-download" not in page  # the menu is enough
    assert ".ipynb" not in site.joinpath("plain.html").read_text()
    assert not site.joinpath("_sources", "plain.ipynb").exists()


def test_cells_are_in_order_with_tags_and_outputs(notebook):
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    sources = ["hidden = 40", "hidden + 2", "assert hidden", "last = hidden"]
    assert [cell.source for cell in cells] == sources
    tags = [cell.metadata.get("tags", []) for cell in cells]
    assert tags == [["remove-cell"], ["hide-input", "mine"], [], ["remove-cell"]]
    assert [output.data["text/plain"] for output in cells[1].outputs] == ["42"]


def test_prose_is_markdown(notebook):
    prose = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    assert prose == [
        "# A chapter\n\nSee [No cells](https://a.org/plain.html) and $x^2$.\n\n"
        "> **Claim B1 (this book): holds.** One and one is $2$.\n>\n"
        "> as expected in one cell",
        "Before.",
        "## A middle\n\n> **Exercise 1  (Think)**\n>\n> Why?\n\n"
        "<details><summary>Solution to Exercise 1 (Think)</summary>\n\nBecause.\n\n"
        "</details>",
        "## An end",
    ]


INPUT, OUTPUT = {"source_hidden": True}, {"outputs_hidden": True}


@pytest.mark.parametrize(
    ("tag", "folded"),
    [
        ("hide-input", INPUT),
        ("remove-output", OUTPUT),
        ("remove_cell", INPUT | OUTPUT),
        ("mine", None),
    ],
)
def test_what_a_tag_hides_on_the_page_is_folded(tag, folded):
    ran = v4.new_notebook(cells=[v4.new_code_cell("1", metadata={"tags": [tag]})])
    (cell,) = assemble(ran, []).cells
    assert cell.metadata.get("jupyter") == folded


def test_the_first_cell_installs_where_it_is_asked_to():
    ran = v4.new_notebook(cells=[v4.new_code_cell("import more\nmores")])
    settings = Namespace(
        book_site_notebook_install="-e .",
        book_site_notebook_packages={"more": "more-1", "fewer": "less", "m": "x"},
    )
    install = installed_by(ran, settings)
    assert install == "-e . more-1"
    notebook = assemble(ran, ["# One", CodeCell(0)], "What to install.", install)
    assert [cell.source for cell in notebook.cells] == [
        "What to install.",
        "install = False  # True, in the folder that the packages are installed from\n"
        "if install:\n    %pip install -e . more-1",
        "# One",
        "import more\nmores",
    ]


def test_a_cell_that_the_page_does_not_show_stands_before_the_next():
    ran = v4.new_notebook(cells=[v4.new_code_cell(f"{number}") for number in range(3)])
    notebook = assemble(ran, ["One.", CodeCell(1), "Two."])
    assert [cell.source for cell in notebook.cells] == ["One.", "0", "1", "Two.", "2"]
