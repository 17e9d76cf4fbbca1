"""Sphinx extension: captions for what cells draw, numbered within their page.

A cell that draws has its caption in its option `caption`, in Markdown and in RST cells:
`:caption: The mean of each row, before and after.` Code between backticks and formulas between
dollars are shown as such.
"""

import re
from collections.abc import Iterator

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

from book_site import __version__
from verified_book.outputs.pages import PageCheck
from verified_book.records import Failure

_MARKUP = re.compile(r"`(?P<code>[^`]+)`|\$(?P<formula>[^$]+)\$")


def add_captions(app: Sphinx, doctree: nodes.document, check: PageCheck) -> None:
    """Makes a figure of each output whose cell has a caption."""
    number = 0
    for cell in check.cells:
        if "caption" not in cell.options:
            continue
        text = " ".join(str(cell.options["caption"]).split())
        output = cell.node and _output(cell.node)
        if not text or not output:
            what = "has no words" if not text else "has no output to stand under"
            remedy = "Write a sentence, and give it to the cell that shows the figure."
            failure = Failure(cell.source, cell.line, f"the caption {what}", remedy, cell.index)
            check.failures.append(failure)
            continue
        number += 1
        figure = nodes.figure("", ids=[f"figure-{number}"], classes=["cell-figure"])
        words = [*inline(text)]
        if not app.config.numfig:  # or else Sphinx puts the number
            words.insert(0, nodes.strong("", f"Figure {number}. "))
        caption = nodes.caption(text, "", *words)
        output.replace_self(figure)
        figure += [output, caption]


def _output(cell: nodes.container) -> nodes.container | None:
    """What a cell shows below its source."""
    shown = [node for node in cell.children if isinstance(node, nodes.container)]
    return next((node for node in shown if node.get("nb_element") == "cell_code_output"), None)


def inline(text: str) -> Iterator[nodes.Node]:
    """The words of a caption, with its code and its formulas."""
    place = 0
    for found in _MARKUP.finditer(text):
        if before := text[place : found.start()]:
            yield nodes.Text(before)
        if found["code"]:
            yield nodes.literal("", found["code"])
        else:
            yield nodes.math("", found["formula"])
        place = found.end()
    if rest := text[place:]:
        yield nodes.Text(rest)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Takes part in the reading of pages."""
    app.setup_extension("verified_book")
    app.connect("verified-book-page", add_captions)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
