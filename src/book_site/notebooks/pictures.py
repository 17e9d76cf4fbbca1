"""Makes images of the drawings in a notebook's outputs, which every program shows.

Jupyter takes from the HTML of a notebook that it does not trust, as of every one that was
downloaded, all drawings; the words in them stay, in a heap. It shows images in either case.
"""

import base64
import html
import re
from typing import Any
from xml.etree import ElementTree

from nbformat import NotebookNode

_DRAWING = re.compile(r"<svg\b.*?</svg>", re.DOTALL)
# What a figure is moved with by the scripts of a page, and by nothing else.
_MOVED = re.compile(r'(?<=</div>)<script type="application/json">.*?</script>', re.DOTALL)
_WORDS = re.compile(r'\baria-label="([^"]*)"')
_WIDTH = re.compile(r'style="max-width: ([\d.]+)(in|rem|px)"')
_PIXELS = {"in": 96, "rem": 16, "px": 1}
_NAMESPACE = "http://www.w3.org/2000/svg"
# A page lends a drawing its letters and the colors of its theme; an image has to bring them.
_LOOK = (
    "background: #fff; color: #000; font-family: sans-serif; --pst-color-primary: #176de8; "
    "--pst-color-success: #007838; --pst-color-warning: #f66a0a; --pst-color-danger: #c8283f"
)


def with_images(output: NotebookNode) -> NotebookNode:
    """An output whose HTML has images in the place of its drawings."""
    page = _MOVED.sub("", output.get("data", {}).get("text/html", ""))
    said: list[str] = []

    def image(drawing: re.Match[str]) -> str:
        found = _WORDS.search(drawing[0])
        words = html.unescape(found[1]) if found else ""
        try:
            address = _address(drawing[0])
        except ElementTree.ParseError:  # a browser reads it as HTML, and as nothing else
            return drawing[0]
        said.append(words)
        return f'<img alt="{html.escape(words)}"{_width(page)} src="{address}">'

    shown = _DRAWING.sub(image, page)
    if not said:
        return output
    data: dict[str, Any] = {**output["data"], "text/html": shown}
    if words := "\n".join(filter(None, said)):
        data["text/plain"] = words
    return NotebookNode({**output, "data": NotebookNode(data)})


def _address(drawing: str) -> str:
    """A drawing as the address of an image."""
    head, rest = drawing[: len("<svg")], drawing[len("<svg") :]
    if "xmlns=" not in rest.partition(">")[0]:
        head += f' xmlns="{_NAMESPACE}"'
    text = f'{head} style="{_LOOK}"{rest}'
    ElementTree.fromstring(text)
    return f"data:image/svg+xml;base64,{base64.b64encode(text.encode()).decode()}"


def _width(page: str) -> str:
    """The attribute that gives an image the width that its drawing may have."""
    found = _WIDTH.search(page)
    return f' width="{float(found[1]) * _PIXELS[found[2]]:.0f}"' if found else ""
