"""Edits of the text of a page, without a build."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from myst_parser.config.main import MdParserConfig

from verified_book.accepting.changes import Language, apply, change_for, locate
from verified_book.accepting.markdown_spans import Markdown
from verified_book.accepting.rst_spans import Rst
from verified_book.accepting.spans import Refusal, Span, split
from verified_book.matching import escape
from verified_book.records import Edit, Failure

FRONT_MATTER = "---\nfile_format: mystnb\nkernelspec: {name: python3}\n---\n"
CONFIG = MdParserConfig(enable_extensions={"colon_fence"})
RST = Rst()


@cache
def markdown(text: str = FRONT_MATTER, **options: Any) -> Language:
    """The language of a Markdown page."""
    return Markdown.of_page(text, CONFIG, **options)


def edit(spans: list[Span], index: int, output: str, words: str = "", **changed: Any) -> Edit:
    """What a build would ask for if a cell printed `output`."""
    span = spans[index]
    cell = next((s for s in spans if s.block == index), span)
    mends = Failure("page", span.start + 1, "differs", "mend it", cell=0)
    asked: dict[str, Any] = {
        "source": "page",
        "line": span.start + 1,
        "cell": 0,
        "cell_line": cell.start + 1,
        "code": cell.body if cell.kind == "cell" else "",
        "old": span.body if span.kind == "block" else None,
        "new": escape(output),
        "got": output,
        "words": tuple(words.split()),
        "mends": mends,
    }
    return Edit(**(asked | changed))


def accepted(
    text: str, language: Language, outputs: Mapping[int, str | Edit], words: str = ""
) -> str:
    """A page after the outputs of some of its spans have been accepted."""
    spans = language.spans(text)
    changes = {}
    for index, output in outputs.items():
        wanted = edit(spans, index, output, words) if isinstance(output, str) else output
        place = locate(wanted, split(text), spans, language)
        changes[place] = change_for(wanted, language)
    return apply(text, spans, changes, language)


def reason(text: str, language: Language, outputs: Mapping[int, str | Edit]) -> str:
    """Why they are refused."""
    try:
        return "written: " + accepted(text, language, outputs)
    except Refusal as refusal:
        return refusal.reason


def summary(spans: list[Span]) -> list[tuple[str, int, str]]:
    """The kind, the line from 1 and the body of each span."""
    return [(span.kind, span.start + 1, span.body) for span in spans]
