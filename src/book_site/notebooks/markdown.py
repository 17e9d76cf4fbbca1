"""Writes the prose of a page as the Markdown that JupyterLab knows.

JupyterLab has no directives and no roles. The prose is therefore taken from the resolved doctree,
in which they have become text and references, whether the page was MyST or reStructuredText.
"""

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import singledispatch
from itertools import groupby

from docutils import nodes
from sphinx.locale import admonitionlabels

from book_site.notebooks.markdown_inline import Page, inline, text_in
from verified_book.outputs.cells import is_cell

Block = str | nodes.container
"""A block of Markdown, or the container of a code cell."""

_LANGUAGES = {"default": "", "none": "", "ipython": "python", "ipython3": "python"}
_STARTS_A_BLOCK = re.compile(r"^(\d*)(?=[.)] |[-+] |#+ |>)")


def flow(content: Iterable[nodes.Node], page: Page) -> Iterator[Block]:
    """The Markdown of neighbouring nodes, block by block, with the code cells in their places."""
    run = ""
    for child in content:
        if isinstance(child, nodes.Text | nodes.Inline):
            run += inline(child, page)
        else:
            yield from _as_paragraph(run)
            run = ""
            yield from blocks(child, page)
    yield from _as_paragraph(run)


@singledispatch
def blocks(node: object, page: Page) -> Iterator[Block]:
    """The Markdown of a block element."""
    if isinstance(node, nodes.Element):
        yield from flow(node.children, page)


def _as_paragraph(text: str) -> Iterator[Block]:
    if text.strip():
        yield _STARTS_A_BLOCK.sub(r"\1\\", text.strip())


def _has_cells(node: nodes.Node) -> bool:
    return any(True for _ in node.findall(is_cell))


def _prose(found: Iterable[Block]) -> list[str]:
    return [block for block in found if isinstance(block, str)]


def _title(node: nodes.Element) -> nodes.title | None:
    first = node.children[0] if node.children else None
    return first if isinstance(first, nodes.title) else None


def _label(node: nodes.Element, page: Page) -> str:
    return next((page.labels[i] for i in node["ids"] if i in page.labels), "")


@blocks.register(nodes.Invisible)
@blocks.register(nodes.system_message)
@blocks.register(nodes.meta)
def _nothing(node: nodes.Element, page: Page) -> Iterator[Block]:
    yield from ()


@blocks.register
def _paragraph(node: nodes.TextElement, page: Page) -> Iterator[Block]:
    yield from _as_paragraph(text_in(node, page))


@blocks.register
def _rubric(node: nodes.rubric, page: Page) -> Iterator[Block]:
    yield f"**{text_in(node, page).strip()}**"


@blocks.register
def _section(node: nodes.section, page: Page) -> Iterator[Block]:
    title = _title(node)
    if title is None:
        yield from flow(node.children, page)
        return
    yield f"{'#' * page.level} {text_in(title, page).strip()}"
    yield from flow(node.children[1:], replace(page, level=min(page.level + 1, 6)))


@blocks.register
def _literal_block(node: nodes.literal_block, page: Page) -> Iterator[Block]:
    language = node.get("language", "")
    yield _fenced(node.astext(), _LANGUAGES.get(language, language))


@blocks.register
def _doctest_block(node: nodes.doctest_block, page: Page) -> Iterator[Block]:
    yield _fenced(node.astext(), "python")


