"""Sphinx extension: headings that the build adds to a page, which no numbering counts."""

from typing import TYPE_CHECKING

from docutils import nodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata
    from sphinx.writers.html5 import HTML5Translator


class added_heading(nodes.rubric):  # noqa: N801  # docutils names its nodes so
    """A heading of the level that its attribute `level` says; elsewhere than in HTML a rubric."""


def level_below(place: nodes.Node) -> int:
    """The level of a heading in the section that a node stands in."""
    above = 0
    parent = place.parent
    while parent is not None:
        above += isinstance(parent, nodes.section)
        parent = parent.parent
    return min(above + 1, 6)


def _open(self: "HTML5Translator", node: added_heading) -> None:
    self.body.append(self.starttag(node, f"h{node['level']}", ""))


def _close(self: "HTML5Translator", node: added_heading) -> None:
    self.body.append(f"</h{node['level']}>\n")


def setup(app: "Sphinx") -> "ExtensionMetadata":
    """Registers the node."""
    from verified_book.version import __version__

    app.add_node(added_heading, html=(_open, _close))
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
