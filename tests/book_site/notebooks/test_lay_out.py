"""The notebooks of a built book in a folder for JupyterLab: from Markdown and RST pages alike."""

import nbformat
import pytest
from nbformat import v4

from book_site import __main__ as cli
from tests.verified_book.hostile import DAMAGES
from verified_book.commands.books import shown


def built(book, name, code="1"):
    """Writes what a build makes of a page."""
    file = book / "_build" / "html" / "_sources" / f"{name}.ipynb"
    file.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(v4.new_notebook(cells=[v4.new_code_cell(code)]), file)
    return file


@pytest.fixture
def book(tmp_path):
    """A book that was built, of a page of each kind."""
    folder = tmp_path / "book"
    for name in ("one.md", "sub/two.rst"):
        page = folder / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text("")
        built(folder, name.partition(".")[0])
    return folder


def test_each_begins_with_a_link_to_its_source(book, capsys):
    target = book / "_build" / "lab"
    assert cli.main(["notebooks", str(book), str(target)]) == 0
    assert "2 notebooks of " in capsys.readouterr().out
    for name, way in (("one", "../../one.md"), ("sub/two", "../../../sub/two.rst")):
        file = target / f"{name}.ipynb"
        notebook = nbformat.read(file, as_version=4)
        nbformat.validate(notebook)
        assert f"]({way})" in notebook.cells[0].source
        assert (file.parent / way).is_file()
        assert notebook.cells[1].source == "1"


def test_what_a_reader_changed_stays_and_the_rest_is_new(book, capsys):
    target = book / "_build" / "lab"
    cli.main(["notebooks", str(book), str(target)])
    changed = target / "one.ipynb"
    changed.write_text("mine")
    for name in ("one", "sub/two"):
        built(book, name, "3")
    capsys.readouterr()
    assert cli.main(["notebooks", str(book), str(target)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("1 notebooks of ")
    assert "delete one to have it new: " in said
    assert "one.ipynb" in said
    assert changed.read_text() == "mine"
    assert nbformat.read(target / "sub/two.ipynb", as_version=4).cells[1].source == "3"


@pytest.mark.parametrize("kind", ["a folder", "binary"])
def test_what_the_build_made_and_is_no_notebook_is_named(book, capsys, kind):
    DAMAGES[kind](made := built(book, "one"))
    assert cli.main(["notebooks", str(book), str(book / "lab")]) == 2
    said = capsys.readouterr().err
    assert f"{shown(made)} cannot be copied to " in said
    assert "build the book again" in said
