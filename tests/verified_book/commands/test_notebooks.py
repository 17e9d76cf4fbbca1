"""The notebooks of a built book in a folder for JupyterLab: from Markdown and RST pages alike."""

import json

import nbformat
import pytest
from nbformat import v4

from verified_book.commands import cli


@pytest.fixture
def book(tmp_path):
    """A book that was built, of a page of each kind."""
    folder = tmp_path / "book"
    for name in ("one.md", "sub/two.rst"):
        page = folder / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text("")
        made = (folder / "_build" / "html" / "_sources" / name).with_suffix(".ipynb")
        made.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(v4.new_notebook(cells=[v4.new_code_cell("1")]), made)
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
    changed.write_text(changed.read_text().replace('"1"', '"2"'))
    for name in ("one", "sub/two"):
        made = book / "_build" / "html" / "_sources" / f"{name}.ipynb"
        nbformat.write(v4.new_notebook(cells=[v4.new_code_cell("3")]), made)
    capsys.readouterr()
    assert cli.main(["notebooks", str(book), str(target)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("1 notebooks of ")
    assert "delete one to have it new: " in said
    assert "one.ipynb" in said
    assert '"2"' in changed.read_text()
    assert json.loads((target / "sub" / "two.ipynb").read_text())["cells"][1]["source"] in (
        "3",
        ["3"],
    )


def test_without_a_built_book_it_says_so(tmp_path, capsys):
    assert cli.main(["notebooks", str(tmp_path), str(tmp_path / "lab")]) == 2
    assert "there are no notebooks; build the book first" in capsys.readouterr().err
