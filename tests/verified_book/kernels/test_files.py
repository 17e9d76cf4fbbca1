"""A page runs again when a file has changed that it has read, and else it does not."""

import shutil
from pathlib import Path

import pytest
from docutils.core import publish_doctree

from tests.verified_book.kernels.builds import Book, app_for
from verified_book.kernels import files
from verified_book.kernels.files import matches

pytestmark = pytest.mark.xdist_group("files")


def forget(book: Book) -> None:
    """Removes all that a build remembers but the execution cache."""
    shutil.rmtree(book.folder / "_build/html")


def test_the_cache_serves_what_is_not_stale_and_nothing_else(tmp_path: Path):
    book = Book(tmp_path / "book", {"nb_execution_mode": "cache"})
    book.page("index", "0")
    front = "verified_book: {data: [/declared/*.txt]}"
    cell = "import helper\n[open('data.txt').read().strip(), helper.x]"
    book.page("sub/index", cell, front=front)
    book.write("sub/data.txt", "one")
    book.write("sub/helper.py", "x = 1")
    book.write("declared/a.txt", "")
    first = book.build("-W")
    assert first.status == 0, first.log
    assert book.build().ran == set()
    changes = {
        "sub/data.txt": "two",
        "declared/b.txt": "a new one",
        "sub/helper.py": "x = 22",
    }
    for number, (name, text) in enumerate(changes.items()):
        book.write(name, text)
        if number > 1:
            forget(book)  # so that only the cache knows
        build = book.build()
        assert build.log.count("Executing notebook using") == 1
        assert number > 1 or f"sub/index: {name} changed since it ran" in build.log
    assert book.output("sub/index") == "['two', 22]"
    forget(book)
    assert book.build().ran == set()
    assert book.output("sub/index") == "['two', 22]"
    (book.folder / "sub/data.txt").unlink()
    build = book.build()
    assert build.log.count("Executing notebook using") == 1
    assert "FileNotFoundError" in book.output("sub/index")


def test_a_mode_without_a_cache(tmp_path: Path):
    book = Book(tmp_path / "book", {"nb_execution_mode": "inline", "verified_book_data": ["all/*"]})
    book.page("index", "open('data.txt').read()")
    book.write("data.txt", "one")
    book.write("all/a.txt")
    assert book.build("-W").status == 0
    assert book.build().ran == set()
    book.write("data.txt", "two")
    assert book.build().ran == {"index"}
    assert book.output() == r"'two\n'"
    book.write("all/b.txt")
    assert book.build().ran == {"index"}


def test_a_page_runs_again_when_a_folder_that_it_lists_holds_something_else(tmp_path: Path):
    book = Book(tmp_path / "book", {"nb_execution_mode": "cache"})
    own = "open('data/own.txt', 'w').close()\nos.makedirs('data/made', exist_ok=True)"
    cell = f"import os, helper, importlib.metadata\nlen(os.listdir('data'))\n{own}\n"
    book.page(
        "index", cell + "[*importlib.metadata.entry_points(), print(len(os.listdir('data')))]"
    )
    book.write("helper.py", "x = 1")
    book.write("data/a.txt", "")
    first = book.build("-W")
    assert first.status == 0, first.log
    book.write("beside.txt", "modules are looked for beside it")
    book.write("data/a.txt", "another text")
    book.write("data/__pycache__/x.pyc", "")
    assert book.build("-W").ran == set()
    book.write("data/b.txt", "")
    build = book.build("-W")
    assert build.ran == {"index"}
    assert "index: data/ changed since it ran" in build.log
    assert book.build().ran == set()
    book.write("data/c.txt", "")
    forget(book)  # so that only the cache knows
    assert book.build().log.count("Executing notebook using") == 1
    (book.folder / "data/a.txt").unlink()
    assert book.build("-W").ran == {"index"}


def test_files_that_change_while_the_book_is_built(tmp_path: Path):
    book = Book(tmp_path / "book", {"nb_execution_mode": "cache"})
    others = "import subprocess\nsubprocess.run('echo x >> others.txt', shell=True)"
    book.page("index", f"open('others.txt').read()\n{others}", front="verified_book: {data: x.txt}")
    own = "open('own.txt', 'w').write('1')\nopen('own.txt').read()\nopen('own.txt', 'a').write('2')"
    book.page("own", own, front="verified_book: {data: [none.txt]}")
    book.write("others.txt", "one")
    build = book.build()
    assert sorted(build.warnings) == [
        "no data file matches 'none.txt' from the book's folder",
        "others.txt changed while the book was built; build it again",
        "verified_book in the front matter is written as {data: [file, ...]}",
    ]
    assert book.build().ran == {"index"}


def test_matches(tmp_path: Path):
    for name in ("book/a.csv", "book/sub/b.csv", "book/sub/deep/c.csv", "data/d.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    book = tmp_path / "book"
    assert matches(book, "*.csv") == ["a.csv"]
    assert matches(book, "../data/*") == ["../data/d.csv"]
    assert sorted(matches(book, "sub")) == ["sub/b.csv", "sub/deep/c.csv"]
    assert sorted(set(matches(book, "**/*.csv"))) == ["a.csv", "sub/b.csv", "sub/deep/c.csv"]
    assert matches(book, "*.txt") == []


def test_a_page_in_restructuredtext_declares_in_its_docinfo(tmp_path: Path):
    app = app_for(tmp_path, "sub/page")
    source = ":author: me\n:verified_book_data: a.csv, /b.csv\n   c.csv\n\nTitle\n"
    doctree = publish_doctree(source)
    files.read_docinfo(app, doctree)
    assert files.declared(app, {}) == ["sub/a.csv", "b.csv", "sub/c.csv"]


def test_a_log_that_breaks_off(tmp_path: Path):
    log = tmp_path / "log"
    log.write_text(
        '["r", "a", [1, 2]]\n["r", "a", [3, 4]]\n["rw", "b", null]\n["w", "c", null]\n["r"'
    )
    assert files.read_log(log) == ({"a": [1, 2], "b": None}, {"b", "c"})
    assert files.read_log(None) == files.read_log(tmp_path / "none") == ({}, set())
