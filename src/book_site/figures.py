"""Figures that follow the page: its text color in light and dark, its width on a phone."""

import copy
import html
import io
import json
import re
from typing import Any

from IPython.display import HTML
from matplotlib import rc_context
from matplotlib.figure import Figure

# After Okabe and Ito, who chose theirs for readers with any color vision. On a page each is darker
# in light mode and lighter in dark mode, so that words in it can be read; book.css says how.
PALETTE = ("#0b84c4", "#d9730d", "#1f9e77", "#c266a7", "#b59a00", "#8a8a8a")

_REPLACED = {
    r"<metadata>.*?</metadata>": "",
    r"<!--.*?-->": "",
    r">\s+<": "><",
    r'<g id="[A-Za-z][\w.]*_\d+">': "<g>",  # the same in each figure of a page
    r"<style.*?</style>": "",  # it would hold for the whole page; the book's stylesheet has it
    r"#000000": "currentColor",
    r"fill: #ffffff": "fill: var(--pst-color-background, transparent)",
    r'(<svg[^>]*?) width="[^"]*"': r"\1",
    r'(<svg[^>]*?) height="[^"]*"': r"\1",
}
# Places and sizes; words and addresses have numbers as well, and keep them.
_MEASURES = re.compile(r' (?:d|height|points|style|width|[cxy][xy12]?)="[^"]*"')
_BEYOND = re.compile(r"(\d\.\d{2})\d+")  # a hundredth of a point is less than a screen shows


def show(figure: Figure, alt: str) -> HTML:
    """Makes a matplotlib figure part of the page: black becomes the color of the page's text.

    Args:
        figure: The figure; faces become transparent. Drawn 4.4 inches wide, its words of 10 points
            have 11 pixels on a phone of 390 pixels.
        alt: What the figure shows, for readers who cannot see it.

    Returns:
        The figure as inline SVG.

    Raises:
        ValueError: If `alt` says nothing.
    """
    if not alt.strip():
        raise ValueError(f"alt must say what the figure shows, got {alt!r}")
    buffer = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "verified_book"}):
        figure.savefig(
            buffer,
            format="svg",
            transparent=True,
            bbox_inches="tight",
            pad_inches=0.04,
            metadata={"Date": None},
        )
    figure.clear()
    width = 1.4 * figure.get_figwidth()  # words of 10 points then have the size of the page's
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    for number, color in enumerate(PALETTE):
        svg = svg.replace(color, f"var(--figure-{number}, {color})")
    for pattern, replacement in _REPLACED.items():
        svg = re.sub(pattern, replacement, svg, flags=re.DOTALL)
    svg = _MEASURES.sub(lambda measures: _BEYOND.sub(r"\1", measures[0]), svg)
    label = html.escape(" ".join(alt.split()), quote=True)
    role = "group" if "<a " in svg else "img"  # nothing in an image could be followed
    svg = svg.replace("<svg", f'<svg role="{role}" aria-label="{label}"', 1)
    return HTML(f'<div class="page-figure" style="max-width: {width:.3g}in">{svg}</div>')  # type: ignore[no-untyped-call]  # IPython has no types


def interactive(still: HTML, name: str, /, digits: int = 6, **data: Any) -> HTML:
    """Lets a reader move a figure, where the page's scripts run.

    Args:
        still: What `show` made. It stays in print, in notebooks, and where no script runs.
        name: The figure's name in the option `book_site_interactive`.
        digits: Significant digits that are kept of each float in `data`.
        data: What the figure is made from: numbers, texts, lists, arrays and tensors.

    Returns:
        The still picture, with the data beside it.

    Raises:
        ValueError: If a number in `data` is not finite, since JSON has none such.

    Examples:
        >>> interactive(HTML("<svg/>"), "dice", digits=3, shares=[1 / 3]).data
        '<div class="live-figure" data-live="dice"><div class="live-still"><svg/></div>\
<script type="application/json">{"shares":[0.333]}</script></div>'
    """
    kept = json.dumps(_rounded(data, digits), allow_nan=False, separators=(",", ":"))
    kept = kept.replace("<", r"\u003c")  # nothing in it ends the script
    moved = copy.copy(still)
    moved.data = (
        f'<div class="live-figure" data-live="{html.escape(name)}">'
        f'<div class="live-still">{still.data}</div>'
        f'<script type="application/json">{kept}</script></div>'
    )
    return moved


def _rounded(data: Any, digits: int) -> Any:
    """The same as JSON has it, with floats that are not longer than they need be."""
    if hasattr(data, "tolist"):
        data = data.tolist()
    if isinstance(data, dict):
        return {name: _rounded(value, digits) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [_rounded(value, digits) for value in data]
    return float(f"{data:.{digits}g}") if isinstance(data, float) else data
