"""Leaves the search to the page that searches: no other page loads Sphinx's index."""

import re
from pathlib import Path

_LOADS = re.compile(
    r'<script[^>]* src="[^"]*(?:_static/(?:searchtools|language_data)|searchindex)\.js[^"]*"[^>]*>'
    r"</script>\s*"
)


def load_where_used(pages: dict[Path, str]) -> None:
    """Takes Sphinx's scripts from all pages but its own search, unless another search is there."""
    for file, text in pages.items():
        if file.name != "search.html" or "book_site_search.js" in text:
            pages[file] = _LOADS.sub("", text)
