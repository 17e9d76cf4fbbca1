"""`check` runs the named pages, and only those, in whatever book they are."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.verified_book.commands.conftest import DIFFERENCE, GREEN, RED, Command, write
from tests.verified_book.hostile import DAMAGES

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.xdist_group("commands")]

needs_jupyter_book = pytest.mark.skipif(
    importlib.util.find_spec("jupyter_book") is None, reason="Jupyter Book 1 needs Sphinx 7"
)
JUPYTER_BOOK = {
    "book/_config.yml": "only_build_toc_files: true\nexecute: {execute_notebooks: cache}\n",
    "book/_toc.yml": "format: jb-book\nroot: index\nchapters:\n- file: part/red\n- file: green\n",
    "book/index.md": "# A book\n\nSee {ref}`elsewhere`.\n",
    "book/part/red.md": RED,
    "book/green.rst": GREEN,
    "book/loose.md": RED,
}
SPHINX = {
    "docs/conf.py": 'extensions = ["myst_parser"]\nexclude_patterns = ["_build", "old"]\n'
    'nb_execution_mode = "off"\n',
    "docs/index.rst": "Hello\n=====\n",
    "docs/red.md": RED,
    "docs/old/red.md": RED,
}


@needs_jupyter_book
def test_pages_of_a_jupyter_book_that_does_not_list_the_extension(command: Command, tmp_path: Path):
    counting = RED.replace("6 * 7", "open('runs', 'a').write('x')\n6 * 7")
    write(tmp_path, JUPYTER_BOOK | {"book/part/red.md": counting})
    for _ in range(2):
        said = command("check", "book/part", "book/index.md")
        assert said.out == (
            "book/part/red.md:12: ERROR: the output differs from the expected one\n"
            f"{DIFFERENCE}2 pages, 1 output checked, 0 not checked, 1 failure\n"
        )
        assert (said.status, said.err) == (1, "")
    assert (tmp_path / "book/part/runs").read_text() == "x"  # the second time from the cache
    assert not (tmp_path / "book/_build/html").exists()
    assert (tmp_path / "book/_build/.jupyter_cache").is_dir()  # that of the book's own builds


def test_a_folder_of_builds_takes_nothing_from_those_of_the_book(command: Command, tmp_path: Path):
    counting = RED.replace("6 * 7", "open('runs', 'a').write('x')\n6 * 7")
    conf = SPHINX["docs/conf.py"] + 'nb_execution_cache_path = "../own"\n'
    write(tmp_path, SPHINX | {"docs/red.md": counting, "docs/conf.py": conf})
    for options in ((), ("--builds", "kept/a"), ("--builds", "kept/a"), ("--builds", "kept/b")):
        assert command("check", "docs", *options).status == 1
    assert (tmp_path / "docs/runs").read_text() == "xxx"
    for folder in ("own", "kept/a/.jupyter_cache", "kept/b/.jupyter_cache"):
        assert len(list((tmp_path / folder).glob("verified-book-*/executed/*"))) == 1


def test_pages_in_no_book_run_by_themselves(command: Command, tmp_path: Path):
    write(tmp_path, {"notes/red.md": RED, "notes/green.rst": GREEN, "notes/other.md": RED})
    said = command("check", "notes/red.md", "notes/green.rst")
    assert [line for line in said.out.splitlines() if "ERROR" in line] == [
        "notes/red.md:11: ERROR: the output differs from the expected one",
    ]
    assert said.out.endswith("2 pages, 2 outputs checked, 0 not checked, 1 failure\n")
    assert len(list((tmp_path / "notes").iterdir())) == 3


def test_references_to_pages_that_are_not_read_are_no_failures(command: Command, tmp_path: Path):
    claim = "# One\n\n```{claim} A1\n:verdict: holds\n\nIt is so.\n```\n"
    pages = {"docs/one.md": claim, "docs/two.md": "# Two\n\n{claim}`A1`, {doc}`one`, {ref}`x`\n"}
    write(tmp_path, {"docs/conf.py": 'extensions = ["verified_book.claims"]', **pages})
    said = command("check", "docs/two.md")
    assert (said.status, said.err) == (0, "")
    assert command("check", "docs/one.md").out.startswith("docs/one.md:3: ERROR: ")  # no proof


def test_a_page_that_cannot_be_read_is_named(command: Command, tmp_path: Path):
    pages = {f"docs/p{number}.md": f"# Page {number}\n" for number in range(6)}
    write(tmp_path, {"docs/conf.py": 'extensions = ["verified_book"]', "docs/x.ipynb": "{"} | pages)
    said = command("check", "docs", "-j", "2")
    assert said.status == 2
    assert "docs/x.ipynb: the page cannot be read: NotJSONError: Notebook does not" in said.err
    assert said.err.endswith("; mend its front matter, a directive, or an extension\n")
    assert said.err.count("\n") == 1


def test_a_broken_front_matter_is_one_failure(command: Command, tmp_path: Path):
    broken = {
        "a.md": ("file_format: mystnb\nkernelspec: {name: x\n", 3, "is no YAML, so no cell runs:"),
        "b.md": ("mystnb\n", 1, "holds no settings, so no cell runs"),
    }
    cells = RED.partition("---\n# ")[2]
    write(tmp_path, {name: f"---\n{head}---\n{cells}" for name, (head, *_) in broken.items()})
    said = command("check", *broken)
    assert said.status == 1
    for name, (_, line, message) in broken.items():
        assert f"{name}:{line}: ERROR: the front matter {message}" in said.out
    assert said.out.count("ERROR") == said.out.count("no cell of the page was checked") == 2


def test_results_for_programs_of_a_check_that_never_accepts(
    command: Command, tmp_path: Path, monkeypatch
):
    write(tmp_path, {"page.md": RED})
    monkeypatch.setenv("VERIFIED_BOOK_ACCEPT", "1")
    assert command("check", "page.md", "--json", "found.json").status == 1
    assert (tmp_path / "page.md").read_text() == RED
    found = json.loads((tmp_path / "found.json").read_text())
    path = str(tmp_path / "page.md")
    [page], [failure] = found["pages"], found["failures"]
    assert (page["path"], page["executed"], page["checked"]) == (path, True, {"text": 1})
    [block] = page["blocks"]
    assert (block["source"], block["line"], block["compared"]) == (path, 11, True)
    assert (failure["source"], failure["line"]) == (path, 11)
    assert (failure["expected"], failure["executed"]) == ("41", "42")


WRONG_CALLS = {
    "empty": "empty: this folder is in no book; name its pages, or a book",
    "docs/conf.py": "docs/conf.py: this is no page: its name ends in none of .ipynb, .md, .rst",
    "docs/old/red.md": "docs/old/red.md: this is no page of the book in docs: "
    "its configuration excludes it",
    "book/loose.md": "book/loose.md: this is no page of the book in book: "
    "its _toc.yml does not list it",
}


@needs_jupyter_book
@pytest.mark.parametrize("name", WRONG_CALLS)
def test_a_wrong_call_is_told_in_a_sentence(command: Command, tmp_path: Path, name: str):
    write(tmp_path, {**SPHINX, **JUPYTER_BOOK, "empty/README.md": "# No cells", "notes.txt": ""})
    said = command("check", name, "--json", "found.json")
    assert (said.status, said.out) == (2, "")
    assert said.err == f"verified_book: {WRONG_CALLS[name]}\n"
    found = json.loads((tmp_path / "found.json").read_text())
    assert found == {"error": WRONG_CALLS[name], "foreign": "this is no page" in WRONG_CALLS[name]}


def test_a_jupyter_book_where_that_is_not_installed(command: Command, tmp_path: Path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jupyter_book.config", None)
    write(tmp_path, JUPYTER_BOOK)
    said = command("check", "book")
    assert (said.status, said.err) == (
        2,
        "verified_book: book: this is a Jupyter Book 1 (it has _config.yml and _toc.yml), "
        "which is not installed here; run: python -m pip install 'jupyter-book<2'\n",
    )
    write(
        tmp_path, {"book/conf.py": 'extensions = ["verified_book"]'}
    )  # `jupyter-book config sphinx`
    assert command("check", "book/index.md").status == 0


def test_a_page_that_is_no_file_is_told_at_once(command: Command, tmp_path: Path):
    write(tmp_path, {"docs/conf.py": "", "docs/index.md": RED, "alone/red.md": RED})
    os.mkfifo(tmp_path / "docs/page.md")
    os.mkfifo(tmp_path / "alone/page.md")
    for name in ("docs", "docs/page.md", "alone/page.md"):
        said = command("check", name)
        assert said.status == 2, name
        assert "Remedy: put a page in its place, or exclude it in the configuration" in said.err
        assert said.err.count("\n") == 1
    assert command("check", "docs/index.md").status == 1


def test_what_is_right_exits_with_0_and_says_what_was_not_checked(command: Command, tmp_path: Path):
    bold = "\n.. code-cell::\n\n   from IPython.display import HTML\n   HTML('<b>bold</b>')\n"
    write(tmp_path, {"page.rst": GREEN + bold})
    said = command("check", "page.rst")
    assert (said.status, said.out) == (
        0,
        "not checked: 1 html (page.rst 12)\n1 page, 1 output checked, 1 not checked, no failure\n",
    )


def test_the_command_line_itself(tmp_path: Path):
    write(tmp_path, {"page.md": "# No cells\n"})
    run = subprocess.run(
        [sys.executable, "-m", "verified_book", "check", "page.md"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stdout) == (
        0,
        "1 page, 0 outputs checked, 0 not checked, no failure\n",
    )


def test_a_damaged_conf_py_is_told_in_a_sentence(command: Command, tmp_path: Path):
    write(tmp_path, {"docs/conf.py": "project = '1'\n", "docs/index.rst": GREEN})
    DAMAGES["binary"](tmp_path / "docs/conf.py")
    said = command("check", "docs/index.rst")
    assert said.status == 2
    assert "Configuration error" in said.err
    assert "Traceback" not in said.err


def test_a_character_that_ends_lines_for_some_tools_only(command: Command, tmp_path: Path):
    prose = "# Prose\n\nno\u2028cell\n"
    write(tmp_path, {"docs/conf.py": 'extensions = ["verified_book"]', "docs/index.md": prose})
    write(tmp_path, {"docs/red.md": RED + "\na\u2028b\x0cc\n"})
    said = command("check", "docs")
    line = RED.count("\n") + 2
    assert [text for text in said.out.splitlines() if "a character U+" in text] == [
        f"docs/red.md:{line}: ERROR: the page has a character U+2028 (line separator)",
        f"docs/red.md:{line}: ERROR: the page has a character U+000C (a control character)",
    ]
    assert "Take it out, or write it as an escape" in said.out
