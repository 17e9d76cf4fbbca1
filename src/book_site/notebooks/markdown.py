"""Writes the prose of a page as the Markdown that JupyterLab knows.

JupyterLab has no directives and no roles. The prose is therefore taken from the page's HTML, in
which they have become text and links. It is brought into elements that Markdown has, and the
package markdownify writes these.
"""

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

from bs4 import BeautifulSoup, Tag
from markdownify import MarkdownConverter

LIST = "References"
"""The heading of the works that a notebook cites."""

# Signs for private use: where a cell stands, and where the next cell of prose begins.
_CELL = "\ue000"
_NEW = "\ue001"
_PLACE = re.compile(rf"{_CELL}(\d+){_CELL}")
_SPLIT = re.compile(rf"\s*(?:{_CELL}(\d+){_CELL}|{_NEW})\s*")

# An underscore inside a word is plain text in JupyterLab, and `d_model` reads better as it is.
_SPECIAL = re.compile(r"[\\`*$~]|(?<![^\W_])_|_(?![^\W_])|\](?=\()|<(?=[A-Za-z/!?])|&(?=#?\w+;)")
# JupyterLab looks for maths before and after it undoes the escapes, but not across elements.
_ENTITIES = {"<": "&lt;", "&": "&amp;", "$": r"<span>\$</span>"}
_STARTS_A_BLOCK = re.compile(r"^(\d*)(?=[.)] |[-+] |#+ |>)")
_DELIMITERS = re.compile(r"\\\((.*)\\\)|\\\[(.*)\\\]", re.DOTALL)
_ADDRESS = re.compile(r"https?://[^\s,]+[^\s,.]")
_FOLDS = ["dropdown", "toggle"]
_OPTIONS: dict[str, Any] = {
    "bullets": "-",
    "heading_style": "atx",
    "newline_style": "backslash",
    "sub_symbol": "<sub>",
    "sup_symbol": "<sup>",
}


@dataclass(frozen=True)
class CodeCell:
    """The place of a code cell.

    Attributes:
        index: Its place in the notebook that ran.
        folded: Whether it is part of a solution, or of anything else, that the page folds.
    """

    index: int
    folded: bool = False


def parts(body: str, indexes: Sequence[int] = (), url: str = "") -> Iterator[str | CodeCell]:
    """The cells of a page: its prose as Markdown, and the places of code.

    Args:
        body: The page's HTML, in which formulas are TeX.
        indexes: The place in the notebook of each code cell that the page shows.
        url: The page's address; where it is empty, links within the site become text.
    """
    soup = BeautifulSoup(body, "html.parser")
    shown = soup.select("div.cell")
    cells = {
        index: CodeCell(index, cell.find_parent(class_=_FOLDS) is not None)
        for index, cell in zip(indexes, shown, strict=True)
    }
    for index, cell in zip(indexes, shown, strict=True):
        place = soup.new_tag("p")
        place.string = f"{_CELL}{index}{_CELL}"
        cell.replace_with(place, *cell.select("figcaption"))
    _simplify(soup)
    works = _resolve_links(soup, url)
    pieces = _SPLIT.split(_Writer(**_OPTIONS).convert_soup(soup) + _works(works))
    for number, text in enumerate(pieces):
        if number % 2 and text:
            yield cells[int(text)]
        elif text and text.strip():
            yield text.strip()


def _resolve_links(soup: BeautifulSoup, url: str) -> set[str]:
    """Makes addresses absolute, and links without one text; returns the works that are cited."""
    works = set()
    for image in soup.select("img[src]"):
        image["src"] = urljoin(url, str(image["src"]))
        if not _is_absolute(image["src"]):
            image.replace_with(f"[{image.get('alt', '')}]")
    for link in soup.select("a[href]"):
        cited = str(link.get("title", "")) if link.find_parent(class_="bibtex-citation") else ""
        works |= {cited} - {""}
        del link["title"]
        link["href"] = urljoin(url, str(link["href"]))
        if not _is_absolute(link["href"]):
            if cited:
                link["href"] = f"#{LIST}"
            else:
                link.unwrap()
    return works


def _is_absolute(address: object) -> bool:
    return re.match(r"[a-z]+:", str(address)) is not None


def _works(cited: set[str]) -> str:
    """A heading, and below it the works that a page cites; nothing if it cites none."""
    if not cited:
        return ""
    entries = (_ADDRESS.sub(r"<\g<0>>", work) for work in sorted(cited, key=str.casefold))
    return f"{_NEW}## {LIST}\n\n" + "\n".join(f"- {entry}" for entry in entries)


