"""What a reader sees below a cell, piece by piece, as text that a block can be held against."""

import base64
import re
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from myst_nb.core.utils import coalesce_streams
from nbformat import NotebookNode

from verified_book.outputs.images import described
from verified_book.outputs.visible_html import visible_text

_ANSI = re.compile(r"\x1b\[[0-9;:]*[A-Za-z]")
_LINE_BREAK = re.compile("\r\n|[\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]")
# What a source file cannot hold as it is: the control characters but line break and tab, and
# halves of surrogate pairs. Their pictures stand for them.
_UNWRITABLE = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"}
_UNWRITABLE |= {0x7F: 0x2421} | dict.fromkeys(range(0xD800, 0xE000), 0xFFFD)

REQUIRED = frozenset({"text", "traceback", "table", "latex", "markdown"})
"""The kinds of output that need a block."""

WORDS = {
    "exact": "white space is compared as well",
    "image": "the type and the size of images are compared too",
    "digest": "what images look like is compared too",
    "html": "the words of HTML that is no table are compared too",
    "stderr": "what the cell wrote to stderr is compared too, below what it printed",
    "varies": "the block may agree with any output, which counts as not checked",
}
"""What may stand after the name of an `expect-output` directive."""

_ASKED_FOR = {"image": {"image", "digest"}, "html": {"html"}, "stderr": {"stderr"}}


@dataclass(frozen=True)
class Piece:
    """One output of a cell.

    Attributes:
        kind: "text", "traceback", "table", "latex", "markdown", "html", "image", "stderr" or
            "other".
        text: What a block is held against.
        pattern: The same as a block should have it, if not as it is: evidence of ours has one.
        displayed: Whether the text is a value's, as the kernel lays it out for display.
    """

    kind: str
    text: str
    pattern: str | None = None
    displayed: bool = field(default=False, compare=False)

    def takes_part(self, words: Iterable[str]) -> bool:
        """Whether a block with these words is held against it."""
        return self.kind in REQUIRED or bool(_ASKED_FOR.get(self.kind, set()) & set(words))


@dataclass(frozen=True)
class Look:
    """How MyST-NB shows the outputs of a cell.

    Attributes:
        mime_priority: The types of output, the preferred one first.
        merge_streams: Whether all that a cell prints stands in one box.
        removed: What is left out: "outputs", "stdout", "stderr".
    """

    mime_priority: tuple[str, ...]
    merge_streams: bool
    removed: frozenset[str]


def pieces(outputs: list[NotebookNode], look: Look) -> list[Piece]:
    """The outputs of a cell that the page shows."""
    if "outputs" in look.removed:
        return []
    shown = deepcopy(outputs)
    if look.merge_streams:
        shown = coalesce_streams(shown)
    found = [_piece(output, look) for output in shown]
    return [piece for piece in found if piece is not None and piece.text.strip()]


def text_of(found: Iterable[Piece], words: Iterable[str] = ()) -> str:
    """The text that a block with these words is held against."""
    return "\n".join(piece.text for piece in found if piece.takes_part(words))


def pattern_of(found: Iterable[Piece], words: Iterable[str], escape: Any) -> str:
    """The same as a block should have it; `escape` makes a text stand for itself."""
    return "\n".join(
        escape(piece.text) if piece.pattern is None else piece.pattern
        for piece in found
        if piece.takes_part(words)
    )


def displayed_in(found: Iterable[Piece]) -> tuple[str, ...]:
    """The texts of values that are displayed, but for those of which a line is printed as well."""
    found = list(found)
    printed = {line for each in found if not each.displayed for line in each.text.split("\n")}
    texts = (each.text for each in found if each.displayed)
    return tuple(text for text in texts if printed.isdisjoint(text.split("\n")))


def _piece(output: NotebookNode, look: Look) -> Piece | None:
    kind = output["output_type"]
    if kind == "stream":
        if output["name"] in look.removed:
            return None
        return Piece("text" if output["name"] == "stdout" else "stderr", plain(output["text"]))
    if kind == "error":
        return Piece("traceback", _end_of_traceback(output))
    if kind not in ("display_data", "execute_result"):
        return None
    data = output["data"]
    mime = next((name for name in look.mime_priority if name in data), None)
    if mime is None:
        return Piece("other", ", ".join(data)) if data else None
    return _of_type(mime, data[mime], evidence_of(output).get("pattern"))


def _end_of_traceback(output: NotebookNode) -> str:
    """The error's name and message, as the reader sees them."""
    said = plain(f"{output['ename']}: {output['evalue']}").rstrip()
    shown = plain("\n".join(output["traceback"]))
    if not shown or said in shown or "Exception Group Traceback" in shown:
        return said  # a group's traceback has marks before each line, and ends with its parts
    # The message of a syntax error names a file that its traceback does not show.
    return shown.split("\n")[-1]


def evidence_of(output: NotebookNode) -> dict[str, Any]:
    """The evidence that an output carries in its metadata; empty if it is none of ours."""
    found = output.get("metadata", {}).get("evidence")
    return found if isinstance(found, dict) else {}


def _of_type(mime: str, data: Any, pattern: str | None) -> Piece:
    if mime == "text/plain":
        return Piece("text", plain(data), pattern, displayed=True)
    if mime == "text/latex":
        return Piece("latex", plain(data))
    if mime == "text/markdown":
        return Piece("markdown", plain(data))
    if mime == "text/html":
        text, has_table = visible_text(data)
        return Piece("table" if has_table and text else "html", plain(text) or mime)
    if mime.startswith("image/"):
        return Piece("image", described(mime, _bytes(mime, data)))
    return Piece("other", mime)


def _bytes(mime: str, data: str) -> bytes:
    return data.encode() if mime == "image/svg+xml" else base64.b64decode(data)


def plain(text: str) -> str:
    r"""Text as a source file can hold it.

    Without terminal colors and blank lines around it, with line breaks of one kind, tabs as blanks.

    Examples:
        >>> plain("\x1b[31mred\x1b[0m\tend\r\n")
        'red     end'
    """
    text = _LINE_BREAK.sub("\n", _ANSI.sub("", text)).translate(_UNWRITABLE)
    lines = [line.expandtabs(8) for line in text.split("\n")]
    while lines and not lines[-1].strip():
        lines.pop()
    while lines and not lines[0].strip():
        lines.pop(0)
    return "\n".join(lines)
