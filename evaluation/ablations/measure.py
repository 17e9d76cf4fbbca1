"""Trains every model of the plan, and asks each all texts of the kinds that it learned."""

from collections.abc import Iterable
from typing import Any

from tqdm import tqdm

from evaluation.ablations.plan import Setting
from transformer_training.toy_language import kind, share_right, trained_model


def measure(plan: Iterable[Setting], seeds: int) -> list[dict[str, Any]]:
    """The share of right words of each model, trained at a constant learning rate, for each seed.

    Args:
        plan: What is trained.
        seeds: How many models of each; their seeds are 0, 1, ...

    Returns:
        A row for each setting, part and kind: "setting", "without" ("" for the whole model),
        "kind", "chance", and "shares", a number for each seed.
    """
    todo = [(setting, part) for setting in plan for part in ("", *setting.without)]
    rows = []
    for setting, part in tqdm(todo, unit="cells", disable=None):
        models = [
            trained_model(part or None, **setting.options, lr_decay=False, seed=seed)
            for seed in range(seeds)
        ]
        rows += [
            {
                "setting": setting.name,
                "without": part,
                "kind": name,
                "chance": kind(name).chance,
                "shares": [round(share_right(model, name), 4) for model in models],
            }
            for name in setting.kinds
        ]
    return rows