def _fenced(text: str, language: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


@blocks.register
def _math_block(node: nodes.math_block, page: Page) -> Iterator[Block]:
    if node.get("nowrap"):
        yield node.astext().strip()
        return
    # Sphinx aligns the lines of an equation, and equations with a blank line between them.
    parts = [part.strip() for part in re.split(r"\n\s*\n", node.astext()) if part.strip()]
    parts = [
        rf"\begin{{split}}{part}\end{{split}}"
        if r"\\" in part and not part.startswith(r"\begin{")
        else part
        for part in parts
    ]
    latex = " \\\\\n".join(parts)
    if len(parts) > 1:
        latex = f"\\begin{{aligned}}\n{latex}\n\\end{{aligned}}"
    tag = rf" \tag{{{node['number']}}}" if node.get("label") and node.get("number") else ""
    yield f"$$\n{latex}{tag}\n$$"


@blocks.register
def _transition(node: nodes.transition, page: Page) -> Iterator[Block]:
    yield "---"


@blocks.register
def _line_block(node: nodes.line_block, page: Page) -> Iterator[Block]:
    yield "\\\n".join(text_in(line, page) for line in node.findall(nodes.line))


@blocks.register
def _bullet_list(node: nodes.bullet_list, page: Page) -> Iterator[Block]:
    yield from _list(node, ["- " for _ in node.children], page)


@blocks.register
def _enumerated_list(node: nodes.enumerated_list, page: Page) -> Iterator[Block]:
    first = int(node.get("start", 1))
    yield from _list(node, [f"{first + i}. " for i in range(len(node.children))], page)


def _list(node: nodes.Element, markers: list[str], page: Page) -> Iterator[Block]:
    if _has_cells(node):
        yield from flow(node.children, page)
        return
    nested = nodes.bullet_list | nodes.enumerated_list
    tight = all(
        sum(not isinstance(c, nested) for c in item.children) <= 1 for item in node.children
    )
    gap = "\n" if tight else "\n\n"
    items = [
        _hanging(marker, gap.join(_prose(blocks(item, page))))
        for marker, item in zip(markers, node.children, strict=True)
    ]
    yield gap.join(items)


def _hanging(marker: str, text: str) -> str:
    lines = text.split("\n")
    rest = [" " * len(marker) + line if line else "" for line in lines[1:]]
    return "\n".join([marker + lines[0], *rest])


@blocks.register
def _definition_list(node: nodes.definition_list, page: Page) -> Iterator[Block]:
    for item in node.children:
        terms = [text_in(part, page) for part in item.children if isinstance(part, nodes.term)]
        body = _prose(flow(item.children[len(terms) :], page))
        yield _hanging("- ", "\n\n".join([f"**{', '.join(terms)}**", *body]))


@blocks.register
def _field(node: nodes.field, page: Page) -> Iterator[Block]:
    name, body = node.children
    text = "\n\n".join(_prose(blocks(body, page)))
    yield _hanging("- ", f"**{text_in(name, page)}:** {text}")


@blocks.register
def _block_quote(node: nodes.block_quote, page: Page) -> Iterator[Block]:
    content = list(flow(node.children, page))
    yield from content if _has_cells(node) else [_quoted(_prose(content))]


@blocks.register
def _attribution(node: nodes.attribution, page: Page) -> Iterator[Block]:
    yield f"— {text_in(node, page)}"


def _quoted(parts: list[str]) -> str:
    # JupyterLab would take the mark of a quoted line for a part of the equation.
    parts = [" ".join(part.split("\n")) if part.startswith("$$") else part for part in parts]
    text = "\n\n".join(part for part in parts if part)
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


@blocks.register(nodes.Admonition)
@blocks.register(nodes.topic)
@blocks.register(nodes.sidebar)
def _admonition(node: nodes.Element, page: Page) -> Iterator[Block]:
    """Notes, exercises, solutions: quoted, or folded. Cells cannot be quoted."""
    title = _title(node) or nodes.title("", str(admonitionlabels.get(node.tagname, "")))
    label = _label(node, page)
    head = " ".join(f"{label} {text_in(title, page)}".split())
    body = list(flow([child for child in node.children if child is not title], page))
    if {"dropdown", "toggle"} & set(node["classes"]):
        yield from _folded(" ".join(f"{label} {title.astext()}".split()), body)
    elif _has_cells(node):
        yield from [f"**{head}**", *body] if head else body
    else:
        yield _quoted([f"**{head}**" if head else "", *_prose(body)])


def _folded(title: str, body: list[Block]) -> Iterator[Block]:
    """Folds the prose; what holds the cells folds them."""
    # Markdown is not read in an HTML block before its first blank line.
    opening = f"<details><summary>{html.escape(title, quote=False)}</summary>"
    for is_prose, run in groupby(body, key=lambda block: isinstance(block, str)):
        neighbors = list(run)
        if is_prose:
            yield "\n\n".join([opening, *_prose(neighbors), "</details>"])
        else:
            yield from neighbors


@blocks.register
def _container(node: nodes.container, page: Page) -> Iterator[Block]:
    if is_cell(node):
        yield node
        yield from (_numbered(caption, page) for caption in node.findall(nodes.caption))
    elif "claim" in node["classes"]:
        yield _claim(node, page)
    else:
        yield from flow(node.children, page)


def _claim(box: nodes.container, page: Page) -> str:
    head = [part for part in box.children[0].children[0].children if part.astext().strip()]
    verdict, name, *note = (text_in(part, page) for part in head)
    about = f" ({note[-1]})" if note else ""
    title = f"**Claim {name}{about}: {verdict}.**"
    statement, *rest = _prose(flow(box.children[1:], page))
    return _quoted([f"{title} {statement}", *rest])


@blocks.register
def _compound(node: nodes.compound, page: Page) -> Iterator[Block]:
    if "toctree-wrapper" not in node["classes"]:
        yield from flow(node.children, page)


@blocks.register
def _caption(node: nodes.caption, page: Page) -> Iterator[Block]:
    yield _numbered(node, page)


def _numbered(caption: nodes.TextElement, page: Page) -> str:
    label = _label(caption.parent, page)
    head = label if label.endswith(".") else f"{label}:"
    return f"**{head}** {text_in(caption, page)}" if label else text_in(caption, page)


@blocks.register
def _table(node: nodes.table, page: Page) -> Iterator[Block]:
    if title := _title(node):
        yield _numbered(title, page)
    page = replace(page, in_table=True)
    rows = [[_table_cell(entry, page) for entry in row.children] for row in node.findall(nodes.row)]
    width = max(map(len, rows), default=0)
    if not any(True for _ in node.findall(nodes.thead)):
        rows.insert(0, [""] * width)
    rows.insert(1, ["---"] * width)
    yield "\n".join(f"| {' | '.join(row + [''] * (width - len(row)))} |" for row in rows)


def _table_cell(entry: nodes.Node, page: Page) -> str:
    return "<br>".join(_prose(blocks(entry, page))).replace("\n", "<br>")


@blocks.register(nodes.footnote)
@blocks.register(nodes.citation)
def _footnote(node: nodes.Element, page: Page) -> Iterator[Block]:
    label, *content = node.children
    mark = label.astext()
    first, *rest = _prose(flow(content, page)) or [""]
    mark = f"[{mark}]" if isinstance(node, nodes.citation) else f"<sup>{mark}</sup>"
    yield "\n\n".join([f"{mark} {first}", *rest])
