"""Figures take the page's color and width, and say what they show."""

import json
import math
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure

from book_site.figures import interactive, show


def figure() -> Figure:
    made = Figure(figsize=(5, 3))
    axes = made.subplots()
    axes.plot([0, 1], [1, 0], color="#0b84c4")
    axes.set_title("A title")
    return made


def svg() -> str:
    data = show(figure(), 'A line that\n falls & "ends".').data
    assert data is not None
    return data


def test_a_figure_has_a_text_alternative():
    root = ElementTree.fromstring(svg())
    (image,) = root
    assert image.attrib["role"] == "img"
    assert image.attrib["aria-label"] == 'A line that falls & "ends".'


def test_a_figure_follows_the_page():
    text = svg()
    assert "currentColor" in text
    assert "#000000" not in text
    assert "#ffffff" not in text
    assert "#0b84c4" in text
    assert "A title</text>" in text  # text stays text


def test_a_figure_is_the_same_in_every_build():
    assert svg() == svg()


@pytest.mark.parametrize("alt", ["", " \n"])
def test_a_figure_without_text_alternative_is_refused(alt):
    with pytest.raises(ValueError, match="alt must say what the figure shows, got"):
        show(figure(), alt)


def test_a_figure_that_a_reader_moves_keeps_its_still_picture():
    still = show(figure(), "A line.")
    before = still.data
    moved = interactive(
        still, "line", digits=3, ends=np.array([[0.0, 1 / 3]]), name="a </script> b"
    )
    assert still.data == before
    assert f'<div class="live-still">{before}</div>' in moved.data
    [data] = re.findall(r'<script type="application/json">(.*?)</script>', moved.data)
    assert json.loads(data) == {"ends": [[0.0, 0.333]], "name": "a </script> b"}
    assert moved.data.startswith('<div class="live-figure" data-live="line">')


@pytest.mark.parametrize("number", [math.inf, math.nan])
def test_data_that_json_has_not_are_refused(number):
    with pytest.raises(ValueError, match="not JSON compliant"):
        interactive(show(figure(), "A line."), "line", ends=[number])
