"""The notebooks of a built book in a folder for JupyterLab: from Markdown and RST pages alike."""

import json

import nbformat
import pytest
from nbformat import v4

from book_site import __main__ as cli
from tests.verified_book.hostile import DAMAGES, NO_FILES, flipped
from verified_book.commands.books import shown


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


@pytest.mark.parametrize("kind", DAMAGES)
def test_where_nobody_knows_what_was_changed_all_stays(book, capsys, kind):
    target = book / "_build" / "lab"
    assert cli.main(["notebooks", str(book), str(target)]) == 0
    mine = target / "one.ipynb"
    mine.write_text("mine")
    DAMAGES[kind](target / ".copied.json")
    capsys.readouterr()
    assert cli.main(["notebooks", str(book), str(target)]) == 0
    assert mine.read_text() == "mine"
    said = capsys.readouterr().out
    assert "one.ipynb" in said
    assert "0 notebooks of " in said
    for notebook in target.rglob("*.ipynb"):
        notebook.unlink()
    assert cli.main(["notebooks", str(book), str(target)]) == 0
    assert cli.main(["notebooks", str(book), str(target)]) == 0
    assert "These were changed" not in capsys.readouterr().out


def test_no_bit_of_the_record_lets_a_change_go(book):
    target = book / "_build" / "lab"
    assert cli.main(["notebooks", str(book), str(target)]) == 0
    record = target / ".copied.json"
    (target / "one.ipynb").write_text("mine")
    for data in flipped(record.read_bytes(), most=200):
        record.write_bytes(data)
        assert cli.main(["notebooks", str(book), str(target)]) == 0
        assert (target / "one.ipynb").read_text() == "mine"


@pytest.mark.parametrize("kind", NO_FILES)
def test_what_stands_in_the_place_of_a_notebook_stays(book, capsys, kind):
    target = book / "_build" / "lab"
    assert cli.main(["notebooks", str(book), str(target)]) == 0
    NO_FILES[kind](target / "one.ipynb")
    assert cli.main(["notebooks", str(book), str(target)]) == 0
    assert "These were changed there and stay" in capsys.readouterr().out
    assert not (target / "nowhere").exists()


@pytest.mark.parametrize("kind", DAMAGES)
def test_what_the_build_made_and_is_no_notebook_is_named(book, capsys, kind):
    DAMAGES[kind](made := book / "_build" / "html" / "_sources" / "one.ipynb")
    assert cli.main(["notebooks", str(book), str(book / "lab")]) == 2
    assert f"{shown(made)}: this is no notebook (" in capsys.readouterr().err


@pytest.mark.parametrize("way", ["lab", "lab/sub"])
def test_a_file_in_the_place_of_a_folder_is_named(book, capsys, way):
    (book / "lab").mkdir()
    (book / way).rmdir() if way == "lab" else None
    (book / way).write_text("mine")
    assert cli.main(["notebooks", str(book), str(book / "lab")]) == 2
    assert f"{book / way}" in capsys.readouterr().err
    assert (book / way).read_text() == "mine"
