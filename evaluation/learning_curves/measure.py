"""Trains the models of the plan, and asks each after more and more updates."""

from collections.abc import Iterable, Iterator
from typing import Any

import torch

from evaluation.learning_curves.plan import PLAN, Cell
from transformer_training.toy_language import kind, share_right, trained_model

Row = dict[str, Any]


def measure(cells: Iterable[Cell], seeds: int, there: Iterable[Row] = ()) -> Iterator[Row]:
    """The curve of each cell for each seed.

    A model that is asked after n updates is trained anew, from the same seed and at a constant
    learning rate: its first n updates are those of the model that is trained for 2n. Two times in a
    row all right, and it has learned.

    Args:
        cells: What is trained.
        seeds: How many models of each; their seeds are 0, 1, ...
        there: Rows that are there already; they are not made again.

    Yields:
        Rows: "setting", "without", "options", "seed", the "updates" after which the model was
        asked, and for each of these the mean "loss" of all texts, and "shares", a list for each
        kind of text.
    """
    known = {_key(row): row for row in there}
    for cell in cells:
        for seed in range(seeds):
            row: Row = {**_of(cell), "seed": seed}
            yield known.get(_key(row)) or {**row, **_curve(cell, seed)}


def again(record: dict[str, Any]) -> tuple[list[Row], list[Row]]:
    """Trains one model without each part again, that of the fewest updates.

    Args:
        record: What was measured before.

    Returns:
        The rows as they are now, and as they were recorded.
    """
    shortest: dict[str, Row] = {}
    for row in record["rows"]:
        before = shortest.get(row["without"])
        if before is None or _updates(row) < _updates(before):
            shortest[row["without"]] = row
    chosen = list(shortest.values())
    cells = {_key({**_of(cell), "seed": 0}): cell for cell in PLAN}
    now = [{**row, **_curve(cells[_key({**row, "seed": 0})], row["seed"])} for row in chosen]
    return now, chosen


def _updates(row: Row) -> int:
    """Of all models of a row together: each was trained anew."""
    return sum(row["updates"])


def _of(cell: Cell) -> Row:
    options = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in cell.options.items()
    }
    return {"setting": cell.setting, "without": cell.without, "options": options}


def _curve(cell: Cell, seed: int) -> Row:
    updates: list[int] = []
    losses: list[float] = []
    shares: dict[str, list[float]] = {name: [] for name in cell.kinds}
    for steps in cell.updates:
        model = trained_model(
            cell.without or None, **cell.options, steps=steps, lr_decay=False, seed=seed
        ).double()
        with torch.no_grad():
            loss = sum(model.loss(kind(name).texts).item() for name in cell.kinds)
        updates.append(steps)
        losses.append(round(loss / len(cell.kinds), 4))
        for name in cell.kinds:
            shares[name].append(round(share_right(model, name), 4))
        if all(each[-2:] == [1.0, 1.0] for each in shares.values()):
            break
    return {"updates": updates, "loss": losses, "shares": shares}


def _key(row: Row) -> str:
    options = sorted((name, str(value)) for name, value in row["options"].items())
    return repr((row["setting"], row["without"], options, row["seed"]))
