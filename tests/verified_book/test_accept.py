"""Expected blocks are rewritten from what ran, and nothing else of a page is touched."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from verified_book.notebook_cells import Cell

from tests.verified_book.books import Block, Book, Build, Part, cell, claim, expect, page, rendered
from verified_book import accept
from verified_book.records import Edit, PageRecord

pytestmark = pytest.mark.xdist_group("accept")

EVIDENCE = (
    "from evidence import Evidence\nEvidence('equal', 2e-7, 1e-6, 'equal: 2e-07', 'equal: ...')"
)


def parts(kind: str, accepted: bool) -> list[Part]:
    """A page before and after its blocks were accepted."""

    def changed(code: str, old: str, new: str) -> list[Part]:
        return [cell(code), expect(new if accepted else old)]

    def missing(code: str, new: str) -> list[Part]:
        return [cell(code), *([expect(new)] if accepted else [])]

    nested = [
        Block("note", missing("'nested'", "'nested'")),
        Block("note", [Block("note", ["Deep:", *changed("[[1, 2]]", "[1, 2]", "[[1, 2]]")])]),
        "- In a list:\n\n  .. code-cell::\n\n     'listed'"
        + ("\n\n  .. expect-output::\n\n     'listed'" if accepted else "")
        + "\n\n  and after it.",
    ]
    return [
        "# Accepted",
        *changed("6 * 7", "41", "42"),
        *changed("3.14159", "3.14", "3.14"),
        *changed("'vacuous'", "...", "'vacuous'"),
        *changed("'empty'", "", "'empty'"),
        *changed("print('one\\ntwo')", "one\ntwo\nthree", "one\ntwo"),
        *missing("'missing'", "'missing'"),
        "Prose that stays.",
        *missing("print('```python\\nfence\\n```')", "```python\nfence\n```"),
        *missing("print('above\\n\\n   below')", "above\n\n   below"),
        *missing("print(':option: value')", ":option: value"),
        *missing("print('---')\nprint('rule')", "---\nrule"),
        *missing("print('\\x1b[31mred\\x1b[0m')", "red"),
        *missing("print('first')\n[1.5]", "first\n[1.5]"),
        *missing(EVIDENCE, "equal: ..."),
        *(nested if kind == "rst" else []),
        *([".. include:: included.txt"] if kind == "rst" else []),
        "## Claim",
        claim(f"proof-{kind}"),
        *missing("'a proof'", "'a proof'"),
        "## The end",
        *missing("'the last cell'", "'the last cell'"),
    ]


GREEN = ["# Green", cell("0.123456"), expect("0.12")]
STILL = ["# Still red", cell("1 / 0"), cell("quiet = 1"), expect("not printed")]
KINDS = {"md": "one.md", "rst": "two.rst"}


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Book:
    pages = {"index.md": ["# A book"], "green.md": GREEN, "still.md": STILL}
    pages |= {name: parts(kind, accepted=False) for kind, name in KINDS.items()}
    book = Book(tmp_path_factory.mktemp("accept"), pages)
    book.write("book/included.txt", "\n".join(rendered([cell("'included'")], ".rst")))
    return book


@pytest.fixture(scope="module")
def red(book: Book) -> Build:
    return book.build()


@pytest.fixture(scope="module")
def accepting(book: Book, red: Build) -> Build:
    return book.build(accept=True)


@pytest.fixture(scope="module")
def green(book: Book, accepting: Build) -> Build:
    book.write_page("still.md", ["# No longer red"])
    return book.build("-W", "-n", "--keep-going")


def test_a_build_that_does_not_accept_changes_nothing(book: Book, red: Build):
    assert red.status == 1
    files = {"one.md", "two.rst", "included.txt", "still.md"}
    assert {failure.file for failure in red.failures} == files


@pytest.mark.parametrize("kind", KINDS)
def test_the_blocks_are_as_an_author_would_write_them(book: Book, accepting: Build, kind: str):
    text = page(parts(kind, accepted=True), f".{kind}")
    assert lines(book.read(KINDS[kind])) == lines(text)


def lines(text: str) -> list[str]:
    """The lines of a page, with one empty line where the tests' own pages have several."""
    return re.sub("\n{3,}", "\n\n", text).splitlines()


def test_an_included_file_is_rewritten_in_the_format_of_its_page(book: Book, accepting: Build):
    text = "\n".join(rendered([cell("'included'"), expect("'included'")], ".rst"))
    assert lines(book.read("included.txt")) == lines(text)


