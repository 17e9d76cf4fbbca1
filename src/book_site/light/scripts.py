"""Lets no script that a page can do without for a moment keep it from being shown."""

import re
from pathlib import Path

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
# What stands on the pages that some of them are for.
_ONLY_WITH = {
    "design-tabs.js": re.compile(r'class="[^"]*\bsd-tab-'),
    "togglebutton.js": re.compile(
        r'class="(?:[^"]* )?(?:toggle[ "]|admonition (?:[^"]* )?dropdown[ "]'
        r'|dropdown (?:[^"]* )?admonition[ "])'
    ),
}
_OPTIONS = "documentation_options.js"


def load_late(pages: dict[Path, str], static: Path) -> None:
    """Lets scripts of Sphinx and its usual extensions run when a page has been read.

    Those that nothing on a page needs are not loaded, and the few options that others read when
    they stand in the page are written into it.
    """
    file = static / _OPTIONS
    options = " ".join(file.read_text(encoding="utf-8").split()) if file.is_file() else None
    for page, text in pages.items():

        def loaded(match: re.Match[str], text: str = text) -> str:
            name = match["source"].partition("?")[0].rpartition("/")[2]
            if "_static/" not in match["source"]:
                return match[0]
            if name == _OPTIONS and options:
                return f"<script>{options}</script>\n"
            if name in _ONLY_WITH and not _ONLY_WITH[name].search(text):
                return ""
            if name in _LATER and not re.search(
                r"\b(?:async|defer)\b", match["more"] + match["end"]
            ):
                return match[0].replace("<script", "<script defer", 1)
            return match[0]

        pages[page] = _SCRIPT.sub(loaded, text)
