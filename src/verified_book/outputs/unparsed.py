"""Finds the expected blocks of a page's source that no directive was made of.

A fence that is not closed, a colon too few, a block in what parses no content: each would be passed
over in silence. What the page shows as code, has commented out or runs as a cell is meant so.
"""

import re
from collections import Counter

from docutils import nodes
from markdown_it import MarkdownIt
from mdit_py_plugins.colon_fence import colon_fence_plugin
from sphinx.application import Sphinx

from verified_book.outputs import source
from verified_book.outputs.cells import Cell
from verified_book.outputs.expected import runs_of
from verified_book.outputs.rst_cells import is_rst
from verified_book.records import Failure

_LOOKS_LIKE = re.compile(
    r"^[ \t>|*+\-\d.)]*?(?:(?:`{3,}|~{3,}|:{3,})[ \t]*\{ *|\.\.[ \t]+)expect[-_ ]output\b.*$",
    re.MULTILINE,
)

_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})(.*)")
_BLOCK = re.compile(r"[ \t]*\{ *expect[-_ ]output\b")


def unmet_blocks(app: Sphinx, doctree: nodes.document, cells: list[Cell]) -> list[Failure]:
    """A failure for each line that looks like a block and is neither one nor meant as text."""
    page, text = doctree["source"], source.text_of_page(app.env)
    if text is None or "expect" not in text:
        return []
    found = [(text.count("\n", 0, m.start()) + 1, m[0].strip()) for m in _LOOKS_LIKE.finditer(text)]
    met = Counter(line for path, line in runs_of(app) if path == page)
    as_text = Counter(
        line.strip() for shown in _texts(doctree, cells) for line in shown.split("\n")
    )
    colons = "colon_fence" in app.config.myst_enable_extensions
    swallowed = set() if is_rst(app.env) else _in_open_fences(text, colons)
    as_text -= Counter(written for line, written in found if line in swallowed)
    failures = []
    for line, written in found:
        if line not in swallowed and as_text[written] > 0:
            as_text[written] -= 1
        else:
            failures.append((line, written))
    # A directive's line is that of its fence, or of what it stands in: only their number is sure.
    surplus = len(failures) - met.total()
    if surplus <= 0:
        return []
    unmet = [(line, written) for line, written in failures if not met[line]][:surplus]
    message = "expect-output: the block is no directive here, so nothing is held to it: "
    remedy = "Close the fence before it, mend its name, or move it out of what holds it as text."
    return [Failure(page, line, message + written, remedy) for line, written in unmet]


def _in_open_fences(text: str, with_colons: bool, above: int = 0) -> set[int]:
    """The lines, from 1, of fences within one that its author has not closed.

    One that shall be shown stands in a fence that is closed, and longer or of the other kind.

    Args:
        text: A text in Markdown.
        with_colons: Whether colons make fences, too.
        above: How many lines of the page stand before it.
    """
    found: set[int] = set()
    parser = MarkdownIt().disable("inline")
    for token in (parser.use(colon_fence_plugin) if with_colons else parser).parse(text):
        start, end = token.map or [0, 0]
        first = above + start + 2  # of what the fence holds
        if token.type == "colon_fence" and not _BLOCK.match(token.info):
            found |= _in_open_fences(token.content, with_colons, first - 1)  # It holds Markdown.
        if token.type != "fence":
            continue
        lines = token.content.splitlines()
        is_closed = end - start == len(lines) + 2
        for number, line in enumerate(lines, start=first):
            match = _FENCE.match(line)
            if match and (not is_closed or match[1].startswith(token.markup)):
                found.add(number)
    return found


def _texts(doctree: nodes.document, cells: list[Cell]) -> list[str]:
    """All that the page shows, runs or leaves out as plain text."""
    literal = nodes.literal_block | nodes.doctest_block | nodes.comment | nodes.raw | nodes.literal
    shown = [node.astext() for node in doctree.findall(lambda node: isinstance(node, literal))]
    return shown + [cell.code for cell in cells if not _shows_code(cell)]


def _shows_code(cell: Cell) -> bool:
    blocks = cell.node.findall(nodes.literal_block) if cell.node is not None else ()
    return any(block.astext() == cell.code for block in blocks)
