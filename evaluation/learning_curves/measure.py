"""Trains the models of the plan, and asks each after more and more updates."""

from collections.abc import Iterable, Iterator
from typing import Any

import torch

from evaluation.learning_curves.plan import Cell
from transformer_training.toy_language import kind, share_right, trained_model

Row = dict[str, Any]


def measure(cells: Iterable[Cell], seeds: int, there: Iterable[Row] = ()) -> Iterator[Row]:
    """The curve of each cell for each seed.

    A model that is asked after n updates is trained anew, from the same seed: its first n updates
    are those of the model that is trained for 2n. Two times in a row all right, and it has learned.

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
            row: Row = {
                "setting": cell.setting,
                "without": cell.without,
                "options": {
                    name: list(value) if isinstance(value, tuple) else value
                    for name, value in cell.options.items()
                },
                "seed": seed,
            }
            yield known.get(_key(row)) or {**row, **_curve(cell, seed)}


def _curve(cell: Cell, seed: int) -> Row:
    updates: list[int] = []
    losses: list[float] = []
    shares: dict[str, list[float]] = {name: [] for name in cell.kinds}
    for steps in cell.updates:
        model = trained_model(cell.without or None, **cell.options, steps=steps, seed=seed).double()
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
