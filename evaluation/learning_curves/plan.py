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


_UPDATES = _doubled(200, 5)
_FEWER = _doubled(200, 4)
_FACTS = {"kinds": ("facts",), "batch": 128, "lr": 3e-3}
_TOLD = _doubled(150, 4)
_STACK = _doubled(100, 4)
_WIDER = {"n_embd": 64, "n_head": 2}


def _cells(
    setting: str, updates: tuple[int, ...], options: Mapping[str, Any], *parts: str
) -> list[Cell]:
    return [Cell(setting, updates, options, part) for part in parts]


PLAN: tuple[Cell, ...] = (
    *_cells("verbs, 1 block", _UPDATES, {}, "", "feed-forward", "activation", "norms"),
    *_cells("verbs, 1 block", _UPDATES, {}, "attention weights", "residuals"),
    # Without these three the loss, or a proof, says that no further update helps.
    *_cells("verbs, 1 block", _FEWER, {}, "attention", "mask", "positions"),
    *_cells("facts, 2 blocks", _TOLD, {**_FACTS, "n_layer": 2}, "", "attention weights"),
    *_cells("facts, 1 block", _TOLD, _FACTS, ""),
    *_cells("verbs, 8 blocks", _STACK, {"n_layer": 8}, "", "residuals", "norms"),
    *_cells(
        "verbs, 2 blocks, 4 heads",
        _FEWER,
        {"n_layer": 2, "n_head": 4},
        *("", "positions", "feed-forward"),
    ),
    # Other rates and sizes, for what failed at the first.
    *(
        Cell("verbs, 1 block", _UPDATES, options, part)
        for part in ("feed-forward", "activation", "norms")
        for options in (_WIDER, {"lr": 2.5e-3}, {"lr": 1e-2})
    ),
    *(
        Cell("facts, 2 blocks", _TOLD, {**_FACTS, "n_layer": 2, **options}, "attention weights")
        for options in (_WIDER, {"lr": 1.5e-3}, {"lr": 6e-3})
    ),
)
"""Every cell once, those first that the pages need most."""
