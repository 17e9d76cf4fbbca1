"""The works that a notebook cites, listed at its end; sphinxcontrib-bibtex has resolved them."""

import re
from collections.abc import Iterator

from docutils import nodes

from book_site.notebooks.markdown_inline import LIST, Page, inline, is_citation

_ADDRESS = re.compile(r"https?://[^\s,]+[^\s,.]")


def listed(doctree: nodes.document, page: Page) -> Iterator[str]:
    """A heading, and below it the works that a page cites; nothing if it cites none."""
    found = {
        node["reftitle"]
        for node in doctree.findall(nodes.reference)
        if is_citation(node) and node.get("reftitle")
    }
    if found:
        yield f"## {LIST}"
        yield "\n".join(f"- {_entry(words, page)}" for words in sorted(found, key=str.casefold))


def _entry(words: str, page: Page) -> str:
    """An entry whose addresses are links."""
    text, place = "", 0
    for address in _ADDRESS.finditer(words):
        text += inline(nodes.Text(words[place : address.start()]), page) + f"<{address[0]}>"
        place = address.end()
    return text + inline(nodes.Text(words[place:]), page)
