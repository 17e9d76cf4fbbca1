"""Lets no script that a page can do without for a moment keep it from being shown."""

import re

_SCRIPT = re.compile(r'<script(?P<more>[^>]*) src="(?P<source>[^"]*)"(?P<end>[^>]*)></script>\s*')
# Scripts that wait for a page by themselves when they are run late, in the order of the page.
_LATER = {
    "clipboard.min.js",
    "copybutton.js",
    "design-tabs.js",
    "doctools.js",
    "sphinx-book-theme.js",
    "sphinx_highlight.js",
    "togglebutton.js",
}
# Sphinx's own search, whose index is the largest file of a site: its page alone needs them.
_SEARCH = {"searchtools.js", "language_data.js", "searchindex.js"}


def load_late(page: str, name: str) -> str:
    """Lets scripts of Sphinx and its usual extensions run when a page has been read.

    Args:
        page: A page.
        name: The name of its file.
    """
    searches = name == "search.html" and "book_site_search.js" not in page

    def loaded(tag: re.Match[str]) -> str:
        script = tag["source"].partition("?")[0].rpartition("/")[2]
        if script in _SEARCH and not searches:
            return ""
        waits = re.search(r"\b(?:async|defer)\b", tag["more"] + tag["end"])
        if "_static/" in tag["source"] and script in _LATER and not waits:
            return tag[0].replace("<script", "<script defer", 1)
        return tag[0]

    return _SCRIPT.sub(loaded, page)
