"""Which models learn what, without which parts, at which rates, widths and numbers of heads."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from transformer_training.toy_language import VERBS

SEEDS = 10


@dataclass(frozen=True)
class Cell:
    """Models that differ in their seed alone.

    Attributes:
        setting: What models of this kind are called, whatever their rate and size.
        updates: The numbers of updates after which they are asked; ascending.
        options: What `trained_model` takes, beside the part, the updates and the seed.
        without: The part that is taken out; "" for the whole model.
    """

    setting: str
    updates: tuple[int, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    without: str = ""

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of text that the models learn, and are asked."""
        return tuple(self.options.get("kinds", VERBS))


def _doubled(first: int, times: int) -> tuple[int, ...]:
    return tuple(first * 2**i for i in range(times))


def _cells(
    setting: str,
    updates: tuple[int, ...],
    base: Mapping[str, Any],
    parts: tuple[str, ...],
    tried: tuple[str, ...] = (),
    variants: tuple[Mapping[str, Any], ...] = (),
) -> list[Cell]:
    """The whole model and each part; and those of `tried` again, with other rates and sizes."""
    plain = [Cell(setting, updates, base, part) for part in ("", *parts)]
    others = [
        Cell(setting, updates, {**base, **variant}, part) for part in tried for variant in variants
    ]
    return plain + others


_VERBS = _doubled(200, 5)
_FACTS = {"kinds": ("facts",), "batch": 128, "lr": 3e-3}
_WIDER = ({"n_embd": 64, "n_head": 2}, {"n_embd": 128, "n_head": 4})
# The mask, attention, and in one block positions are needed by what the sentences are: no rate
# and no width changes that. Of the others that are missed a lot, rates and widths are tried.
_TRIED = ("feed-forward", "activation", "norms")

PLAN: tuple[Cell, ...] = (
    *_cells(
        "verbs, 1 block",
        _VERBS,
        {},
        ("attention", "mask", "positions", *_TRIED, "attention weights", "residuals"),
        _TRIED,
        ({"lr": 2.5e-3}, {"lr": 1e-2}, *_WIDER),
    ),
    *_cells(
        "verbs, 2 blocks, 4 heads",
        _VERBS[:3],
        {"n_layer": 2, "n_head": 4},
        ("positions", "feed-forward"),
    ),
    *_cells(
        "facts, 2 blocks",
        _doubled(150, 4),
        {**_FACTS, "n_layer": 2},
        ("attention weights", "positions"),
        ("attention weights",),
        ({"lr": 1.5e-3}, {"lr": 6e-3}, _WIDER[0]),
    ),
    *_cells("facts, 1 block", _doubled(150, 4), _FACTS, (), ("",), (_WIDER[0],)),
    *_cells(
        "verbs, 8 blocks",
        _doubled(100, 4),
        {"n_layer": 8},
        ("residuals", "norms"),
        ("residuals", "norms"),
        ({"lr": 1.25e-3},),
    ),
)
"""Every cell once, those first that the pages need most."""
