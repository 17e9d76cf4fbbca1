"""What is noted of the files that a kernel opens."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from verified_book.kernels import audit_hook

# As IPython does it, and without the rest of the package, which takes seconds.
SETUP = """\
import sys
sys.path.insert(0, ".")
exec(open(sys.argv[2]).read())
note_opened(**json.loads(sys.argv[1]))
"""


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """A book in a folder with a link to another, inside of a project."""
    book = tmp_path / "project/book"
    names = ["a.csv", "b.txt", "sub/c.txt", "d.txt", "helper.py", "part/__init__.py", "s.db"]
    names += ["_build/x.txt", ".hidden/x.txt", ".dot", "lib/site-packages/x.py", "../outside.txt"]
    names += ["a/dist-packages/x.csv", "__pycache__/x.nbi", "__pycache__/x.txt"]
    for name in names:
        path = book / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "link").symlink_to(book)
    (book / "to_outside.txt").symlink_to(tmp_path / "project/outside.txt")
    (tmp_path / "project/to_book.txt").symlink_to(book / "b.txt")
    return book


def noted(book: Path, code: str, before: str = "") -> list[list[object]]:
    """What code notes in a process of its own."""
    log = book.parent.parent / "log"
    log.unlink(missing_ok=True)
    sources = [str(book.parent.parent / "link"), str(book)]
    orders = {"log": str(log), "sources": sources, "ignored": [str(book / "_build")]}
    arguments = [f"{before}\n{SETUP}{code}", json.dumps(orders), audit_hook.__file__]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    subprocess.run([sys.executable, "-c", *arguments], cwd=book, check=True, env=environment)
    return [json.loads(line) for line in log.read_text().splitlines()]


CASES = {
    "open('a.csv').read(); open(b'a.csv', 'rb'); open(os.path.abspath('a.csv'))": [("r", "a.csv")],
    "open('new.txt', 'w').close(); open('new.txt')": [("w", "new.txt"), ("r", "new.txt")],
    "open('a.csv', 'r+'); open('b.txt', 'a'); open('d.txt', 'w+')": [
        ("rw", "a.csv"),
        ("w", "b.txt"),
        ("w", "d.txt"),
    ],
    "from sqlite3 import connect; connect('file:s.db?mode=ro', uri=True); connect(':memory:')": [
        ("rw", "s.db")
    ],
    "os.replace('a.csv', 'n'); os.remove('b.txt'); os.truncate('d.txt', 0)": [
        ("w", "n"),
        ("w", "b.txt"),
        ("w", "d.txt"),
    ],
    "import helper, part": [("r", "helper.py"), ("r", "part/__init__.py")],
    "open(os.path.realpath('../../link') + '/a.csv'); open('../../link/b.txt')": [
        ("r", "a.csv"),
        ("r", "b.txt"),
    ],
    "open('_build/x.txt'); open('../outside.txt'); import json.tool": [],
    "open('lib/site-packages/x.py'); open('a/dist-packages/x.csv')": [
        ("r", "lib/site-packages/x.py"),
        ("r", "a/dist-packages/x.csv"),
    ],
    "open('__pycache__/x.nbi'); open('__pycache__/x.nbc.tmp.1f', 'w')": [],
    "os.listdir(); os.listdir('.'); os.scandir(os.path.abspath('.'))": [("r", "./")],
    "os.listdir('_build'); os.listdir('..'); os.listdir('/'); os.listdir(os.sep * 2)": [],
    "import importlib.metadata as m; [*m.distributions()]; import pkgutil, helper\n"
    "[*pkgutil.iter_modules()]": [("r", "helper.py")],
}
if hasattr(os, "fork"):
    CASES["if os.fork() == 0: open('a.csv')\nelse: os.wait()"] = [("r", "a.csv")]


@pytest.mark.parametrize("code", CASES)
def test_what_is_noted(book: Path, code: str):
    assert [(kind, name) for kind, name, _ in noted(book, code)] == CASES[code]


def test_a_module_is_noted_from_its_compiled_form_too(book: Path):
    for _ in range(2):
        ((kind, name, _),) = noted(book, "import helper")
        assert (kind, name) == ("r", "helper.py")
    assert list(book.glob("__pycache__/helper.*.pyc"))


def test_of_a_folder_the_names_are_noted(book: Path):
    (book / "sub/__pycache__").mkdir()
    for name in (".jupyter_cache", "x.pyc", ".hidden"):
        (book / "sub" / name).touch()
    lines = noted(book, "os.listdir('sub'); open('sub/new', 'w').close(); os.listdir('sub')")
    assert lines == [["r", "sub/", [".hidden", "c.txt"]], ["w", "sub/new", None]]


@pytest.mark.parametrize(
    ("before", "name"),
    [
        ("import sys; sys.prefix = {!r}", ".venv"),
        ("import site; site.getsitepackages = lambda: ['/elsewhere', {!r}]", "lib/site-packages"),
    ],
)
def test_a_book_that_holds_its_environment(book: Path, before: str, name: str):
    (book / "to_venv").symlink_to("venv")
    for folder in ("venv", ".venv"):
        (book / folder).mkdir()
    (book / name / "data.txt").touch()
    assert noted(book, f"open('{name}/data.txt')", before.format(str(book / name))) == []
