"""The changes of one page: where they go, what they write, and that they write nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from verified_book.accepting.markdown_spans import Markdown
from verified_book.accepting.merge import joined, merge
from verified_book.accepting.rst_spans import Rst
from verified_book.accepting.spans import (
    BY_HAND,
    Refusal,
    Span,
    ending,
    newline_at,
    split,
)
from verified_book.matching import agree, is_vacuous
from verified_book.outputs.images import with_digests_of
from verified_book.records import Edit

Language = Markdown | Rst
"""What a page can be written in."""


@dataclass(frozen=True)
class Change:
    """A block to be written.

    Attributes:
        body: The lines of the block; indices are those of old lines that stay.
        reads: What the block must read as once it is written.
        adds: Words to stand after the name of the directive, beside those that do.
    """

    body: Sequence[int | str]
    reads: str
    adds: tuple[str, ...] = ()

    @property
    def new_lines(self) -> list[str]:
        """The lines that the author has not seen."""
        return [line for line in self.body if isinstance(line, str)]


def locate(edit: Edit, lines: Sequence[str], spans: Sequence[Span], language: Language) -> int:
    """The index of what an edit is about: its block, or a cell that has none."""
    index = _at_line(edit, spans) if language.lines_are_sure else _of_cell(edit, spans)
    span = spans[index]
    if span.hindrance:
        raise Refusal(span.hindrance, BY_HAND)
    below = next((other for other in spans[index + 1 :] if other.start >= span.end), None)
    if edit.old is None and below is not None and below.kind == "block":
        if not any(line.strip() for line in lines[span.end : below.start]):
            raise Refusal("a block that is not held to the cell follows it", BY_HAND)
    return index


def _at_line(edit: Edit, spans: Sequence[Span]) -> int:
    kind, body = ("cell", edit.code) if edit.old is None else ("block", edit.old)
    for index, span in enumerate(spans):
        if (span.start, span.kind, span.body) == (edit.line - 1, kind, body):
            return index
    raise Refusal(f"no {kind} that reads as it was parsed stands there", BY_HAND)


def _of_cell(edit: Edit, spans: Sequence[Span]) -> int:
    cells = [
        index
        for index, span in enumerate(spans)
        if span.kind == "cell" and span.start == edit.cell_line - 1 and span.body == edit.code
    ]
    if len(cells) != 1:
        raise Refusal("the cell does not stand there as it was parsed", BY_HAND)
    block = spans[cells[0]].block
    if edit.old is None:
        if block is not None:
            raise Refusal("a block that is not held to the cell follows it", BY_HAND)
        return cells[0]
    if block is None or spans[block].body != edit.old:
        raise Refusal("the block does not follow its cell as it was parsed", BY_HAND)
    return block


def change_for(edit: Edit, language: Language) -> Change:
    """The change that carries out an edit of one block."""
    exact = "exact" in edit.words
    # Blanks at the end of a line do not count, and editors take them away.
    new = "\n".join(line.rstrip() for line in edit.new.split("\n")).strip("\n")
    body: list[int | str] = [*new.split("\n")]
    if edit.old is not None:
        body = merge(edit.old, new, with_digests_of(edit.old, edit.got), exact)
    reads = language.stored(joined(body, edit.old or ""))
    if not reads.strip():
        reason = "what two runs print has nothing in common"
        raise Refusal(reason, "Let the cell print what stays the same.")
    if is_vacuous(reads) and "varies" not in edit.words:
        raise Refusal("the block would agree with any output", BY_HAND)
    if not agree(reads, with_digests_of(reads, edit.got), exact=exact):
        reason = "a block cannot hold this output: its white space, or what stands for it"
        raise Refusal(reason, BY_HAND)
    return Change(body, reads, edit.adds)


def moves(
    spans: Sequence[Span], changes: Mapping[int, Change], found: Sequence[Span]
) -> list[tuple[int, int]]:
    """By how many lines changes have moved what stands below a line of the old page, from 1.

    Args:
        spans: The spans of the old page.
        changes: What was written.
        found: The spans of the new page.
    """
    moved, new = [], iter(found)
    for index, span in enumerate(spans):
        now = next(new)
        if index in changes and span.kind == "block":
            moved.append((span.end, now.end - now.start - (span.end - span.start)))
        elif index in changes:
            moved.append((span.end, next(new).end - now.end))
    return moved


def apply(
    text: str, spans: Sequence[Span], changes: Mapping[int, Change], language: Language
) -> str:
    """The page with the changes; refused if it would not read as it did, but for them."""
    lines = split(text)
    for index, change in sorted(changes.items(), reverse=True):
        span = spans[index]
        if span.kind == "block":
            lines[span.start : span.end] = language.with_body(lines, span, change.body, change.adds)
        else:
            block = language.new_block(lines, span, change.new_lines, change.adds)
            last = lines[span.end - 1]
            if not ending(last):  # the page ends here, and goes on to end without one
                lines[span.end - 1] = last + newline_at(lines, span.end - 1)
                block[-1] = block[-1][: -len(ending(block[-1]))]
            lines[span.end : span.end] = block
    new = "".join(lines)
    _check(text, spans, changes, new, language)
    return new


def _check(
    old: str, spans: Sequence[Span], changes: Mapping[int, Change], new: str, language: Language
) -> None:
    """Holds a new page against the old one, by the parser of their language."""
    expected = []
    for index, span in enumerate(spans):
        change = changes.get(index)
        if change is None or span.kind == "cell":
            expected.append((span.kind, span.body))
        if change is not None:
            expected.append(("block", change.reads))
    reads_so = [(span.kind, span.body) for span in language.spans(new)] == expected
    if not reads_so or language.skeleton(old) != language.skeleton(new):
        raise Refusal("the page would read as another one", BY_HAND)
