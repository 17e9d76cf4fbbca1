"""The record as a table, and as a figure that shows every model as a dot."""

from collections.abc import Sequence
from statistics import median
from typing import Any

from matplotlib.figure import Figure

from book_site.figures import PALETTE

Rows = Sequence[dict[str, Any]]


def shares(rows: Rows, setting: str, without: str, kind: str) -> list[float]:
    """The shares of right words of one cell, a number for each seed.

    Args:
        rows: "rows" of a record.
        setting: The name of the setting.
        without: The part that is taken out; "" for the whole model.
        kind: The name of the kind of text.

    Returns:
        The shares, in the order of the seeds.

    Raises:
        ValueError: If the record has no such cell.
    """
    asked = {"setting": setting, "without": without, "kind": kind}
    for row in rows:
        if asked.items() <= row.items():
            return list(row["shares"])
    raise ValueError(f"the record has no cell of {asked}")


def table(rows: Rows) -> str:
    """The median of each cell with the smallest and the largest share, as text."""
    lines = []
    for setting in dict.fromkeys(row["setting"] for row in rows):
        own = [row for row in rows if row["setting"] == setting]
        kinds = list(dict.fromkeys(row["kind"] for row in own))
        lines += ["", f"{setting:20}" + "".join(f"{kind:>17}" for kind in kinds)]
        for without in dict.fromkeys(row["without"] for row in own):
            cells = (shares(own, setting, without, kind) for kind in kinds)
            lines.append(
                f"{f'without {without}' if without else 'whole':20}"
                + "".join(f"{_range(cell):>17}" for cell in cells)
            )
    return "\n".join(lines[1:])


def _range(cell: Sequence[float]) -> str:
    return f"{median(cell):.2f} ({min(cell):.2f}-{max(cell):.2f})"


def dots(
    rows: Rows,
    setting: str,
    kinds: Sequence[str],
    without: Sequence[str],
    color: str = PALETTE[0],
) -> Figure:
    """Draws a panel for each kind of text, a line for each part, and a dot for each model.

    Args:
        rows: "rows" of a record.
        setting: The name of the setting.
        kinds: The kinds of text, from left to right; up to four can be read on a phone.
        without: The parts that are taken out, from top to bottom; "" for the whole model.
        color: Of the dots.

    Returns:
        The figure, as wide as one of a page. A dotted line is at chance.

    Raises:
        ValueError: If the record has no such cell.
    """
    figure = Figure(figsize=(4.4, 0.7 + 0.3 * len(without)), layout="constrained")
    for panel, kind in zip(
        figure.subplots(1, len(kinds), sharey=True, squeeze=False)[0], kinds, strict=True
    ):
        for height, part in enumerate(without):
            cell = shares(rows, setting, part, kind)
            # Seeds lie one below the other, so that equal dots do not hide each other.
            spread = [height + 0.5 * (i / max(len(cell) - 1, 1) - 0.5) for i in range(len(cell))]
            panel.plot(cell, spread, "o", color=color, ms=3, mew=0, clip_on=False)
        [chance] = {row["chance"] for row in rows if row["kind"] == kind}
        panel.axvline(chance, color="black", lw=0.8, ls=":")
        panel.set(xlim=(0, 1), ylim=(len(without) - 0.5, -0.5), xticks=(0, 0.5, 1))
        panel.set_xticklabels(("0", "½", "1"))
        panel.set_yticks(
            range(len(without)), [f"no {part}" if part else "whole" for part in without]
        )
        panel.set_title(kind)
        panel.tick_params(length=0)
        for side in ("top", "left", "right"):
            panel.spines[side].set_visible(False)
    return figure