def test_pages_without_a_block_to_accept_are_not_touched(book: Book, accepting: Build):
    rewritten = re.findall(r"rewrote (\d+) expected block\(s\) in .*book/(\S+)", accepting.log)
    assert sorted(rewritten) == [("1", "included.txt"), ("14", "one.md"), ("17", "two.rst")]
    assert book.read("green.md") == book.texts["green.md"]


def test_what_no_block_can_mend_still_fails(accepting: Build):
    assert accepting.status == 1
    assert {failure.file for failure in accepting.failures} == {"still.md"}
    assert [failure.message.partition("\n")[0] for failure in accepting.failures] == [
        "the cell raised an error",
        "expected output, but the cell printed nothing; expected:",
    ]


def test_the_next_build_is_green_and_runs_nothing_again(green: Build):
    assert green.status == 0, green.log
    assert green.executed == set()


def cell_at(path: Path, line: int) -> Cell:
    return Cell(0, str(path), line, "", frozenset(), [], True, None)


@pytest.mark.parametrize(
    ("name", "before", "line", "after"),
    [
        ("a.md", "```{expect-output}\nold\n```\nrest", 1, "```{expect-output}\nnew\n```\nrest"),
        ("a.md", "``` {expect-output}\nold\n```\nrest", 1, "```{expect-output}\nnew\n```\nrest"),
        ("a.md", "````{expect-output}\n```\n````\nrest", 1, "```{expect-output}\nnew\n```\nrest"),
        ("a.md", "```{expect-output}\nold\n`````\nrest", 1, "```{expect-output}\nnew\n```\nrest"),
        ("a.md", ":::{expect-output}\nold\n:::\nrest", 1, "```{expect-output}\nnew\n```\nrest"),
        ("a.md", "~~~{expect-output}\nold\n~~~\nrest", 1, "```{expect-output}\nnew\n```\nrest"),
        (
            "a.md",
            "1. x\n\n   ```{expect-output}\n   o\n   ```\n",
            3,
            "1. x\n\n   ```{expect-output}\n   new\n   ```\n",
        ),
        ("a.md", "```{expect-output}\n\nold\n```", 3, "```{expect-output}\nnew\n```"),
        (
            "a.rst",
            ".. expect-output::\n\n   old\n\nrest",
            1,
            ".. expect-output::\n\n   new\n\nrest",
        ),
        ("a.rst", ".. expect-output:: old\n\nrest", 1, ".. expect-output::\n\n   new\n\nrest"),
        ("a.rst", ".. expect-output::\n   old\n\n   more", 1, ".. expect-output::\n\n   new"),
    ],
)
def test_a_block_is_replaced(tmp_path: Path, name: str, before: str, line: int, after: str):
    path = tmp_path / name
    path.write_text(before, encoding="utf-8")
    edit = accept.replacement(str(path), line, "new")
    assert edit is not None
    rewrite(edit)
    assert path.read_text(encoding="utf-8") == after


def rewrite(*edits: Edit) -> None:
    record = PageRecord(edits=list(edits))
    accept.rewrite(SimpleNamespace(verified_book_records={"a": record}))
    assert record.edits == []


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.md", "prose\n", 1),
        ("a.md", "```{expect-output}\nnever closed\n", 1),
        ("a.md", "```{code-cell}\n1\n```\n> ```{expect-output}\n> 1\n> ```\n", 4),
        ("a.rst", ".. code-cell::\n\n   1\n\nexpect-output\n", 5),
    ],
)
def test_a_block_that_is_not_found_is_left_to_its_author(
    tmp_path: Path, name: str, text: str, line: int
):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert accept.replacement(str(path), line, "new") is None


def test_a_cell_that_is_not_found_is_left_to_its_author(tmp_path: Path):
    path = tmp_path / "a.md"
    path.write_text("```{note}\n1\n```\n", encoding="utf-8")
    assert accept.insertion(cell_at(path, 1), "1") is None


def test_edits_of_one_page_keep_each_others_places(tmp_path: Path):
    path = tmp_path / "a.md"
    path.write_text("```{code-cell}\n1\n```\n\n```{code-cell}\n2\n```\n", encoding="utf-8")
    first = accept.insertion(cell_at(path, 1), "1\n1")
    second = accept.insertion(cell_at(path, 5), "2")
    assert first is not None
    assert second is not None
    rewrite(first, second)
    assert path.read_text(encoding="utf-8") == (
        "```{code-cell}\n1\n```\n\n```{expect-output}\n1\n1\n```\n\n"
        "```{code-cell}\n2\n```\n\n```{expect-output}\n2\n```\n"
    )
