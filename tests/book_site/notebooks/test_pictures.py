"""Drawings in the outputs of a notebook are images, which Jupyter shows before it trusts one."""

import base64
import re
from xml.etree import ElementTree

import pytest
from IPython.display import HTML
from matplotlib.figure import Figure
from nbformat import NotebookNode, v4

from book_site.figures import interactive, show
from book_site.notebooks.pictures import with_images


def html(markup: str) -> NotebookNode:
    data = {"text/html": markup, "text/plain": "<IPython.core.display.HTML object>"}
    return v4.new_output("display_data", data)


def drawing_in(output: NotebookNode) -> ElementTree.Element:
    (coded,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]*)"', output.data["text/html"])
    return ElementTree.fromstring(base64.b64decode(coded))


@pytest.fixture
def figure():
    made = Figure(figsize=(5, 3))
    made.subplots().plot([0, 1], [1, 0], color="#0b84c4")
    return html(show(made, 'A line that "falls" & ends.').data)


def test_what_a_figure_is_moved_with_stays_on_the_page(figure):
    still = HTML(figure.data["text/html"])
    moved = html(interactive(still, "dice", shares=[0.5, 0.25]).data)
    shown = with_images(moved).data["text/html"]
    assert '<div class="live-figure" data-live="dice">' in shown
    assert "0.25" not in shown
    assert "<script" not in shown


def test_a_drawing_by_hand_needs_no_namespace():
    output = html('<div style="max-width: 27rem"><svg viewBox="0 0 1 1"><text>a</text></svg></div>')
    assert drawing_in(with_images(output))[0].tag == "{http://www.w3.org/2000/svg}text"
    assert ' width="432" ' in with_images(output).data["text/html"]
    assert with_images(output).data["text/plain"] == "<IPython.core.display.HTML object>"


def test_what_is_no_drawing_stays():
    for output in (
        html("<table></table>"),
        html("<svg><br></svg>"),  # no XML
        v4.new_output("stream", text="<svg></svg>"),
    ):
        assert with_images(output) == output
