"""Executed cells in reStructuredText chapters: the `code-cell` directive.

The cells of a page become a notebook that MyST-NB's own parser runs and renders, so that cache,
time limit, tags and look are those of the Markdown chapters; what it rendered takes their places.
"""

from collections.abc import Sequence
from typing import Any

import sphinx
import yaml
from docutils import nodes
from docutils.parsers.rst.states import Inliner
from docutils.utils import new_document
from myst_nb.ext.glue.roles import PasteTextRole
from myst_nb.sphinx_ import Parser
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from verified_book.directives import CheckedDirective
from verified_book.outputs.cells import RST_CELL_PLACES, is_cell

_HANDED_ON = ("shows", "caption")
"""Options of a cell that other extensions read from the notebook, as those of Markdown cells."""


def glue_text(
    name: str,
    rawtext: str,
    text: str,
    lineno: int,
    inliner: Inliner,
    options: dict[str, Any] | None = None,
    content: Sequence[str] = (),
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """MyST-NB's role `glue:text`, also for values that the page itself is yet to compute.

    An RST page runs after it was read, so its own values are pasted as those of another page are:
    when it is written.
    """
    document = inliner.document
    if "nb_renderer" not in document and "::" not in text:
        env = document.settings.env
        text = f"/{env.doc2path(env.docname, base=False)}::{text}"
    return PasteTextRole()(name, rawtext, text, lineno, inliner, options, content)


class rst_cell(nodes.General, nodes.Element):  # noqa: N801  # docutils names its nodes so
    """The place of a cell until the page has been read."""


class CodeCell(CheckedDirective):
    """An executed cell of a reStructuredText page."""

    optional_arguments = 1  # the language, for editors; the kernel decides
    options_known = ("tags", *_HANDED_ON)

    def run(self) -> list[nodes.Node]:
        """Leaves a placeholder that holds the code."""
        self.check_options()
        if not is_rst(self.env):
            self.fail(
                "code-cell: MyST-NB does not run this cell",
                "Put it at the top level of a page with a kernelspec and `file_format: mystnb` in "
                "its front matter.",
            )
            return []
        if not self.content:
            self.fail("code-cell: the cell is empty", "Write its code, or remove it.")
            return []
        tags = self.options.get("tags", "").strip("[] ").replace(",", " ").split()
        handed_on = {name: self.options[name] for name in _HANDED_ON if name in self.options}
        options = {"tags": tags} | handed_on
        node = rst_cell(code="\n".join(self.content), options=options)
        self.set_source_info(node)
        return [node]


def is_rst(env: BuildEnvironment) -> bool:
    """Whether the page that is being read is reStructuredText, whatever its suffix."""
    suffixes = env.config.source_suffix
    name = str(env.doc2path(env.docname))
    return any(name.endswith(s) and kind == "restructuredtext" for s, kind in suffixes.items())


def as_notebook(places: list[rst_cell], kernel: str = "python3") -> str:
    """The cells of a page as a notebook in MyST Markdown."""
    title = "Python 3" if kernel == "python3" else kernel
    front = {"file_format": "mystnb", "kernelspec": {"name": kernel, "display_name": title}}
    parts = ["---", yaml.safe_dump(front).strip(), "---", ""]
    for place in places:
        fence = "```"
        while fence in place["code"]:
            fence += "`"
        parts += [f"{fence}{{code-cell}} ipython3", "---", yaml.safe_dump(place["options"])]
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
    if sphinx.version_info < (9,):
        parser.set_application(app)
    else:  # as its registry does
        parser._config, parser._env = app.config, app.env
    parser.parse(as_notebook(places, app.config.verified_book_kernel), scratch)

    doctree[RST_CELL_PLACES] = [(place.source, place.line) for place in places]
    containers = scratch.findall(nodes.container)
    rendered = {node["cell_index"]: node for node in containers if is_cell(node)}
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
    app.add_role_to_domain("glue", "text", glue_text, override=True)
    app.connect("doctree-read", execute, priority=400)  # before the outputs are checked
