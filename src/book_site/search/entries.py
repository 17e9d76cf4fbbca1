"""What the search knows of a page: its sections, names and terms, each with its text."""

import html
import re
from collections.abc import Iterable, Mapping
from typing import Any

Entry = tuple[str, str, str, str]
"""The kind of an entry, its anchor, its title and its text."""

_ARTICLE = re.compile(r"<article\b[^>]*>(.*)</article>", re.DOTALL)
_LEFT_OUT = re.compile(
    r"<(script|style|svg|pre|form|nav|button|claim-popup)\b.*?</\1>"
    r'|<a class="headerlink".*?</a>'
    r'|<span class="katex-html".*?(?=</span></(?:span|div)>)'
    r'|<span class="eqno">.*?</span>'
    r'|<div class="detection-table[^>]*>.*?</table>',
    re.DOTALL,
)
_MATHML = re.compile(r"<math\b.*?<annotation[^>]*>(.*?)</annotation>.*?</math>", re.DOTALL)
_START = re.compile(
    r"<h(?P<level>[1-6])[^>]*>(?P<title>.*?)"
    r'<a class="headerlink" href="#(?P<section>[^"]*)"[^>]*>.*?</a>'
    r'|<dt class="sig[^"]*" id="(?P<name>[^"]+)">'
    r'|<dt id="(?P<term>term-[^"]+)">(?P<word>.*?)</dt>',
    re.DOTALL,
)
_TAG = re.compile(r"<[^>]+>")


def entries_of_page(page: str) -> list[Entry]:
    """The entries of a page, in their order.

    Examples:
        >>> entries_of_page('<article><h1>One<a class="headerlink" href="#o">#</a></h1><p>Two')
        []
        >>> head = '<h1>One<a class="headerlink" href="#o">#</a></h1>'
        >>> entries_of_page(f"<article>{head}<p>Two</p></article>")
        [('page', '', 'One', 'Two')]
    """
    article = _ARTICLE.search(page)
    if not article:
        return []
    text = article[1]
    starts = list(_START.finditer(text))
    if not starts:  # Sphinx's own index
        return []
    ends = [start.start() for start in starts[1:]] + [len(text)]
    found = []
    for start, end in zip(starts, ends, strict=True):
        words = plain(text[start.end() : end])
        if start["name"]:
            found.append(("name", start["name"], start["name"], words))
        elif start["term"]:
            found.append(("term", start["term"], plain(start["word"]), words))
        elif start["level"] == "1":
            found.append(("page", "", plain(start["title"]), words))
        else:
            found.append(("section", start["section"], plain(start["title"]), words))
    return found


def plain(markup: str) -> str:
    """The text of markup; formulas are their TeX, code blocks are left out.

    Examples:
        >>> plain('a <b>c</b><pre>d</pre> &lt; e')
        'a c < e'
    """
    text = _MATHML.sub(lambda math: f" {math[1]} ", markup)
    text = _TAG.sub("", _LEFT_OUT.sub(" ", text))
    text = re.sub(r"\\[()\[\]]", " ", html.unescape(text))
    return " ".join(text.split()).replace("¶", "").strip()


def entries_of_claims(
    claims: Iterable[Mapping[str, Any]], places: Mapping[str, int]
) -> list[list[Any]]:
    """The entries of published claims.

    Args:
        claims: The claims of `claims.json`.
        places: The number of each page.
    """
    found = []
    for claim in claims:
        page, _, anchor = claim["page"].partition("#")
        if page in places:
            words = [claim["text"], claim["stated"], *(c["text"] for c in claim["conditions"])]
            text = " ".join(filter(None, words))
            found.append([places[page], "claim", anchor, f"Claim {claim['id']}", text])
    return found
