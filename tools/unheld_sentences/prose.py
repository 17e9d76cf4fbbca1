"""The sentences of a page, MyST or reStructuredText, as docutils reads them.

No directive and no role is carried out: what stands in a directive is read on, unless it is code or
data, and what stands in a role is a name, a formula or a value that a cell has glued in.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from docutils import nodes
from docutils.core import publish_doctree
from docutils.parsers.rst import Directive, Parser, directives, roles
from myst_parser.parsers.docutils_ import Parser as MystParser

CHIP = "\ue000"
_OPEN, _CLOSE = "\ue001", "\ue002"
_CLOSED = re.compile(f"{_OPEN}.*?{_CLOSE}", re.DOTALL)
_END = re.compile(
    rf"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\bcf)[.!?][\"'\u201d\u2019)]*(?:\s*{CHIP})*(?=\s|$)"
)
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)

# What stands in them is code or data, and no prose.
_DATA = {
    *("autofunction", "autoclass", "automodule", "autosummary", "bibliography", "claims-index"),
    *("code", "code-block", "code-cell", "csv-table", "eval-rst", "expect-output", "glossary"),
    *("image", "include", "index", "list-table", "literalinclude", "math", "note-lines", "only"),
    *("raw", "symbols", "table", "tableofcontents", "toctree"),
}
_SETTINGS = {
    "myst_enable_extensions": ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath"],
    "report_level": 5,
    "halt_level": 5,
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "_disable_config": True,
}
_LEFT_OUT = (nodes.system_message, nodes.table, nodes.comment, nodes.docinfo, nodes.footnote)
_CLOSED_NODES = (nodes.literal, nodes.math, nodes.reference, nodes.footnote_reference, nodes.image)


@dataclass(frozen=True)
class Sentence:
    """A sentence of a page.

    Attributes:
        line: The line of its file on which it begins, from 1.
        text: Its words, with code, formulas and names as they stand in the source.
        words: Its words, with an `x` for each sign of code, formulas, names and glued values.
        has_chip: Whether it carries the chip of a claim.
    """

    line: int
    text: str
    words: str
    has_chip: bool


def sentences(page: Path) -> Iterator[Sentence]:
    """The sentences of a page, in their order."""
    source = page.read_text(encoding="utf-8")
    is_rst = page.suffix == ".rst"
    if not is_rst:
        source = _FRONT_MATTER.sub(lambda found: "\n" * found[0].count("\n"), source)
    with _nothing_carried_out():
        document = publish_doctree(
            source,
            str(page),
            parser=Parser() if is_rst else MystParser(),
            settings_overrides=_SETTINGS,
        )
    for paragraph in document.findall(nodes.paragraph):
        if not _stands_in(paragraph, _LEFT_OUT):
            yield from split(_flat(paragraph), paragraph.line or 1)


def split(text: str, line: int = 1) -> Iterator[Sentence]:
    """The sentences of a paragraph; a chip behind a full stop belongs to the sentence before it."""
    words = _CLOSED.sub(lambda found: "x" * len(found[0]), text)
    start = 0
    for end in [*(found.end() for found in _END.finditer(words)), len(words)]:
        said = re.sub(f"[{CHIP}{_OPEN}{_CLOSE}]", "", text[start:end])
        if said.strip():
            first = start + len(text[start:end]) - len(text[start:end].lstrip())
            yield Sentence(
                line + text.count("\n", 0, first),
                re.sub(r"\s+([.,;:!?])", r"\1", " ".join(said.split())),
                words[start:end],
                CHIP in text[start:end],
            )
        start = end


def _flat(node: nodes.Node) -> str:
    """The words of a paragraph, with signs around what is no prose."""
    if isinstance(node, nodes.Text):
        return node.astext()
    if isinstance(node, _CLOSED_NODES):
        return f"{_OPEN}{node.astext()}{_CLOSE}"
    chip = CHIP if isinstance(node, nodes.inline) and "chip" in node else ""
    return chip + "".join(map(_flat, node.children))


def _stands_in(node: nodes.Node, kinds: tuple[type[nodes.Node], ...]) -> bool:
    return node.parent is not None and (
        isinstance(node.parent, kinds) or _stands_in(node.parent, kinds)
    )


class _AnyOption(dict[str, Any]):
    """An option specification that lets every name pass."""

    def __missing__(self, name: str) -> Any:
        return directives.unchanged


class _AnyDirective(Directive):
    """Reads what stands in a directive as prose, unless it is code or data, and captions."""

    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec = _AnyOption({"class": directives.unchanged})  # MyST skips an empty one

    def run(self) -> list[nodes.Node]:
        """What is to be read on."""
        found = nodes.container()
        if caption := self.options.get("caption"):
            words, _ = self.state.inline_text(caption, self.lineno)
            found += nodes.paragraph("", "", *words)
            found[-1].line = self.lineno
        if self.name not in _DATA:
            self.state.nested_parse(self.content, self.content_offset, found)
        return [found]


def _any_role(
    name: str, rawtext: str, text: str, *_: Any, **__: Any
) -> tuple[list[Any], list[Any]]:
    if name.rpartition(":")[2] == "chip":
        return [nodes.inline(chip=text)], []
    return [nodes.literal("", text)], []


@contextmanager
def _nothing_carried_out() -> Iterator[None]:
    with (
        patch.object(directives, "directive", lambda *_: (_AnyDirective, [])),
        patch.object(roles, "role", lambda *_: (_any_role, [])),
    ):
        yield
