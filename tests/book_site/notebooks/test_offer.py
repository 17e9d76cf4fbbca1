"""The notebooks in the download menu; that real chapters' run again is tested with the site."""

import re
from argparse import Namespace

import nbformat
import pytest
from nbformat import v4

from book_site.notebooks.markdown import CodeCell
from book_site.notebooks.offer import assemble, installed_by
from tests.verified_book.books import sphinx_build

pytestmark = pytest.mark.xdist_group("notebooks")

CONF = """\
extensions = [
    "sphinx_exercise", "sphinxcontrib.bibtex", "verified_book.claims", "book_site.notebooks"
]
html_theme = "sphinx_book_theme"
html_baseurl = "https://a.org/"
bibtex_bibfiles = ["works.bib"]
bibtex_reference_style = "author_year"
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

RST = """\
A chapter
=========

.. code-cell::
   :tags: remove-cell

   hidden = 40

See :doc:`/plain` and :math:`x^2`.

.. claim:: B2
   :note: book
   :verdict: holds

   One and one is :math:`2`.

.. code-cell::
   :tags: hide-input, mine

   hidden + 2

.. expect-output::

   42

Before.

A middle
--------

.. exercise:: Think
   :label: think-rst

   Why?

.. solution:: think-rst
   :class: dropdown

   Because.

   .. code-cell::

      assert hidden

An end
------

.. code-cell::
   :tags: remove-cell

   last = hidden
"""

BIB = """\
@misc{ba2016, author={Ba, Jimmy_Lei}, title={Norms}, year={2016}, url={https://b.org/1_2.}}
@misc{adams1979, author={Adams, D.}, title={Answers}, year={1979}}
"""

CITING = (
    MYST.partition("# A")[0]
    + """\
# Citing

```{code-cell}
from IPython.display import HTML

HTML('<svg viewBox="0 0 9 9" aria-label="a dot"><circle r="9"/></svg>')
```

See {cite:t}`ba2016`, again {cite:p}`ba2016`, and {cite:p}`adams1979`.
"""
)

PAGES = {
    "index.md": "# Index\n\n```{toctree}\nplain\nmyst\nfolder/rst\nbrief\nciting\nworks\n```\n",
    "plain.md": "# No cells\n",
    "brief.md": f"{MYST.partition('# A')[0]}# Brief\n\n```{{code-cell}}\nx = 1\n```\n",
    "citing.md": CITING,
    "works.md": "# Works\n\n```{bibliography}\n```\n",
    "works.bib": BIB,
    "myst.md": MYST,
    "folder/rst.rst": RST,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("notebooks")


@pytest.fixture(scope="module")
def site(folder):
    return sphinx_build(folder, CONF, PAGES).site


@pytest.fixture(params=["myst", "folder/rst"])
def name(request):
    return request.param


@pytest.fixture
def notebook(site, name):
    return nbformat.read(site / "_sources" / f"{name}.ipynb", as_version=nbformat.NO_CONVERT)


def test_menu_offers_it(site, name):
    page = site.joinpath(f"{name}.html").read_text()
    up = "../" * name.count("/")
    assert f'href="{up}_sources/{name}.ipynb"' in page
    assert "notebook-download" not in page  # the menu is enough


def test_a_page_without_cells_offers_none(site):
    assert "_sources/plain.md" in site.joinpath("plain.html").read_text()
    assert ".ipynb" not in site.joinpath("plain.html").read_text()
    assert not site.joinpath("_sources", "plain.ipynb").exists()


def test_a_menu_leads_to_no_source_that_the_site_has_not(tmp_path):
    pages = {"index.rst": "Index\n=====\n\nWords.\n"}
    conf = 'extensions = ["book_site.notebooks"]\nhtml_theme = "sphinx_book_theme"\n'
    for line, offered in (("", True), ("html_copy_source = False\n", False)):
        site = sphinx_build(tmp_path, conf + line, pages).site
        page = site.joinpath("index.html").read_text()
        assert ("download-source-button" in page) is offered
        assert "download-pdf-button" in page


def test_it_is_valid(notebook):
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    kernel = notebook.metadata.kernelspec
    assert (kernel.name, kernel.language) == ("python3", "python")
    assert kernel.display_name


def test_cells_are_in_order_with_tags_and_outputs(notebook):
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    sources = ["hidden = 40", "hidden + 2", "assert hidden", "last = hidden"]
    assert [cell.source for cell in cells] == sources
    tags = [cell.metadata.get("tags", []) for cell in cells]
    assert tags == [["remove-cell"], ["hide-input", "mine"], [], ["remove-cell"]]
    assert [output.data["text/plain"] for output in cells[1].outputs] == ["42"]


def test_jupyterlab_folds_what_the_page_folds(notebook):
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    everything = {"source_hidden": True, "outputs_hidden": True}
    assert [cell.metadata.get("jupyter") for cell in cells] == [
        everything,
        {"source_hidden": True},
        everything,  # the solution's
        everything,
    ]


def test_prose_is_markdown(notebook, name):
    number, exercise = (1, 1) if name == "myst" else (2, 2)
    prose = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    assert prose == [
        "# A chapter\n\nSee [No cells](https://a.org/plain.html) and $x^2$.\n\n"
        f"> **Claim B{number} (this book): holds.** One and one is $2$.\n>\n"
        "> as expected in one cell",
        "Before.",
        f"## A middle\n\n> **Exercise {exercise}  (Think)**\n>\n> Why?\n\n"
        f"<details><summary>Solution to Exercise {exercise} (Think)</summary>\n\nBecause.\n\n"
        "</details>",
        "## An end",
    ]


def test_citations_lead_to_the_site_and_end_in_a_list(site):
    notebook = nbformat.read(site / "_sources" / "citing.ipynb", as_version=4)
    *_, text, works = [cell.source for cell in notebook.cells]
    assert re.sub(r"#id\d+", "#id", text) == (
        "See Ba [[2016](https://a.org/works.html#id)], "
        "again [[Ba, 2016](https://a.org/works.html#id)], "
        "and [[Adams, 1979](https://a.org/works.html#id)]."
    )
    assert works == (
        "## References\n\n- D. Adams. Answers. 1979.\n"
        "- Jimmy_Lei Ba. Norms. 2016. URL: <https://b.org/1_2>."
    )


def test_drawings_are_images(site):
    notebook = nbformat.read(site / "_sources" / "citing.ipynb", as_version=4)
    (shown,) = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    assert shown[0].data["text/html"].startswith('<img alt="a dot" src="data:image/svg+xml;base64,')
    assert "<svg" in site.joinpath("citing.html").read_text()


def test_it_goes_when_the_cells_go(folder, site):
    offered = site / "_sources" / "brief.ipynb"
    assert offered.is_file()
    sphinx_build(folder, CONF, {"brief.md": "# No cells\n"})
    assert not offered.exists()


INPUT, OUTPUT = {"source_hidden": True}, {"outputs_hidden": True}


@pytest.mark.parametrize(
    ("tag", "folded"),
    [
        *[(tag, INPUT) for tag in ("hide-input", "remove-input", "remove_input")],
        *[(tag, OUTPUT) for tag in ("hide-output", "remove-output", "remove_output")],
        *[(tag, INPUT | OUTPUT) for tag in ("hide-cell", "remove-cell", "remove_cell")],
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
