"""One bar for the hidden sources of cells that stand together."""

from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.utils import new_document
from myst_nb.sphinx_ import HideCodeCellNode

from book_site.hidden_sources import ShareBars


def cell(code: str, output: str = "", hide: str | None = "input") -> nodes.container:
    made = nodes.container(nb_element="cell_code", hide_mode=hide, prompt_show="Show {type}")
    made["prompt_hide"] = "Hide {type}"
    made += nodes.container("", nodes.literal_block(code, code), nb_element="cell_code_source")
    if output:
        made += nodes.container("", nodes.paragraph("", output), nb_element="cell_code_output")
    return made


def page(*parts: nodes.Node) -> nodes.document:
    document = new_document("page.md", get_default_settings())
    document += nodes.section("", *parts)
    ShareBars(document).run()
    return document


def bars(document: nodes.document) -> list[list[str]]:
    """The sources under each bar."""
    return [
        [block.astext() for block in bar.findall(nodes.literal_block)]
        for bar in document.findall(HideCodeCellNode)
    ]


def test_neighbors_share_one_bar_and_their_outputs_follow_it():
    document = page(cell("a"), cell("b", "one"), cell("c", "two"))
    assert bars(document) == [["a", "b", "c"]]
    assert document.astext().split() == ["a", "b", "c", "one", "two"]
    (bar,) = document.findall(HideCodeCellNode)
    assert (bar["prompt_show"], bar["prompt_hide"]) == ("Show source", "Hide source")


def test_a_cell_that_shows_its_source_is_left_as_it_is():
    document = page(cell("a"), cell("b", hide=None), cell("c"), cell("d", hide="all"))
    assert bars(document) == []
    modes = [node["hide_mode"] for node in document.findall(nodes.container) if "hide_mode" in node]
    assert modes == ["input", None, "input", "all"]
