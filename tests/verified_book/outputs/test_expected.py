"""Blocks that are held against cells, without a build."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from docutils import nodes
from nbformat import v4

from verified_book.outputs.cells import Cell
from verified_book.outputs.expected import Comparison, Marker, compare
from verified_book.outputs.rendered import Look

APP: Any = SimpleNamespace(config=SimpleNamespace(verified_book_accept_command="accept"))
LOOK = Look(("text/html", "image/svg+xml", "text/plain"), False, frozenset())
TAGGED = frozenset({"raises-exception"})
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="4" height="3"/>'


def cell(tags: frozenset[str] = TAGGED, **data: str) -> Cell:
    """A cell that shows something."""
    types = {name.replace("_", "/"): value for name, value in data.items()}
    types = {"image/svg+xml" if name == "svg" else name: value for name, value in types.items()}
    outputs = [v4.new_output("display_data", types)] if types else []
    return Cell(0, "a.md", 5, "f()", tags, outputs, True, nodes.container(), LOOK)


def compared(of: Cell, want: str | None = None, words: str = "") -> Comparison:
    """What a page with one cell and perhaps a block amounts to."""
    marker = Marker("a.md", 9, want or "", tuple(words.split()), of.node)
    return compare(APP, [of], [marker] if want is not None else [], set(), True)


def test_a_cell_that_is_tagged_must_raise():
    (failure,) = compared(cell(text_plain="7")).failures
    assert failure.message == "the cell is tagged raises-exception, but raised nothing"
    assert (failure.line, failure.refutes) == (5, True)
    assert failure.remedy.endswith("a block say what it shows instead: `accept` writes it.")
    (failure,) = compared(cell()).failures
    assert failure.remedy == "Mend the cell, or remove the tag."


def test_a_block_may_say_that_it_does_not():
    assert compared(cell(text_plain="7"), "7").failures == []
    (failure,) = compared(cell(text_plain="7"), "ValueError: no").failures
    assert failure.message.startswith("the output differs")


@pytest.mark.parametrize(
    ("shown", "words", "new"),
    [
        (cell(text_plain="7"), (), "7"),
        (cell(svg=SVG), ("image",), "image/svg+xml"),
        (cell(text_html="<b>bold</b>"), ("html",), "bold"),
    ],
)
def test_such_a_block_can_be_written(shown: Cell, words: tuple[str, ...], new: str):
    found = compared(shown)
    (edit,) = found.edits
    assert found.failures == [edit.mends]
    assert (edit.new, edit.words, edit.adds) == (new, words, words)


def test_a_block_may_agree_with_any_output_where_it_says_so():
    calm = replace(cell(text_plain="7"), tags=frozenset())
    found = compared(calm, "...", "varies")
    assert (found.failures, found.edits, found.checked) == ([], [], set())
    (failure,) = compared(calm, "...").failures
    assert "where the directive says `varies`" in failure.remedy
    (failure,) = compared(calm, "", "varies").failures
    assert failure.message == "expect-output: the block is empty"
    (failure,) = compared(replace(calm, outputs=[]), "...", "varies").failures
    assert failure.message.startswith("expected output, but the cell printed nothing")
