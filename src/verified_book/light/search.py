"""Leaves the search to the page that searches: no other page loads Sphinx's index."""

import re
from pathlib import Path

_LOADS = re.compile(
    r'<script[^>]* src="[^"]*(?:_static/(?:searchtools|language_data)|searchindex)\.js[^"]*"[^>]*>'
    r"</script>\s*"
)


def load_where_used(pages: dict[Path, str]) -> None:
    """Takes the scripts of the search from all pages but the search's own."""
    for file, text in pages.items():
        if file.name != "search.html":
            pages[file] = _LOADS.sub("", text)
