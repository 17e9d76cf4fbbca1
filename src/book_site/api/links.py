"""Links the names that a page's code imports to the pages that describe them."""

import html
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes

from book_site.api.addresses import CLASSES, described, has_pages

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_IMPORT = re.compile(r"^[> \t.]*from\s+([\w.]+)\s+import\s+(\([^)]*\)|[^\n(]+)", re.MULTILINE)
_BLOCK = re.compile(r'(<div class="highlight"><pre>)(.*?)(?=</pre>)', re.DOTALL)
# A name by itself: no attribute of another, and none that an argument or a variable has here.
_NAME = re.compile(
    r'(?<!<span class="o">\.</span>)<span class="n">(\w+)</span>(?!\s*<span class="o">=</span>)'
)


def link_names(
    app: "Sphinx",
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Links each class where a block of code first has it, each function where the page does."""
    if doctree is None or not has_pages(app):
        return
    known = described(app)
    text = Path(app.env.doc2path(pagename)).read_text(encoding="utf-8")
    places = {
        alias: (html.escape(context["pathto"](known[name][0])), known[name][1] in CLASSES)
        for alias, name in imported(text).items()
        if name in known
    }
    if places:
        context["body"] = linked(context["body"], places)


def imported(text: str) -> dict[str, str]:
    """What code imports from modules, by the names that it gets.

    Examples:
        >>> imported("from layers import Norm, Drop as D")
        {'Norm': 'layers.Norm', 'D': 'layers.Drop'}
    """
    found = {}
    for module, names in _IMPORT.findall(text):
        for each in names.strip("() \n").split(","):
            name, _, alias = (word.strip() for word in each.strip().partition(" as "))
            if name.isidentifier():
                found[alias or name] = f"{module}.{name}"
    return found


def linked(body: str, places: dict[str, tuple[str, bool]]) -> str:
    """Markup whose code leads to the places of names.

    Only the first link of a page to each place is a stop of the tabulator key.

    Args:
        body: The markup.
        places: For each name its address, and whether every block links it anew.
    """
    on_page: set[str] = set()

    def block(match: re.Match[str]) -> str:
        here: set[str] = set()

        def link(token: re.Match[str]) -> str:
            name = token[1]
            if name not in places or name in here:
                return token[0]
            address, anew = places[name]
            first = name not in on_page
            if not first and not anew:
                return token[0]
            here.add(name)
            on_page.add(name)
            stop = "" if first else ' tabindex="-1"'
            return f'<a class="api" href="{address}"{stop}>{name}</a>'

        return match[1] + _NAME.sub(link, match[2])

    return _BLOCK.sub(block, body)
