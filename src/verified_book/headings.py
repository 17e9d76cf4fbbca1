"""Headings that the build adds to a page, which no numbering counts."""

from typing import Any

from docutils import nodes


def heading(level: int, *words: str | nodes.Node, **attributes: Any) -> nodes.rubric:
    """A heading of a level in HTML; elsewhere a rubric."""
    children = [nodes.Text(each) if isinstance(each, str) else each for each in words]
    return nodes.rubric("", "", *children, level=level, **attributes)  # MyST-Parser writes it


def level_below(place: nodes.Node) -> int:
    """The level of a heading in the section that a node stands in."""
    above = 0
    parent = place.parent
    while parent is not None:
        above += isinstance(parent, nodes.section)
        parent = parent.parent
    return min(above + 1, 6)
