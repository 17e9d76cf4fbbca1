"""Norms that are functions of their weights, as in `rms_norm(x, weight, eps)`."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from layer_checks.kit.arguments import SYNONYMS, CannotTakeError, taken_by
from layer_checks.kit.definitions import Candidate, Form

# What others call the weights of a norm, by the book's names.
_WEIGHTS: Mapping[str, frozenset[str]] = {
    "weight": frozenset("weight w g gamma gain scale alpha".split()),
    "bias": frozenset("bias b beta shift".split()),
}
_EPS = frozenset({"eps", *SYNONYMS["eps"]})


class OfFunction(nn.Module):
    """A norm that holds the weights of a function.

    Args:
        function: Takes an input, and each weight by its name.
        weights: For the function's names of weights, the book's.
        d_model: Features of a position.
        options: The function's other arguments.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        weights: Mapping[str, str],
        d_model: int,
        options: Mapping[str, Any],
    ) -> None:
        super().__init__()
        self.function, self.named, self.options = function, dict(weights), dict(options)
        for name in weights.values():
            filled = torch.ones(d_model) if name == "weight" else torch.zeros(d_model)
            self.register_parameter(name, nn.Parameter(filled))

    def forward(self, x: Tensor) -> Any:
        """What the function returns."""
        weights = {theirs: getattr(self, ours) for theirs, ours in self.named.items()}
        return self.function(x, **weights, **self.options)


def forms_of_norms(candidate: Candidate) -> Iterator[Form]:
    """The form of a function that is given its weights."""
    if not inspect.isroutine(candidate):
        return
    taken = list(taken_by(candidate).values())[1:]
    weights = {
        each.name: ours for each in taken for ours in _WEIGHTS if each.name in _WEIGHTS[ours]
    }
    own = next((each for each in taken if each.name in _EPS), None)
    required = {each.name for each in taken if each.default is each.empty}
    if not weights or required - weights.keys() - ({own.name} if own else set()):
        return

    def build(d_model: int, eps: float | None = None, *, bias: bool = True) -> nn.Module:
        dropped = {name for name, ours in weights.items() if ours == "bias" and not bias}
        if dropped & required:
            raise CannotTakeError("it can't do without a bias", "bias")
        if eps is not None and own is None:
            raise CannotTakeError("it takes no eps", "eps")
        if eps is None and own is not None and own.name in required:
            raise CannotTakeError("it has no eps by default", "eps")
        named = {name: ours for name, ours in weights.items() if name not in dropped}
        options = {own.name: eps} if own is not None and eps is not None else {}
        return OfFunction(candidate, named, d_model, options)

    words = "a function that is given its weights: they are held for it"
    yield Form(words, lambda layer, x: layer(x), build=lambda given: build)