def _simplify(soup: BeautifulSoup) -> None:
    """Brings a page into elements that Markdown has."""
    for tag in soup.select(
        "a.headerlink, .toctree-wrapper, details.claim-proof > summary, claim-popup"
    ):
        tag.decompose()
    for proof in soup.select("details.claim-proof"):  # its cells are what a notebook is for
        proof.name = "div"
    for number in soup.select("div.math > .eqno"):
        number.parent["data-number"] = number.get_text().strip("()")  # type: ignore[index]
        number.decompose()
    for formula in soup.select("span.math, div.math"):
        formula.name = "code" if formula.name == "span" else "pre"
    for head in soup.select(".claim-head"):
        _name_claim(soup, head)
    for box in soup.select(".admonition.dropdown, .admonition.toggle"):
        box.name = "details"
        box.select_one(".admonition-title").name = "summary"  # type: ignore[union-attr]
    for title in soup.select(
        "p.admonition-title, .sidebar-title, .rubric, figcaption .caption-number"
    ):
        title.wrap(soup.new_tag("span" if title.name == "span" else "p"))
        title.name = "strong"
    for box in soup.select(".claim, div.admonition, aside.sidebar, aside.topic"):
        if not _PLACE.search(box.get_text()):  # no code cell can be quoted
            box.name = "blockquote"


def _name_claim(soup: BeautifulSoup, head: Tag) -> None:
    """Puts a claim's id, note and verdict at the beginning of its statement."""
    verdict, name, *note = (part.get_text() for part in head.select("span, a") if part.get_text())
    about = f" ({note[-1]})" if note else ""
    title = soup.new_tag("strong")
    title.string = f"Claim {name}{about}: {verdict}."
    following = head.find_next_sibling()
    head.decompose()
    if following is not None and following.p is not None:
        following.p.insert(0, title, " ")


class _Writer(MarkdownConverter):
    """Writes what JupyterLab reads otherwise than other programs."""

    def escape(self, text: str, parent_tags: set[str]) -> str:
        """Text that Markdown would take for markup."""
        text = re.sub(r"\s+", " ", text)
        text = _SPECIAL.sub(lambda sign: _ENTITIES.get(sign[0], f"\\{sign[0]}"), text)
        return text.replace("|", r"\|") if "table" in parent_tags else text

    def convert_p(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """A paragraph, whose first sign must not begin a list or a heading."""
        text = _STARTS_A_BLOCK.sub(r"\1\\", text.strip())
        if "_inline" in parent_tags and el.find_previous_sibling("p"):  # in the cell of a table
            text = f"<br>{text}"
        return str(super().convert_p(el, text, parent_tags))  # type: ignore[misc]

    def convert_hN(self, n: int, el: Tag, text: str, parent_tags: set[str]) -> str:  # noqa: N802
        """A heading, with which a new cell begins."""
        return f"\n\n{_NEW}{'#' * n} {text.strip()}\n\n"

    def convert_code(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Code, or a formula."""
        if "math" not in el.get_attribute_list("class"):
            text = str(super().convert_code(el, text, parent_tags))  # type: ignore[misc]
            return text.replace("|", r"\|") if "table" in parent_tags else text
        tex = " ".join(_tex(el).split())
        if "table" in parent_tags:
            tex = tex.replace(r"\|", r"\Vert{}").replace("|", r"\vert{}")
        return f"${tex}$"

    def convert_pre(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Source with its language, or a displayed formula with its number."""
        if "math" not in el.get_attribute_list("class"):
            text = el.get_text().strip("\n")
            fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 0)
            return f"\n\n{fence}{_language(el)}\n{text}\n{fence}\n\n"
        tag = f" \\tag{{{el['data-number']}}}" if el.get("data-number") else ""
        formula = f"$$\n{_tex(el)}{tag}\n$$"
        if "blockquote" in parent_tags:  # `>` before a line would be a part of the formula
            formula = " ".join(formula.split("\n"))
        return f"\n\n{formula}\n\n"

    def convert_dt(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """A term, as the entry of a list."""
        return f"\n\n- **{text.strip()}**\n\n"

    def convert_dd(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """What is said of a term, below it."""
        return "\n\n" + re.sub(r"^(?=.)", "  ", text.strip(), flags=re.MULTILINE) + "\n\n"

    def convert_summary(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Nothing: it is written with what it opens."""
        return ""

    def convert_details(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """What is folded. A code cell within is folded by itself."""
        summary = el.find("summary")
        words = html.escape(" ".join(summary.get_text().split()), quote=False) if summary else ""
        folded = ""
        for place, run in enumerate(re.split(rf"({_CELL}\d+{_CELL})", text)):
            if place % 2:
                folded += run
            elif run.strip():
                # Markdown is not read in an HTML block before its first blank line.
                opening = f"<details><summary>{words}</summary>"
                folded += f"\n\n{opening}\n\n{run.strip()}\n\n</details>\n\n"
        return folded


def _tex(el: Tag) -> str:
    tex = el.get_text().strip()
    found = _DELIMITERS.fullmatch(tex)
    return (found[1] or found[2]).strip() if found else tex


def _language(el: Tag) -> str:
    """What a class says of the language of a source."""
    box = el.find_parent(class_=re.compile("^highlight-"))
    names = [name.removeprefix("highlight-") for name in box["class"]] if box else [""]
    return {"default": "", "none": "", "ipython": "python", "ipython3": "python"}.get(
        names[0], names[0]
    )
