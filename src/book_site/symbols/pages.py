"""Marks the symbols of equations and the variables of sources in the pages that are written."""

import html
import re
from typing import TYPE_CHECKING, Any

from docutils import nodes

from book_site.symbols import source, tex
from book_site.symbols.directive import TIED

if TYPE_CHECKING:
    from sphinx.application import Sphinx

SCRIPT = "book_site_symbols.js"
_DIV = re.compile(r"<div\b|</div>")
_EQUATION = re.compile(
    r'(<div class="(?:[\w ]+ )?math notranslate nohighlight")([^>]*>\s*'
    r'(?:<span class="eqno">.*?</a></span>)?)([^<]+)(?=</div>)',
    re.DOTALL,
)
_SOURCE = re.compile(r"(<pre[^>]*>)(.*?)(</pre>)", re.DOTALL)


def mark(
    app: "Sphinx",
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Gives symbols and variables their classes, and loads the script that shows them together."""
    if doctree is None or app.builder.format != "html":
        return
    name = app.config.book_site_symbols
    frames = [node for node in doctree.findall(nodes.container) if name in node["classes"]]
    if not any(TIED in frame for frame in frames):
        return
    opening = f'<div class="{name} docutils container"'
    parts = context["body"].split(opening)
    if len(parts) != len(frames) + 1:
        return
    for place, frame in enumerate(frames, 1):
        end = _end(parts[place])
        inside, after = parts[place][:end], parts[place][end:]
        parts[place] = tied(inside, frame.get(TIED, [])) + after
    context["body"] = opening.join(parts)
    app.add_js_file(SCRIPT, loading_method="defer")


def _end(text: str) -> int:
    """Where the `div` ends whose inside a text begins with."""
    depth = 1
    for found in _DIV.finditer(text):
        depth += 1 if found[0] != "</div>" else -1
        if not depth:
            return found.start()
    return len(text)


def tied(markup: str, symbols: list[tuple[int, str, list[str]]]) -> str:
    """A frame with its symbols and variables marked.

    The TeX of an equation stays as it is; what is to be drawn stands in its attribute `data-tex`.

    Args:
        markup: What the frame has.
        symbols: The number, the TeX and the variables of each symbol.
    """
    numbers, written, _ = zip(*symbols, strict=True) if symbols else ((), (), ())
    variables = [(name, number) for number, _, names in symbols for name in names]

    def equation(match: re.Match[str]) -> str:
        drawn = html.escape(tex.marked(html.unescape(match[3]), written, numbers))
        return f'{match[1]} data-tex="{drawn}"{match[2]}{match[3]}'

    def code(match: re.Match[str]) -> str:
        return match[1] + source.marked(match[2], variables) + match[3]

    return _SOURCE.sub(code, _EQUATION.sub(equation, markup))
