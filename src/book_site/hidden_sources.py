"""Sphinx extension: cells that stand together and hide their sources share one bar.

MyST-NB gives each cell that is tagged `hide-input` a bar of its own. A figure that takes four cells
to draw has four; here it has one, which opens the sources of all, and the outputs follow it.
"""

from collections.abc import Iterator

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.typing import ExtensionMetadata

from book_site import __version__


class ShareBars(SphinxPostTransform):
    """Moves the sources of neighbors under the bar of the first, before MyST-NB makes any."""

    default_priority = 198
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        """Finds the neighbors and joins them."""
        for cells in list(_neighbors(self.document)):
            _share(cells)


def _neighbors(document: nodes.document) -> Iterator[list[nodes.container]]:
    """Runs of two and more cells, one right after the other, whose sources are hidden."""
    for parent in list(document.findall(nodes.Element)):
        run: list[nodes.container] = []
        for child in [*parent.children, None]:
            if isinstance(child, nodes.container) and _hides_source(child):
                run.append(child)
                continue
            if isinstance(child, nodes.comment | nodes.target):
                continue
            if len(run) > 1:
                yield run
            run = []


def _hides_source(node: nodes.container) -> bool:
    return (
        node.get("nb_element") == "cell_code"
        and node.get("hide_mode") == "input"
        and bool(node.children)
        and isinstance(node.children[0], nodes.container)
        and node.children[0].get("nb_element") == "cell_code_source"
    )


def _share(cells: list[nodes.container]) -> None:
    """Puts the sources of all under one bar in the first cell; cells that are empty then go."""
    first = cells[0]
    bar = HideCodeCellNode(
        prompt_show=first["prompt_show"].replace("{type}", "source"),
        prompt_hide=first["prompt_hide"].replace("{type}", "source"),
        classes=["above-input"],
    )
    for cell in cells:
        cell["hide_mode"] = None
        source = cell.children[0]
        cell.remove(source)
        bar += source
        if not cell.children and cell is not first:
            cell.parent.remove(cell)
    first.insert(0, bar)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Registers the transform."""
    app.add_post_transform(ShareBars)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
