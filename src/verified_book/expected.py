"""The `expect-output` directive: the text that a reader must see below the cell before it."""

import difflib

from docutils import nodes
from sphinx.application import Sphinx

from verified_book import accept
from verified_book.directives import CheckedDirective
from verified_book.matching import agree, is_vacuous
from verified_book.notebook_cells import Cell, mime_priority, unfinished
from verified_book.records import Edit, Failure

Found = list[tuple[Cell | None, Failure]]

ACCEPT_REMEDY = "Mend the code; or run `make accept` and review the change with `git diff`."


class expected_output(nodes.Invisible, nodes.Element):  # noqa: N801  # docutils names its nodes so
    """Marks the place of an expected block; gone before anything is written."""


class ExpectOutput(CheckedDirective):
    """Holds the expected text; shows nothing."""

    option_spec = None  # the text may begin with a colon

    def run(self) -> list[nodes.Node]:
        """Leaves a marker for the check of the page."""
        node = expected_output(want="\n".join(self.content))
        self.set_source_info(node)
        return [node]


def remove_markers(doctree: nodes.document) -> list[tuple[expected_output, nodes.Node | None]]:
    """Takes the markers out of a page; gives each with the element that stood before it."""
    found: list[tuple[expected_output, nodes.Node | None]] = []
    for marker in list(doctree.findall(expected_output)):
        siblings = marker.parent.children
        before = [
            node
            for node in siblings[: siblings.index(marker)]
            if not isinstance(node, nodes.comment | nodes.system_message)
        ]
        found.append((marker, before[-1] if before else None))
    # Only now: a second block after one cell must find the first, not the cell.
    for marker, _ in found:
        marker.parent.remove(marker)
    return found


def check(
    app: Sphinx, doctree: nodes.document, cells: list[Cell]
) -> tuple[Found, list[Edit], set[int]]:
    """Compares every expected block of a page with its cell.

    Returns:
        The failures, the edits that would mend them when the build accepts, and the indices of the
        cells whose output a block can refute.
    """
    by_node = {id(cell.node): cell for cell in cells if cell.node is not None}
    not_run = {cell.index for cell in unfinished(app, cells)}
    priority = mime_priority(app)
    failures: Found = []
    edits: list[Edit] = []
    covered: set[int] = set()
    checked: set[int] = set()

    for marker, before in remove_markers(doctree):
        source, line, want = marker.source or doctree["source"], marker.line or 1, marker["want"]
        cell = by_node.get(id(before))
        if cell is None:
            message = "expect-output: no code cell directly before it"
            remedy = "Put the block right after the cell whose output it holds; one block a cell."
            failures.append((None, Failure(source, line, message, remedy)))
            continue
        covered.add(cell.index)
        if cell.index in not_run:
            continue  # reported once, as what stopped the page
        if cell.errors and "raises-exception" not in cell.tags:
            continue  # reported once, as the error
        got = cell.shown_text(priority)
        vacuous = is_vacuous(want)
        if not vacuous:
            checked.add(cell.index)
            if agree(want, got):
                continue
        edit = accept.replacement(source, line, cell.expected_text(priority)) if got else None
        if accept.accepting() and edit:
            edits.append(edit)
            checked.add(cell.index)
        elif vacuous:
            message = (
                "expect-output: the block agrees with any output"
                if want
                else "expect-output: the block is empty"
            )
            remedy = "Write what the reader must see; `...` may stand for a part of it only."
            failures.append((cell, Failure(source, line, message, remedy)))
        else:
            failures.append((cell, _difference(source, line, want, got)))

    for cell in cells:
        text = cell.shown_text(priority)
        if not text or cell.index in covered | not_run:
            continue
        edit = accept.insertion(cell, cell.expected_text(priority))
        if accept.accepting() and edit:
            edits.append(edit)
            checked.add(cell.index)
        else:
            message = f"text output without an expect-output block\n{text}"
            remedy = "Put an expect-output block after the cell, or run `make accept`."
            failures.append((cell, Failure(cell.source, cell.line, message, remedy)))
    return failures, edits, checked


def _difference(source: str, line: int, want: str, got: str) -> Failure:
    if not got:
        message = f"expected output, but the cell printed nothing; expected:\n{want}"
        return Failure(source, line, message, "Mend the cell, or remove the block.", refutes=True)
    wanted, printed = want.split("\n"), got.split("\n")
    if len(wanted) == len(printed):  # lines that agree are no difference, however they are written
        printed = [w if agree(w, g) else g for w, g in zip(wanted, printed, strict=True)]
    diff = difflib.unified_diff(wanted, printed, "expected", "executed", lineterm="")
    message = "\n".join(["the output differs from the expected one", *diff])
    return Failure(source, line, message, ACCEPT_REMEDY, refutes=True)


def setup(app: Sphinx) -> None:
    """Registers the directive."""
    app.add_node(expected_output)
    app.add_directive("expect-output", ExpectOutput)
