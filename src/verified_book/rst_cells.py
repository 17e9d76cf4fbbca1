"""Executed cells in reStructuredText chapters: the `code-cell` directive.

The cells of a page become a notebook that MyST-NB's own parser runs and renders, so that cache, time
limit, tags and look are those of the Markdown chapters; the rendered cells then take their places.
"""

import yaml
from docutils import nodes
from docutils.utils import new_document
from myst_nb.sphinx_ import Parser
from sphinx.application import Sphinx

from verified_book.directives import CheckedDirective
from verified_book.notebook_cells import RST_CELL_LINES, is_cell


class rst_cell(nodes.General, nodes.Element):  # noqa: N801  # docutils names its nodes so
    """The place of a cell until the page has been read."""


class CodeCell(CheckedDirective):
    """An executed cell of a reStructuredText page."""

    optional_arguments = 1  # the language, for editors; the kernel decides
    options_known = ("tags",)

    def run(self) -> list[nodes.Node]:
        """Leaves a placeholder that holds the code."""
        self.check_options()
        if not self.content:
            self.fail("code-cell: the cell is empty", "Write its code, or remove it.")
            return []
        tags = self.options.get("tags", "").strip("[] ").replace(",", " ").split()
        node = rst_cell(code="\n".join(self.content), tags=tags)
        self.set_source_info(node)
        return [node]


def as_notebook(places: list[rst_cell]) -> str:
    """The cells of a page as a notebook in MyST Markdown."""
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    parts = ["---", yaml.safe_dump({"file_format": "mystnb", **kernel}).strip(), "---", ""]
    for place in places:
        fence = "```"
        while fence in place["code"]:
            fence += "`"
        parts += [f"{fence}{{code-cell}} ipython3", "---", yaml.safe_dump({"tags": place["tags"]})]
        parts += ["---", place["code"], fence, ""]
    return "\n".join(parts)


def execute(app: Sphinx, doctree: nodes.document) -> None:
    """Runs the cells of an RST page and puts what MyST-NB rendered in their places."""
    places = list(doctree.findall(rst_cell))
    if not places:
        return
    scratch = new_document(doctree["source"], doctree.settings)
    scratch.reporter = doctree.reporter
    parser = Parser()
    parser.set_application(app)
    parser.parse(as_notebook(places), scratch)

    doctree[RST_CELL_LINES] = [place.line for place in places]
    rendered = {node["cell_index"]: node for node in scratch.findall(is_cell)}  # type: ignore[index]
    for index, place in enumerate(places):
        node = rendered.get(index)
        if node is None:  # tagged so that the page does not show it
            place.parent.remove(place)
            continue
        for inner in node.findall(nodes.Element):
            inner.source, inner.line = place.source, place.line
        place.replace_self(node)


def setup(app: Sphinx) -> None:
    """Registers the directive; it replaces one of MyST-NB's that only warns in RST."""
    app.add_node(rst_cell)
    app.add_directive("code-cell", CodeCell, override=True)
    app.connect("doctree-read", execute, priority=400)  # before the outputs are checked
