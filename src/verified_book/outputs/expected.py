"""The `expect-output` directive: the text that a reader must see below the cell before it."""

import difflib
import textwrap
from dataclasses import dataclass, field

from docutils import nodes
from docutils.parsers.rst import states
from sphinx.application import Sphinx

from verified_book.directives import CheckedDirective
from verified_book.matching import agree, escape, is_vacuous
from verified_book.outputs.cells import Cell
from verified_book.outputs.images import with_digests_of, without_digests
from verified_book.outputs.rendered import REQUIRED, WORDS, displayed_in, pattern_of, text_of
from verified_book.records import Block, Edit, Failure

_RUN = "verified_book_blocks_run"
# What a block may have to say for a cell to be held to it at all, the usual first.
_TO_SAY: tuple[tuple[str, ...], ...] = ((), ("image",), ("html",))


class expected_output(nodes.Invisible, nodes.Element):  # noqa: N801  # docutils names its nodes so
    """Marks the place of an expected block; gone before anything is written."""


class ExpectOutput(CheckedDirective):
    """Holds the expected text; shows nothing."""

    option_spec = None  # the text may begin with a colon
    optional_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Leaves a marker for the check of the page."""
        words, text = self._words_and_text()
        for word in words:
            if word not in WORDS:
                known = "; ".join(f"`{name}`: {meaning}" for name, meaning in WORDS.items())
                self.fail(f"expect-output: unknown word {word!r}", f"It may be: {known}.")
        node = expected_output(want=text, words=words)
        self.set_source_info(node)
        self.env.temp_data.setdefault(_RUN, []).append((node.source, node.line))
        return [node]

    def _words_and_text(self) -> tuple[tuple[str, ...], str]:
        """What stands after the directive's name, and what stands below it."""
        if not isinstance(self.state, states.RSTState):
            return tuple(" ".join(self.arguments).split()), "\n".join(self.content)
        # docutils would take text without an empty line above it for an argument.
        return words_and_text(self.block_text)


def words_and_text(directive: str) -> tuple[tuple[str, ...], str]:
    """What stands after the name of a reStructuredText directive, and what stands below it."""
    head, *body = directive.split("\n")
    text = textwrap.dedent("\n".join(body)).strip("\n")
    return tuple(head.partition("::")[2].split()), text


def runs_of(app: Sphinx) -> list[tuple[str, int]]:
    """File and line of each block of the page that is being read."""
    found: list[tuple[str, int]] = app.env.temp_data.get(_RUN, [])
    return found


@dataclass(frozen=True)
class Marker:
    """An expected block of a page, with the element that stood before it."""

    source: str
    line: int
    want: str
    words: tuple[str, ...]
    before: nodes.Node | None


def take_markers(doctree: nodes.document) -> list[Marker]:
    """Takes the markers out of a page."""
    places = []
    for node in list(doctree.findall(expected_output)):
        siblings = node.parent.children
        before = [
            sibling
            for sibling in siblings[: siblings.index(node)]
            if not isinstance(sibling, nodes.comment | nodes.system_message)
        ]
        places.append((node, before[-1] if before else None))
    # Only now: a second block after one cell must find the first, not the cell.
    for node, _ in places:
        node.parent.remove(node)
    return [
        Marker(
            node.source or doctree["source"], node.line or 1, node["want"], node["words"], before
        )
        for node, before in places
    ]


def lost(app: Sphinx, markers: list[Marker]) -> list[Failure]:
    """The blocks that were parsed and then thrown away with what they stood in."""
    left = [(marker.source, marker.line) for marker in markers]
    found = []
    for source, line in runs_of(app):
        if (source, line) in left:
            left.remove((source, line))
        else:
            message = "expect-output: the block is not part of the page, so nothing is held to it"
            remedy = "Put it right after its cell, outside of what drops or repeats its content."
            found.append(Failure(source, line, message, remedy))
    return found


@dataclass
class Comparison:
    """What the blocks of a page amount to.

    Attributes:
        edits: The rewritings that would mend some of the failures.
        checked: The indices of the cells whose output a block can refute.
        words: The words of the block of each cell that has one, by the cell's index.
        blocks: Every block of the page.
    """

    failures: list[Failure] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)
    checked: set[int] = field(default_factory=set)
    words: dict[int, tuple[str, ...]] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)


def compare(
    app: Sphinx, cells: list[Cell], markers: list[Marker], not_run: set[int], required: bool
) -> Comparison:
    """Compares every expected block of a page with its cell.

    Args:
        app: The Sphinx application.
        cells: The cells of the page.
        markers: Its blocks.
        not_run: The indices of the cells that have not run.
        required: Whether each output that shows text must have a block.
    """
    by_node = {id(cell.node): cell for cell in cells if cell.node is not None}
    result = Comparison()
    for marker in markers:
        cell = by_node.get(id(marker.before))
        if cell is None:
            result.blocks.append(Block(marker.source, marker.line, None, compared=False))
            message = "expect-output: no code cell directly before it"
            remedy = "Put the block right after the cell whose output it holds; one block a cell."
            result.failures.append(Failure(marker.source, marker.line, message, remedy))
            continue
        result.words[cell.index] = marker.words
        ran = cell.index not in not_run and not _raised_unexpectedly(cell)
        result.blocks.append(Block(marker.source, marker.line, cell.index, compared=ran))
        if ran:
            _compare(app, cell, marker, result)  # else reported once, as what stopped it
    for cell in cells:
        if cell.index in not_run or cell.index in result.words:
            continue
        if _did_not_raise(cell):
            _demand_error(app, cell, result)
        elif required and not _raised_unexpectedly(cell):
            _require(app, cell, result)
    return result


