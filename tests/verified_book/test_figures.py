"""Figures take the page's color and width, and say what they show."""

import re
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from verified_book.figures import show


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


def test_a_figure_takes_the_width_that_there_is():
    head = re.search(r"<div[^>]*>\s*<svg[^>]*>", svg())
    assert head is not None
    assert "max-width: 7in" in head.group()
    assert " width=" not in head.group()
    assert " height=" not in head.group()
    assert "viewBox" in head.group()


def test_a_figure_is_the_same_in_every_build():
    assert svg() == svg()


def test_a_figure_brings_no_style_that_holds_elsewhere():
    assert "<style" not in svg()


@pytest.mark.parametrize("alt", ["", " \n"])
def test_a_figure_without_text_alternative_is_refused(alt):
    with pytest.raises(ValueError, match="alt must say what the figure shows, got"):
        show(figure(), alt)
