"""What the curves say of a part: how many models learn without it, and how much later."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from matplotlib.axes import Axes

from book_site.figures import PALETTE
from evaluation.learning_curves.measure import Row

LEARNED = 0.95


@dataclass(frozen=True)
class Verdict:
    """How the models of a cell learn, beside whole ones.

    Attributes:
        learned: How many end with `LEARNED` of the words of each kind right.
        models: How many there are.
        updates: Until a model has learned, in the median; infinity if half of them do not.
        best: The largest share of the weakest kind at the end.
        fall: How much the loss still fell in the last doubling of the updates, in nats: the most
            of all models that have not learned; 0 if all have.
    """

    learned: int
    models: int
    updates: float
    best: float
    fall: float


def weakest(row: Row) -> list[float]:
    """The share of right words of the weakest kind, each time that the model was asked."""
    return [min(shares) for shares in zip(*row["shares"].values(), strict=True)]


def updates_until(row: Row, share: float = LEARNED) -> float:
    """The updates until a model has a share of each kind right, and keeps it; or infinity."""
    until = float("inf")
    for updates, right in zip(row["updates"], weakest(row), strict=True):
        if right < share:
            until = float("inf")
        elif until == float("inf"):
            until = updates
    return until


def curves(
    rows: Iterable[Row], setting: str, without: str = "", **options: Any
) -> list[dict[str, Any]]:
    """The rows of one cell, one for each seed.

    Args:
        rows: "rows" of a record.
        setting: The name of the setting.
        without: The part that is taken out; "" for the whole model.
        **options: The rates and sizes by which the cell differs from the first one of its setting
            and part: `lr`, `n_embd`, `n_head`.

    Raises:
        ValueError: If the record has no such rows.
    """
    own = [row for row in rows if row["setting"] == setting and row["without"] == without]
    first: Mapping[str, Any] = own[0]["options"] if own else {}
    found = [row for row in own if row["options"] == {**first, **options}]
    if not found:
        raise ValueError(f"the record has no {setting!r} without {without!r} with {options}")
    return found


def verdict(rows: Iterable[Row]) -> Verdict:
    """What the curves of a cell say.

    Args:
        rows: As :func:`curves` returns them.
    """
    rows = list(rows)
    failed = [row for row in rows if weakest(row)[-1] < LEARNED]
    return Verdict(
        learned=len(rows) - len(failed),
        models=len(rows),
        updates=median(map(updates_until, rows)),
        best=max(weakest(row)[-1] for row in rows),
        fall=max((row["loss"][-2] - row["loss"][-1] for row in failed), default=0.0),
    )


def table(rows: Iterable[Row]) -> str:
    """A line for each cell: models that have learned, updates until then, shares at the end."""
    cells: dict[str, list[Row]] = {}
    for row in rows:
        sizes = " ".join(
            f"{name} {value:g}"
            for name, value in row["options"].items()
            if name in ("lr", "n_embd", "n_head")
        )
        name = f"{row['setting']:16} {row['without'] or 'whole':18} {sizes:22}"
        cells.setdefault(name, []).append(row)
    lines = []
    for name, own in cells.items():
        said = verdict(own)
        ends = [weakest(row)[-1] for row in own]
        lines.append(
            f"{name} {said.learned:2} of {said.models:2} learn in {said.updates:5g}, "
            f"{median(ends):.2f} ({min(ends):.2f}-{max(ends):.2f}), fall {said.fall:.3f}"
        )
    return "\n".join(lines)


def draw(axes: Axes, rows: Sequence[Row], color: str = PALETTE[0], last: int = 0) -> None:
    """Draws the curves of a cell: the share of the weakest kind by updates, a line for each model.

    Args:
        axes: Where to draw.
        rows: As :func:`curves` returns them.
        color: Of the lines.
        last: To which updates a curve goes on that has ended because its model had learned.
    """
    for row in rows:
        updates, right = list(row["updates"]), weakest(row)
        if updates[-1] < last:
            updates, right = [*updates, last], [*right, right[-1]]
        axes.plot(updates, right, color=color, lw=0.8, marker="o", ms=2, clip_on=False)
    axes.set(xscale="log", ylim=(0, 1))
