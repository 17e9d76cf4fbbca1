"""Cells and blocks of reStructuredText pages are found in whatever they are nested."""

import pytest

from tests.verified_book.accepting.edits import RST, accepted, edit, reason, summary

CELL = ".. code-cell::\n\n   1\n"
# What comes before a cell, what its lines are indented by, and what the lines of a new block are.
NESTED = {
    "top": ("", "", "   "),
    "tabs in a list": ("- item\n\n", "\t", "\t\t"),
    "a field": (":name:\n", "  ", "     "),
    "a footnote": (".. [1] Text\n\n", "   ", "      "),
    "a note with options": (".. note:: Title\n   :class: a\n\n   Text\n\n", "   ", "      "),
    "only": (".. only:: html and\n          x\n\n", "   ", "      "),
}


def nest(text: str, indent: str) -> str:
    """Text that is indented, with tabs in place of what a directive adds, where there are some."""
    if "\t" in indent:
        text = text.replace("   ", "\t")
    return "".join(indent + line if line.strip() else line for line in text.splitlines(True))


@pytest.mark.parametrize(("head", "indent", "inner"), NESTED.values(), ids=NESTED)
def test_a_block_is_written_where_its_cell_stands(head: str, indent: str, inner: str):
    text = f"Title\n#####\n\n{head}{nest(CELL, indent)}\nEnd.\n"
    spans = RST.spans(text)
    assert summary(spans) == [("cell", 4 + head.count("\n"), "1")]
    cell = f"{head}{nest(CELL, indent)}"
    after = text.replace(cell, f"{cell}\n{indent}.. expect-output::\n\n{inner}[1]\n{inner}  2\n")
    new = accepted(text, RST, {0: "[1]\n  2"})
    assert new == after
    assert accepted(new, RST, {1: "3"}) == new.replace(f"[1]\n{inner}  2", "3")


def test_a_block_is_written_below_a_list_marker():
    text = (
        ".. list-table::\n\n   * - .. code-cell::\n\n          1\n\n     - .. code-cell:: python\n"
        "          :tags: [a]\n\n          2\n"
    )
    new = accepted(text, RST, {0: "1", 1: "2"})
    block = "\n       .. expect-output::\n\n          {}\n"
    assert new == text.replace("1\n", "1\n" + block.format(1)) + block.format(2)


NOT_FOUND = {
    "a grid table": (
        "+----------------------+---+\n| .. code-cell::       | b |\n|                      |   |\n"
        "|    1                 |   |\n+----------------------+---+\n"
    ),
}


@pytest.mark.parametrize("text", NOT_FOUND.values(), ids=NOT_FOUND)
def test_tables_that_are_drawn_are_left_to_their_authors(text: str):
    text += f"\n{CELL}"
    assert reason(text, RST, {0: "1"}) == "it stands in a table that is drawn with characters"
    assert accepted(text, RST, {1: "1"}) == f"{text}\n.. expect-output::\n\n   1\n"


NOT_DIRECTIVES = {
    "a literal block": "Text::\n\n   .. code-cell::\n\n      1\n",
    "a string in a cell": ".. code-cell::\n\n   x = '''\n   .. code-cell::\n\n      1\n   '''\n",
    "a block": ".. expect-output::\n\n   .. code-cell::\n\n      1\n",
}


@pytest.mark.parametrize("text", NOT_DIRECTIVES.values(), ids=NOT_DIRECTIVES)
def test_what_is_no_directive_is_not_taken_for_one(text: str):
    page = f"{text}\n{CELL}"
    spans = RST.spans(page)
    assert [span.start for span in spans if span.body == "1"] == [text.count("\n") + 1]
    assert accepted(page, RST, {len(spans) - 1: "1"}) == f"{page}\n.. expect-output::\n\n   1\n"


REPLACED = [
    (".. expect-output::\n\n   old\n", ".. expect-output::\n\n   new\n", "\n"),
    (".. expect-output::  exact\n\n   old\n", ".. expect-output::  exact\n\n   new\n", "\r"),
    (".. expect-output::\n\n\told\n", ".. expect-output::\n\n\tnew\n", "\r\n"),
]


@pytest.mark.parametrize(("before", "after", "newline"), REPLACED)
def test_a_block_is_replaced(before: str, after: str, newline: str):
    def page(block: str) -> str:
        return f"{CELL}\n\n{block}".replace("\n", newline)

    assert accepted(page(before), RST, {1: "new"}) == page(after)


def test_what_is_not_as_it_was_parsed_is_refused():
    text = f"{CELL}\n.. expect-output::\n\n   1\n\n{CELL}"
    spans = RST.spans(text)
    for index, changed, why in [
        (0, {}, "a block that is not held to the cell follows it"),
        (2, {"code": "2"}, "no cell that reads as it was parsed stands there"),
        (2, {"line": 6}, "no cell that reads as it was parsed stands there"),
        (1, {"old": "2"}, "no block that reads as it was parsed stands there"),
    ]:
        assert reason(text, RST, {index: edit(spans, index, "new", **changed)}) == why
