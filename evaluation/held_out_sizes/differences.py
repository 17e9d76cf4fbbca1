"""How far two results are apart, and how far they may be."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from tests.transformer_layers.comparisons import relative_error

# Relative to the largest element. What is far from position 0 has its angle rounded; what has no
# bound here is a count.
BOUNDS = {"values": 1e-12, "changed configs": 1e-12, "gradients": 1e-11, "far values": 1e-10}


@dataclass
class Row:
    """What was found for one config: the largest difference of each kind, and those too large."""

    name: str
    largest: dict[str, float] = field(default_factory=dict)
    beyond: list[str] = field(default_factory=list)

    def note(self, kind: str, what: str, difference: float) -> None:
        """Keeps a difference of something, if there is none that is larger."""
        self.largest[kind] = max(difference, self.largest.get(kind, 0.0))
        if not difference <= BOUNDS.get(kind, 0.0):  # also where it is not a number
            self.beyond.append(f"{kind} of {what} {difference:.1e}")

    def values(self, what: str, ours: Tensor, theirs: Tensor, kind: str = "values") -> None:
        """Notes how far values are apart."""
        self.note(kind, what, relative_error(ours, theirs))

    def gradients(self, ours: Mapping[str, Tensor], theirs: Mapping[str, Tensor]) -> None:
        """Notes how far gradients are apart; some are 0 but for rounding, see `assert_same`."""
        floor = 1e-3 * max(each.abs().max().item() for each in theirs.values())
        for name, expected in theirs.items():
            self.note("gradients", name, relative_error(ours[name], expected, floor))

    def tokens(self, what: str, end: int | None, ours: list[int], theirs: list[int]) -> None:
        """Notes whether sequences differ, up to the token that ends them."""
        cut = [x[: x.index(end) + 1] if end in x else x for x in (ours, theirs)]
        self.note("other tokens", what, cut[0] != cut[1])

    def __str__(self) -> str:
        """One line."""
        found = ", ".join(f"{kind} {largest:.1e}" for kind, largest in self.largest.items())
        return f"{self.name}: {found}" + "".join(f"\n    BEYOND: {each}" for each in self.beyond)


def gradients_of(model: nn.Module) -> dict[str, Tensor]:
    """Those of all weights, by name."""
    named = model.named_parameters()
    return {name: each.grad for name, each in named if each.grad is not None}


def draw_weights(model: nn.Module, std: float) -> None:
    """Draws all weights, also biases, and gains around 1; wide maps smaller, as is usual."""
    for name, each in model.named_parameters():
        if each.requires_grad:
            is_gain = "norm" in name and name.endswith("weight")
            scale = (8 / each.shape[1]) ** 0.5 if each.ndim == 2 else 1.0
            nn.init.normal_(each, mean=float(is_gain), std=std * scale)


def changed(
    row: Row,
    folder: str,
    changes: Mapping[str, Mapping[str, Any]],
    ours: Callable[[], Tensor],
    theirs: Callable[[], Tensor],
) -> None:
    """With another config.json the logits are theirs, or the entry is refused by its name."""
    path = Path(folder, "config.json")
    text = path.read_text()
    for name, change in changes.items():
        path.write_text(json.dumps({**json.loads(text), **change}))
        try:
            logits = ours()
        except ValueError as error:
            row.note("refused without its name", name, name not in str(error))
            continue
        try:
            expected = theirs()
        except Exception:  # of whatever kind: it has no such model
            row.note("not refused", name, True)
        else:
            row.values(name, logits, expected, "changed configs")
    path.write_text(text)
