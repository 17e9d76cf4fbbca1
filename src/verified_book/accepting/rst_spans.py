"""Cells and expected blocks of a reStructuredText page, as docutils' own parser finds them.

What other directives mean is not known here: whatever stands in one is parsed, as those do that
may hold cells. Of what is found, only that counts which stands where the build has met it.
"""

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from textwrap import dedent
from typing import Any, ClassVar

from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Directive, Parser, directives, roles
from docutils.utils import new_document

from verified_book.accepting.spans import (
    Span,
    body_lines,
    ending,
    newline_at,
    parsed,
    split,
    with_words,
)
from verified_book.outputs.expected import ExpectOutput, words_and_text
from verified_book.outputs.rst_cells import CodeCell

_TAB = 8  # as docutils counts
_IN_LIST = re.compile(r"(?:[-*+\u2022\u2023\u2043]|\(?(?:\w{1,5}|#)[.)]|\s)*")
_NAMES = ("code-cell", "expect-output")


class _met(nodes.Element):  # noqa: N801  # docutils names its nodes so
    """A directive that was met."""


class _AnyDirective(Directive):
    """Takes all below its name for its content."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        _, line = self.state_machine.get_source_and_line(self.lineno)
        node = _met(name=self.name)
        node.line = line
        if self.name in _NAMES:
            node["text"], node["code"] = self.block_text.rstrip(), "\n".join(self.content)
        else:
            self.state.nested_parse(self.content, self.content_offset, node)
        return [node]


class _Cell(_AnyDirective):
    optional_arguments = CodeCell.optional_arguments
    final_argument_whitespace = CodeCell.final_argument_whitespace
    option_spec = CodeCell.option_spec


class _Block(_AnyDirective):
    optional_arguments = ExpectOutput.optional_arguments
    final_argument_whitespace = ExpectOutput.final_argument_whitespace
    option_spec = ExpectOutput.option_spec


def _any_role(
    name: str, rawtext: str, text: str, *args: Any, **kwargs: Any
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    return [nodes.inline(rawtext, text, role=name)], []


@contextmanager
def _every_name_known() -> Iterator[None]:
    """Lets docutils take every directive and every role for one that it knows."""
    classes: dict[str, type[Directive]] = {"code-cell": _Cell, "expect-output": _Block}

    def directive(name: str, *args: Any) -> tuple[type[Directive], list[nodes.system_message]]:
        return classes.get(name, _AnyDirective), []

    def role(*args: Any) -> tuple[Any, list[nodes.system_message]]:
        return _any_role, []

    replaced: Any = ((directives, "directive", directive), (roles, "role", role))
    known = [getattr(module, name) for module, name, _ in replaced]
    try:
        for module, name, ours in replaced:
            setattr(module, name, ours)  # as Sphinx does while it reads
        yield
    finally:
        for (module, name, _), theirs in zip(replaced, known, strict=True):
            setattr(module, name, theirs)


def _parse(text: str) -> nodes.document:
    settings = get_default_settings(Parser)
    settings.report_level = settings.halt_level = 5
    settings.warning_stream = io.StringIO()
    settings.line_length_limit = len(text) + 1
    document = new_document("page", settings)
    with _every_name_known():
        Parser().parse(text, document)
    return document


@dataclass(frozen=True)
class Rst:
    """The language of pages that docutils reads."""

    lines_are_sure: ClassVar = True  # docutils names those of all directives

    def spans(self, text: str) -> list[Span]:
        """The cells and the blocks of a page, whatever they stand in."""
        plain, lines = parsed(text), split(text)
        met = [node for node in _parse(plain).findall(_met) if node["name"] in _NAMES]
        found = [span for node in met if (span := _span(node, lines)) is not None]
        return sorted(found, key=lambda span: span.start)

    def skeleton(self, text: str) -> object:
        """The page without its blocks, as docutils shows it."""
        document = _parse(parsed(text))
        for node in list(document.findall(_met)):
            if node["name"] == "expect-output":
                node.parent.remove(node)
        for message in document.findall(nodes.system_message):
            message.attributes.pop("line", None)
        return document.pformat()

    def stored(self, body: str) -> str:
        """What docutils makes of a body: without what all its lines are indented by."""
        return dedent("\n".join(line.rstrip() for line in body.split("\n")))

    def new_block(
        self, lines: Sequence[str], cell: Span, body: Sequence[str], words: Sequence[str]
    ) -> list[str]:
        """A block that is indented as the cell is."""
        newline = newline_at(lines, cell.end - 1)
        inner = cell.inner
        if len(inner.expandtabs(_TAB)) > len(cell.indent.expandtabs(_TAB)) + _TAB:
            inner = f"{cell.indent}   "
        text = [f"{inner}{line}{newline}" if line else newline for line in body]
        head = with_words(f"{cell.indent}.. expect-output::{newline}", words)
        return [newline, head, newline, *text]

    def with_body(
        self, lines: Sequence[str], block: Span, body: Sequence[int | str], adds: Sequence[str]
    ) -> list[str]:
        """A block below the line that it has."""
        newline = newline_at(lines, block.start)
        text = [line if ending(line) else line + newline for line in body_lines(lines, block, body)]
        head = lines[block.start]
        head = head if ending(head) else head + newline
        above = lines[block.start + 1 : block.body_start] if block.body else []
        written = [with_words(head, adds), *(above or [newline]), *text]
        last = lines[block.end - 1]
        written[-1] = written[-1][: -len(ending(written[-1]))] + ending(last)
        return written


def _span(node: nodes.Element, lines: Sequence[str]) -> Span | None:
    """A directive where it stands in the file; None where the file does not read so."""
    start, text = (node.line or 0) - 1, node["text"].split("\n")
    if not 0 <= start <= len(lines) - len(text):
        return None
    raw = [line.expandtabs(_TAB).rstrip() for line in lines[start : start + len(text)]]
    margins = {len(r) - len(t) for r, t in zip(raw[1:], text[1:], strict=True) if t}
    in_table = any(isinstance(parent, nodes.entry) for parent in _parents(node))
    column = len(raw[0]) - len(text[0])
    margin = min(margins, default=column)
    stands = raw[0].endswith(text[0]) and all(
        r == " " * margin + t if t else not r for r, t in zip(raw[1:], text[1:], strict=True)
    )
    before = raw[0][:column]
    # Without a body, only what stands alone or in a list shows where its neighbors begin.
    clear = bool(margins) or _IN_LIST.fullmatch(before)
    hindrance = ""
    if in_table:
        hindrance = "it stands in a table that is drawn with characters"
    elif not stands or not clear:
        hindrance = "it stands in something that shows only a part of each line"
    first = start + next((i for i, line in enumerate(text) if i and line), 1)
    body = words_and_text("\n".join(text))[1]
    end = first + (len(body.split("\n")) if body else 0)
    indent = _leading(lines[start])
    if before.strip() or len(indent.expandtabs(_TAB)) != margin:
        indent = " " * margin
    is_cell = node["name"] == "code-cell"
    return Span(
        "cell" if is_cell else "block",
        start,
        start + len(text),
        node["code"] if is_cell else body,
        first,
        end,
        indent,
        _inner(lines[first:end]) or f"{indent}   ",
        hindrance=hindrance,
    )


def _parents(node: nodes.Node) -> Iterator[nodes.Node]:
    while node.parent is not None:
        node = node.parent
        yield node


def _leading(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _inner(body: Sequence[str]) -> str:
    """The blanks or tabs that all lines of a body begin with."""
    leading = [_leading(line) for line in body if line.strip()]
    return min(leading, key=lambda blanks: len(blanks.expandtabs(_TAB)), default="")
