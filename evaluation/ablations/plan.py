"""Which models are trained, on what, and without which parts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from transformer_training.toy_language import VERBS

SEEDS = 10
PARTS = ("attention", "attention weights", "positions", "feed-forward", "activation", "norms")


@dataclass(frozen=True)
class Setting:
    """Models that differ in their seed and in the part that is taken out.

    Attributes:
        name: What they are called.
        options: What `trained_model` takes, beside the part and the seed.
        without: The parts that are taken out, each by itself; the whole model is always trained.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    without: tuple[str, ...] = ()

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of text that the models learn, and are asked."""
        return self.options.get("kinds", VERBS)


_OTHER = {"kinds": (*VERBS, "the other")}
_FACTS = {"kinds": ("facts",), "steps": 600, "batch": 128, "lr": 3e-3}
_STACK = {"steps": 400}  # half of what one block needs

PLAN = (
    Setting("1 block, 1 head", {}, (*PARTS, "mask", "residuals")),
    # Two heads beside one, which have as many parameters; and whether more steps help the one.
    Setting("the other, 1 head", _OTHER),
    Setting("the other, 1 head, twice the steps", {**_OTHER, "steps": 1600}),
    Setting("the other, 2 heads", {**_OTHER, "n_head": 2}, ("attention weights",)),
    # Two blocks beside one.
    Setting("facts, 1 block, 1 head", _FACTS),
    Setting("facts, 1 block, 4 heads", {**_FACTS, "n_head": 4}),
    Setting("facts, 2 blocks, 1 head", {**_FACTS, "n_layer": 2}, ("attention weights",)),
    # What a stack needs, and where its parts stand in for each other.
    Setting("2 blocks, 1 head", {**_STACK, "n_layer": 2}, ("residuals",)),
    Setting(
        "2 blocks, 4 heads",
        {**_STACK, "n_layer": 2, "n_head": 4},
        ("positions", "feed-forward"),
    ),
    Setting("8 blocks, 1 head", {**_STACK, "n_layer": 8}, ("residuals",)),
)
