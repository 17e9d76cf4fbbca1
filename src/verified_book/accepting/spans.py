"""Where the directives of a page stand in its own text."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from verified_book.outputs.source import ODD_BREAKS

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_ENDING = re.compile(r"[\r\n]+\Z")


class Refusal(Exception):  # noqa: N818  # it is no error of the program
    """A reason why nothing is written, and what an author can do about it."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy


BY_HAND = "Write the block by hand."


@dataclass(frozen=True)
class Span:
    """A directive in the text of a page; lines count from 0.

    Attributes:
        start: Its first line.
        end: The line after its last one, which is a closing fence or has text.
        body: What its parser makes of its content.
        body_start: The first line of the body; that of the whole content if the body is empty.
        body_end: The line after the last one of the body; the body has as many lines.
        indent: What stands before a directive next to it.
        inner: What stands before the lines of its body, to be taken off by the parser.
        fence: The characters that open it, in Markdown.
        block: The index of the block that belongs to it, if it is a cell and has one.
        hindrance: Why nothing can be written here, if so.
    """

    kind: Literal["cell", "block"]
    start: int
    end: int
    body: str
    body_start: int
    body_end: int
    indent: str = ""
    inner: str = ""
    fence: str = ""
    block: int | None = None
    hindrance: str = ""


def split(text: str) -> list[str]:
    r"""The lines of a page with their endings, which may be of all three kinds.

    Examples:
        >>> split("a\r\n\rb")
        ['a\r\n', '\r', 'b']
    """
    return _LINE.findall(text)


def parsed(text: str) -> str:
    """A page as parsers get it, with line breaks of one kind."""
    if odd := ODD_BREAKS.search(text):
        raise Refusal(
            f"the page has a character U+{ord(odd[0]):04X}, and tools disagree whether it ends a "
            "line",
            "Take it out, or write it as an escape.",
        )
    return re.sub("\r\n?", "\n", text)


def ending(line: str) -> str:
    """The line break at the end of a line, if any."""
    found = _ENDING.search(line)
    return found[0] if found else ""


def newline_at(lines: Sequence[str], index: int) -> str:
    """The line break that is usual at a place of a page."""
    return next((found for line in reversed(lines[: index + 1]) if (found := ending(line))), "\n")


def body_lines(lines: Sequence[str], block: Span, body: Sequence[int | str]) -> list[str]:
    """The lines of a block's new body: old ones as they are, new ones indented as they are."""
    newline = newline_at(lines, block.start)
    return [
        lines[block.body_start + line]
        if isinstance(line, int)
        else (block.inner + line if line else "") + newline
        for line in body
    ]


def with_words(head: str, words: Sequence[str]) -> str:
    r"""The first line of a directive with further words after its name.

    Examples:
        >>> with_words(".. expect-output::\n", ["image"])
        '.. expect-output:: image\n'
    """
    if not words:
        return head
    return " ".join([head.rstrip(), *words]) + ending(head)
