"""Captions of what cells draw."""

from types import SimpleNamespace

import pytest
from docutils import nodes

from book_site.captions import add_captions
from verified_book.outputs.cells import Cell
from verified_book.outputs.pages import PageCheck
from verified_book.outputs.rendered import Look

LOOK = Look(mime_priority=(), merge_streams=True, removed=frozenset())


def cell(caption: str | None, output: str = "a picture") -> Cell:
    node = nodes.container(nb_element="cell_code")
    node += nodes.container("", nodes.literal_block("", "draw()"), nb_element="cell_code_source")
    if output:
        node += nodes.container("", nodes.paragraph("", output), nb_element="cell_code_output")
    options = {} if caption is None else {"caption": caption}
    return Cell(0, "page.md", 7, "draw()", frozenset(), [], True, node, LOOK, options)


def captioned(*cells: Cell) -> PageCheck:
    check = PageCheck(executed=True, cells=list(cells))
    add_captions(SimpleNamespace(config=SimpleNamespace(numfig=False)), None, check)
    return check


def test_captions_are_numbered_on_their_page():
    cells = [cell("The first."), cell(None), cell("The\n second.")]
    assert captioned(*cells).failures == []
    figures = [list(each.node.findall(nodes.figure)) for each in cells]
    assert [len(found) for found in figures] == [1, 0, 1]
    output, caption = figures[2][0].children
    assert output.astext() == "a picture"
    assert caption.astext() == "Figure 2. The second."
    assert cells[2].node.children[0].astext() == "draw()"  # the source stays above


def test_code_and_formulas_are_shown_as_such():
    drawn = cell("Of `eps` and $x^2$")
    captioned(drawn)
    (caption,) = drawn.node.findall(nodes.caption)
    kinds = [type(child).__name__ for child in caption.children]
    assert kinds == ["strong", "Text", "literal", "Text", "math"]
    assert [child.astext() for child in caption.children[1:]] == ["Of ", "eps", " and ", "x^2"]


@pytest.mark.parametrize(
    ("drawn", "message"),
    [(cell("  "), "has no words"), (cell("Words.", output=""), "has no output")],
)
def test_a_caption_that_cannot_be_shown_is_a_failure(drawn, message):
    (failure,) = captioned(drawn).failures
    assert (failure.source, failure.line) == ("page.md", 7)
    assert message in failure.message
    assert failure.remedy
