"""Pages put together by chance: blocks are written into them, and nothing else changes."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.verified_book.accepting.edits import FRONT_MATTER, accepted, language_of
from tests.verified_book.accepting.test_markdown_spans import NOT_BLOCKS
from tests.verified_book.accepting.test_rst_spans import NESTED, NOT_DIRECTIVES, NOT_FOUND
from verified_book.matching import escape, is_vacuous


@dataclass(frozen=True)
class Cell:
    """A cell with or without a block, and what it prints now, if that is to be accepted.

    Attributes:
        style: Decides how it is written.
    """

    has_block: bool
    output: str | None
    style: int


ALPHABET = "ab1.:-+*`~|#_ \\{}[]<>=%'\"é\u4e2d"
lines = st.one_of(
    st.sampled_from(
        [
            *["", "```", ":::", "---", "+++", ".. x::", "   in", "...", "a:", "1. b", "> c"],
            *["=====", "  a", ":x: y", "{expect-output}", "```python", ".. code-cell::"],
            *["% no comment", "|---|"],
        ]
    ),
    st.text(ALPHABET, max_size=12),
)
outputs = (
    st.lists(lines, min_size=1, max_size=5)
    .map(lambda text: "\n".join(["x" + text[0], *text[1:]]).strip())
    .filter(lambda text: not is_vacuous(escape(text)))
)
cells = st.builds(Cell, st.booleans(), st.none() | outputs, st.integers(0, 100))
PROSE = ["Text\nmore text", "Text::\n\n    literal", "- a\n- b", "* * *", "Text[^1]\n\n[^1]: note"]


def pages(noise: list[str]) -> st.SearchStrategy[list[Cell | str]]:
    return st.lists(cells | st.sampled_from(noise), min_size=1, max_size=7)


def markdown_cell(cell: Cell, new: bool) -> str:
    fence = ["```", "~~~", "`````"][cell.style % 3]
    indent = " " * (cell.style % 4)
    text = f"{indent}{fence}{{code-cell}} ipython3\n{indent}{cell.style}\n{indent}{fence}"
    output = stored(cell.output) if new else None
    if not cell.has_block and output is None:
        return text
    indent = " " * (cell.style % 3) if cell.has_block else ""
    fence = ["```", ":::", "~~~~"][cell.style % 3] if cell.has_block else fence[0] * 3
    body = "old" if output is None else output
    mark = fence[0]
    if cell.has_block:
        runs = [len(re.match(rf"\s*({mark}*)", line)[1]) for line in body.split("\n")]
    else:
        runs = [len(run) for run in re.findall(f"{mark}{{3,}}", body)]
    fence = mark * max([len(fence), *(run + 1 for run in runs)])
    body = "\n".join(indent + line if line else "" for line in body.split("\n"))
    between = "\n" * (cell.style % 4) if cell.has_block else "\n"
    return f"{text}\n{between}{indent}{fence}{{expect-output}}\n{body}\n{indent}{fence}"


def rst_cell(cell: Cell, new: bool) -> str:
    head, indent, inner = list(NESTED.values())[cell.style % len(NESTED)]
    text = f"{head}{indent}.. code-cell::\n\n{inner}{cell.style}"
    output = stored(cell.output) if new else None
    if not cell.has_block and output is None:
        return text
    body = "old" if output is None else output
    body = "\n".join(inner + line if line else "" for line in body.split("\n"))
    between = "\n" * (1 + cell.style % 3) if cell.has_block else "\n"
    return f"{text}\n{between}{indent}.. expect-output::\n\n{body}"


def stored(output: str | None) -> str | None:
    """The lines of an output as a block has them."""
    if output is None:
        return None
    return "\n".join(line.rstrip() for line in escape(output).split("\n"))


def check(
    parts: list[Cell | str],
    written: Callable[[Cell, bool], str],
    suffix: str,
    newline: str,
    end: str,
) -> None:
    """Accepts some outputs of a page, and compares it with one that was written so at once."""

    def page(new: bool) -> str:
        text = [part if isinstance(part, str) else written(part, new) for part in parts]
        front = FRONT_MATTER if suffix == ".md" else ""
        return (front + "\n\nThen\n\n".join(text) + end).replace("\n", newline)

    language, before = language_of(suffix), page(new=False)
    asked: dict[int, str] = {}
    spans = iter(enumerate(language.spans(before)))
    for part in parts:
        if isinstance(part, str):
            continue
        index, _ = next(
            (i, span) for i, span in spans if span.kind == "cell" and span.body == str(part.style)
        )
        if part.has_block:
            index, _ = next(spans)
        if part.output is not None:
            asked[index] = part.output
    after = accepted(before, language, asked)
    assert after == page(new=True)
    kept = [s.body for s in language.spans(after) if s.kind == "cell"]
    assert kept == [s.body for s in language.spans(before) if s.kind == "cell"]


FEW = settings(
    max_examples=30, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
newlines, ends = st.sampled_from(["\n", "\r\n", "\r"]), st.sampled_from(["", "\n", "\n\n\n"])


@FEW
@given(pages([*NOT_BLOCKS.values(), *PROSE, "+++", "(label)=", "## Title"]), newlines, ends)
def test_markdown(parts: list[Cell | str], newline: str, end: str):
    check(parts, markdown_cell, ".md", newline, end)


@FEW
@given(
    pages([*NOT_DIRECTIVES.values(), *NOT_FOUND.values(), *PROSE, ".. x::", ".. _label:"]),
    newlines,
    ends,
)
def test_rst(parts: list[Cell | str], newline: str, end: str):
    check(parts, rst_cell, ".rst", newline, end)
