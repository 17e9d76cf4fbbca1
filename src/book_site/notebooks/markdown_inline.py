"""The inline half of :mod:`book_site.notebooks.markdown`: text, code, maths, links.

Only JupyterLab's Markdown matters here. It differs from others in where it looks for maths.
"""

import re
from dataclasses import dataclass, field
from functools import singledispatch
from urllib.parse import urljoin

from docutils import nodes
from sphinx import addnodes

# An underscore inside a word is plain text in JupyterLab, and `d_model` reads better as it is.
_SPECIAL = re.compile(r"[\\`*$~]|(?<![^\W_])_|_(?![^\W_])|\](?=\()|<(?=[A-Za-z/!?])|&(?=#?\w+;)")
# JupyterLab looks for maths before and after it undoes the escapes, but not across elements.
_ENTITIES = {"<": "&lt;", "&": "&amp;", "$": r"<span>\$</span>"}

LIST = "References"
"""The heading of the works that a notebook cites."""


@dataclass(frozen=True)
class Page:
    """What the doctree of a page does not know.

    Attributes:
        url: The page's address; empty when the site has none, and links within it become text.
        labels: "Fig. 1" and the like, by the id of the numbered element.
        level: The level of the next heading.
        in_table: Whether a bar would end a cell of a table.
    """

    url: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    level: int = 1
    in_table: bool = False


@singledispatch
def inline(node: object, page: Page) -> str:
    """The Markdown of an inline element."""
    return text_in(node, page) if isinstance(node, nodes.Element) else ""


def text_in(node: nodes.Node, page: Page) -> str:
    """The Markdown of what is inside an element."""
    return "".join(inline(child, page) for child in node.children)


@inline.register(nodes.Invisible)
def _no_text(node: nodes.Node, page: Page) -> str:
    return ""


@inline.register
def _text(node: nodes.Text, page: Page) -> str:
    def escaped(match: re.Match[str]) -> str:
        return _ENTITIES.get(match[0], "\\" + match[0])

    text = _SPECIAL.sub(escaped, re.sub(r"\s+", " ", node.astext()))
    return text.replace("|", r"\|") if page.in_table else text


@inline.register(nodes.emphasis)
@inline.register(nodes.title_reference)
def _emphasis(node: nodes.Element, page: Page) -> str:
    return f"*{text_in(node, page).strip()}*"


@inline.register
def _strong(node: nodes.strong, page: Page) -> str:
    return f"**{text_in(node, page).strip()}**"


@inline.register(nodes.literal)
@inline.register(addnodes.desc_signature)
def _literal(node: nodes.Element, page: Page) -> str:
    return _code(node.astext(), page)


def _code(text: str, page: Page) -> str:
    text = " ".join(text.split("\n"))
    if page.in_table:
        text = text.replace("|", r"\|")
    fence = "`"
    while fence in text:
        fence += "`"
    if "`" in text:
        text = f" {text} "
    return f"{fence}{text}{fence}"


@inline.register
def _math(node: nodes.math, page: Page) -> str:
    latex = " ".join(node.astext().split())
    if page.in_table:
        latex = latex.replace(r"\|", r"\Vert{}").replace("|", r"\vert{}")
    return f"${latex}$"


@inline.register
def _superscript(node: nodes.superscript, page: Page) -> str:
    return f"<sup>{text_in(node, page)}</sup>"


@inline.register
def _subscript(node: nodes.subscript, page: Page) -> str:
    return f"<sub>{text_in(node, page)}</sub>"


@inline.register
def _footnote_reference(node: nodes.footnote_reference, page: Page) -> str:
    return f"<sup>{node.astext()}</sup>"


@inline.register
def _raw(node: nodes.raw, page: Page) -> str:
    return node.astext() if "html" in node["format"].split() else ""


@inline.register
def _image(node: nodes.image, page: Page) -> str:
    """An image of another site, or of this one if it has an address; else what the image shows."""
    target = urljoin(page.url, node["uri"])
    alt = node.get("alt", "")
    return f"![{alt}]({target})" if _is_absolute(target) else f"*[{alt}]*"


@inline.register
def _reference(node: nodes.reference, page: Page) -> str:
    text = text_in(node, page)
    target = node.get("refuri") or f"#{node.get('refid', '')}"
    target = urljoin(page.url, target)
    if not _is_absolute(target):  # the site has no address; the list of works is at the end
        return f"[{text}](#{LIST})" if is_citation(node) else text
    if node.astext() == target:
        return f"<{target}>"
    return f"[{text}](<{target}>)" if re.search(r"[\s()]", target) else f"[{text}]({target})"


def is_citation(node: nodes.reference) -> bool:
    """Whether a reference leads to an entry of the bibliography of sphinxcontrib-bibtex."""
    return node.parent is not None and "bibtex-citation" in node.parent.get("classes", [])


def _is_absolute(target: str) -> bool:
    return bool(re.match(r"[a-z]+:", target))
