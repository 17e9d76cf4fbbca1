"""Figures that follow the page: its text color in light and dark, its width on a phone."""

import html
import io
import re

from IPython.display import HTML
from matplotlib import rc_context
from matplotlib.figure import Figure

# After Okabe and Ito, who chose theirs for readers with any color vision. On a page each is darker
# in light mode and lighter in dark mode, so that words in it can be read; book.css says how.
PALETTE = ("#0b84c4", "#d9730d", "#1f9e77", "#c266a7", "#b59a00", "#8a8a8a")

_REPLACED = {
    r"<metadata>.*?</metadata>": "",
    r"<style.*?</style>": "",  # it would hold for the whole page; the book's stylesheet has it
    r"#000000": "currentColor",
    r"fill: #ffffff": "fill: var(--pst-color-background, transparent)",
    r'(<svg[^>]*?) width="[^"]*"': r"\1",
    r'(<svg[^>]*?) height="[^"]*"': r"\1",
}


def show(figure: Figure, alt: str) -> HTML:
    """Makes a matplotlib figure part of the page: black becomes the color of the page's text.

    Args:
        figure: The figure; faces become transparent. Drawn 5 inches wide it fills the column of
            a page, and reads well on a phone.
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
            buffer, format="svg", transparent=True, bbox_inches="tight", metadata={"Date": None}
        )
    figure.clear()
    width = 1.4 * figure.get_figwidth()  # words of 10 points then have the size of the page's
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    for number, color in enumerate(PALETTE):
        svg = svg.replace(color, f"var(--figure-{number}, {color})")
    for pattern, replacement in _REPLACED.items():
        svg = re.sub(pattern, replacement, svg, flags=re.DOTALL)
    label = html.escape(" ".join(alt.split()), quote=True)
    role = "group" if "<a " in svg else "img"  # nothing in an image could be followed
    svg = svg.replace("<svg", f'<svg role="{role}" aria-label="{label}"', 1)
    return HTML(f'<div class="page-figure" style="max-width: {width:.3g}in">{svg}</div>')  # type: ignore[no-untyped-call]  # IPython has no types
