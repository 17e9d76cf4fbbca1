"""Which parameter of a candidate got which weight of the book's layer, and whether that is sure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from torch import Tensor, nn

from layer_checks.kit.candidates import counterparts
from layer_checks.kit.matching import Match, Source


@dataclass(frozen=True)
class Loaded:
    """What was given to a layer as weights, by name or by order."""

    layer: nn.Module
    weights: Mapping[str, Tensor]

    @property
    def by_name(self) -> bool:
        """Whether the layer has the book's names and shapes."""
        shapes = {name: each.shape for name, each in self.weights.items()}
        return shapes == {name: each.shape for name, each in self.layer.named_parameters()}

    @property
    def named(self) -> bool:
        """Whether names settle which weight is which: its own are the book's, or the reverse.

        One of the same name and another number of elements is no other form of that weight.
        """
        own, books = dict(self.layer.named_parameters()), self.weights
        shared = own.keys() & books.keys()
        shapes = all(
            own[name].shape == books[name].shape or own[name].numel() != books[name].numel()
            for name in shared
        )
        return bool(shared) and len(shared) in (len(own), len(books)) and shapes

    @property
    def holds_too_little(self) -> bool:
        """Whether it has fewer numbers in matrices than the book's, or none: no other form has."""
        own = [each.numel() for each in self.layer.parameters() if each.ndim > 1]
        books = [each.numel() for each in self.weights.values() if each.ndim > 1]
        return sum(own) < sum(books) or not list(self.layer.parameters())

    @property
    def match(self) -> Match:
        """The match, as one that was looked for."""
        pairs = counterparts(self.layer, self.weights)
        own = dict(self.layer.named_parameters())
        left = tuple(name for name in own if name not in pairs)
        absent = frozenset(self.weights) - set(pairs.values())
        sources = {name: Source((known,)) for name, known in pairs.items()}
        return Match(sources, absent, left)

    @property
    def complete(self) -> bool:
        """Whether each weight and each parameter had its counterpart."""
        pairs = counterparts(self.layer, self.weights)
        own = dict(self.layer.named_parameters())
        return len(pairs) == len(own) == len(self.weights) and all(
            own[name].shape == self.weights[known].shape for name, known in pairs.items()
        )

    @property
    def text(self) -> str:
        """The match in words, empty where it is by name."""
        return str(replace(self.match, absent=frozenset()))