def _raised_unexpectedly(cell: Cell) -> bool:
    return bool(cell.errors) and "raises-exception" not in cell.tags


def _did_not_raise(cell: Cell) -> bool:
    """Whether a cell is tagged raises-exception and has raised nothing."""
    return cell.ran and not cell.errors and "raises-exception" in cell.tags


def _compare(app: Sphinx, cell: Cell, marker: Marker, result: Comparison) -> None:
    """Holds one block against its cell."""
    want, words = marker.want, marker.words
    got = text_of(cell.shown, words)
    if "digest" not in words:
        got, want = without_digests(got), without_digests(want)
    vacuous = is_vacuous(want)
    if not vacuous:
        result.checked.add(cell.index)
        if agree(want, with_digests_of(want, got), exact="exact" in words):
            return
    varies = vacuous and want.strip() and "varies" in words
    if varies and got:
        return
    if vacuous and not varies:
        message = "expect-output: the block agrees with any output"
        if not want.strip():
            message = "expect-output: the block is empty"
        remedy = (
            "Write what the reader must see; `...` may stand for a part of it only, "
            "or for all where the directive says `varies`."
        )
        failure = Failure(marker.source, marker.line, message, remedy, cell.index)
    else:
        failure = _difference(app, cell, marker, want, got)
    result.failures.append(failure)
    if got:
        result.edits.append(_edit(cell, failure, marker.want, words))


def _require(app: Sphinx, cell: Cell, result: Comparison) -> None:
    """Demands a block of a cell that has none but shows text."""
    text = text_of(cell.shown)
    if not text:
        return
    message = f"text output without an expect-output block\n{text}"
    remedy = (
        "Put an expect-output block after the cell, "
        f"or run `{app.config.verified_book_accept_command}`."
    )
    failure = Failure(cell.source, cell.line, message, remedy, cell.index)
    result.failures.append(failure)
    result.edits.append(_edit(cell, failure, None, ()))


def _demand_error(app: Sphinx, cell: Cell, result: Comparison) -> None:
    """Demands an error of a cell that is tagged so and has no block that says otherwise."""
    message = "the cell is tagged raises-exception, but raised nothing"
    remedy = "Mend the cell, or remove the tag."
    words = [found for found in _TO_SAY if text_of(cell.shown, found)]
    if words:
        command = app.config.verified_book_accept_command
        remedy += f" Or let a block say what it shows instead: `{command}` writes it."
    failure = Failure(cell.source, cell.line, message, remedy, cell.index, True)
    result.failures.append(failure)
    if words:
        result.edits.append(_edit(cell, failure, None, words[0], adds=words[0]))


def _edit(
    cell: Cell,
    failure: Failure,
    old: str | None,
    words: tuple[str, ...],
    adds: tuple[str, ...] = (),
) -> Edit:
    """The edit that mends a failure at the place of it."""
    new, got = pattern_of(cell.shown, words, escape), text_of(cell.shown, words)
    if "digest" not in words:
        new, got = without_digests(new), without_digests(got)
    return Edit(
        source=failure.source,
        line=failure.line,
        cell=cell.index,
        cell_line=cell.line,
        code=cell.code,
        old=old,
        new=new,
        got=got,
        words=words,
        adds=adds,
        displayed=displayed_in(cell.shown),
        mends=failure,
    )


def _difference(app: Sphinx, cell: Cell, marker: Marker, want: str, got: str) -> Failure:
    place = (marker.source, marker.line)
    if not got:
        message = f"expected output, but the cell printed nothing; expected:\n{want}"
        unasked = sorted({piece.kind for piece in cell.shown} - REQUIRED & set(WORDS))
        remedy = "Mend the cell, or remove the block."
        if unasked:
            remedy += f" What it shows is checked where the block says so: {', '.join(unasked)}."
        return Failure(*place, message, remedy, cell.index, True, expected=want, executed="")
    wanted, printed = want.split("\n"), got.split("\n")
    if len(wanted) == len(printed):  # lines that agree are no difference, however they are written
        printed = [w if agree(w, g) else g for w, g in zip(wanted, printed, strict=True)]
    diff = list(difflib.unified_diff(wanted, printed, "expected", "executed", lineterm=""))
    by_line = bool(diff)
    if not by_line:  # they agree line by line, but not as a whole
        diff = list(difflib.unified_diff(wanted, got.split("\n"), "expected", "executed"))
    message = "\n".join(["the output differs from the expected one", *map(str.rstrip, diff)])
    command = app.config.verified_book_accept_command
    remedy = f"Mend the code; or run `{command}` and review the change with `git diff`."
    executed = "\n".join(printed) if by_line else got
    return Failure(*place, message, remedy, cell.index, True, expected=want, executed=executed)


def setup(app: Sphinx) -> None:
    """Registers the directive."""
    app.add_node(expected_output)
    app.add_directive("expect-output", ExpectOutput)
