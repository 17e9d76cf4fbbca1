"""Cells and expected blocks of a MyST Markdown page, as MyST's own parser finds them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from myst_nb.core.read import read_myst_markdown_notebook
from myst_parser.config.main import MdParserConfig, merge_file_level
from myst_parser.parsers.directives import parse_directive_text
from myst_parser.parsers.mdit import create_md_parser

from verified_book.accepting.spans import (
    BY_HAND,
    Refusal,
    Span,
    body_lines,
    newline_at,
    parsed,
    with_words,
)
from verified_book.outputs.expected import ExpectOutput

_NAME = "expect-output"
# What may stand between a cell and its block, since the page shows nothing of it.
_PASSED_OVER = {"myst_line_comment", "myst_block_break"}
_COMMENT = re.compile(r"\s*<!--(?:(?!-->).)*-->\s*", re.DOTALL)


@dataclass(frozen=True)
class Markdown:
    """The language of pages that MyST-NB reads.

    Attributes:
        config: The settings by which MyST-NB finds the cells.
        page_config: The same with those of the page's front matter, by which it reads the rest.
        path: The page, next to which cells find the files that they load.
    """

    config: MdParserConfig
    page_config: MdParserConfig
    path: Path | None = None
    lines_are_sure: ClassVar = False  # but those of cells, which their blocks follow

    @classmethod
    def of_page(cls, text: str, config: MdParserConfig, path: Path | None = None) -> Self:
        """The language of a page, which may set some of it itself."""
        metadata = read_myst_markdown_notebook(parsed(text), config, path=path).metadata
        return cls(config, merge_file_level(config, metadata, lambda *_: None), path)

    def spans(self, text: str) -> list[Span]:
        """The cells and the blocks at the top level of a page, where MyST-NB runs cells."""
        text = parsed(text)
        lines = text.split("\n")
        cells = self._cells(text, lines)
        starts = [*(cell.start for cell in cells), len(lines)]
        found, _ = self._blocks(lines, 0, starts[0])
        for cell, below in zip(cells, starts[1:], strict=True):
            blocks, follows = self._blocks(lines, cell.end, below)
            found += [replace(cell, block=len(found) + 1 if follows else None), *blocks]
        return found

    def skeleton(self, text: str) -> object:
        """The tokens of a page without its blocks."""
        return [
            (t.type, t.tag, t.nesting, t.level, t.markup, t.info, t.content)
            for t in self._parsers[1].parse(parsed(text) + "\n")
            if not self._names(t)
        ]

    def stored(self, body: str) -> str:
        """What MyST makes of a body that begins with text."""
        return body

    def new_block(
        self, lines: Sequence[str], cell: Span, body: Sequence[str], words: Sequence[str]
    ) -> list[str]:
        """A block with the kind of fence that the cell has."""
        newline = newline_at(lines, cell.end - 1)
        mark = cell.fence[0]
        runs = [len(run) + 1 for line in body for run in re.findall(f"{mark}{{3,}}", line)]
        fence = mark * max([3, *runs])
        text = [line + newline for line in body]
        head = with_words(f"{fence}{{{_NAME}}}{newline}", words)
        return [newline, head, *text, fence + newline]

    def with_body(
        self, lines: Sequence[str], block: Span, body: Sequence[int | str], adds: Sequence[str]
    ) -> list[str]:
        """A block in the fence that it has, made longer where the text asks for it."""
        text = body_lines(lines, block, body)
        mark = block.fence[0]
        bare = [line.lstrip() for line in text]
        runs = [len(line) - len(line.lstrip(mark)) + 1 for line in bare]
        fence = mark * max([len(block.fence), *runs])
        head, foot = lines[block.start], lines[block.end - 1]
        if fence != block.fence:
            head = head.replace(block.fence, fence, 1)
            foot = re.sub(rf"^\s*{mark}+", block.inner + fence, foot)
        above = lines[block.start + 1 : block.body_start] if block.body else []
        return [with_words(head, adds), *above, *text, foot]

    @cached_property
    def _parsers(self) -> list[MarkdownIt]:
        """What finds the cells, and what reads the rest; neither looks into paragraphs."""
        renderer: Any = RendererHTML
        return [
            create_md_parser(
                replace(config, disable_syntax=[*config.disable_syntax, "inline"]), renderer
            )
            for config in (self.config, self.page_config)
        ]

    def _cells(self, text: str, lines: list[str]) -> list[Span]:
        """The cells of a page."""
        notebook = read_myst_markdown_notebook(text, self.config, path=self.path)
        fences = [token for token in _top_level(self._parsers[0], text) if _is_cell(token)]
        codes = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
        if len(fences) != len(codes):
            raise Refusal("MyST-NB finds other cells in it", BY_HAND)
        return [_cell(token, lines, code) for token, code in zip(fences, codes, strict=True)]

    def _blocks(self, lines: list[str], start: int, end: int) -> tuple[list[Span], bool]:
        """The blocks between two lines, and whether the first comes before all else."""
        found, follows, all_passed_over = [], False, True
        for token in _top_level(self._parsers[1], "\n".join(lines[start:end])):
            if self._names(token):
                follows = follows or all_passed_over
                found.append(_block(token, lines, start))
            all_passed_over = all_passed_over and _is_passed_over(token)
        return found, follows

    def _names(self, token: Token) -> bool:
        """Whether it is the fence of a block."""
        name = token.info.split()[:1]
        if token.type == "fence" and _NAME in self.page_config.fence_as_directive:
            return name in ([_NAME], [f"{{{_NAME}}}"])
        return token.type in ("fence", "colon_fence") and name == [f"{{{_NAME}}}"]


def _top_level(parser: MarkdownIt, text: str) -> list[Token]:
    found, level = [], 0
    for token in parser.parse(text + "\n"):
        level += token.nesting
        if level == 0 and token.type != "front_matter":
            found.append(token)
    return found


def _is_cell(token: Token) -> bool:
    return token.type == "fence" and token.info.startswith("{code-cell}")


def _cell(token: Token, lines: list[str], code: str) -> Span:
    start, end = token.map or [0, 0]
    hindrance = "" if _is_closed(token, lines, 0) else "the fence of the cell is not closed"
    return Span(
        "cell", start, end, code, start + 1, end - 1, fence=token.markup, hindrance=hindrance
    )


def _block(token: Token, lines: list[str], offset: int) -> Span:
    start, end = (offset + line for line in token.map or [0, 0])
    content = token.content.splitlines()
    body = parse_directive_text(ExpectOutput, "", token.content).body
    # MyST takes away an empty first line.
    first = start + 1 + (len(content) - len(body) if body else 0)
    head = lines[start]
    return Span(
        "block",
        start,
        end,
        "\n".join(body),
        first,
        first + len(body),
        inner=head[: len(head) - len(head.lstrip())],
        fence=token.markup,
        hindrance=""
        if _is_closed(token, lines, offset)
        else "the fence of the block is not closed",
    )


def _is_passed_over(token: Token) -> bool:
    return token.type in _PASSED_OVER or (
        token.type == "html_block" and _COMMENT.fullmatch(token.content) is not None
    )


def _is_closed(token: Token, lines: list[str], offset: int) -> bool:
    """Whether the last line of a fence closes it; at the end of a page none need be there."""
    start, end = token.map or [0, 0]
    closing = rf" {{0,3}}{token.markup[0]}{{{len(token.markup)},}}[ \t]*"
    return end - start >= 2 and re.fullmatch(closing, lines[offset + end - 1]) is not None
