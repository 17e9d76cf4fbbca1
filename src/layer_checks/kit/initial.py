"""The values that parameters start from."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from layer_checks.evidence.evidence import Evidence, holds
from layer_checks.kit.candidates import counterparts, current_match, weights_of
from layer_checks.kit.definitions import Layer, Start

# How each module draws the parameters that are its own; for the others, they are read off.
_STARTS: dict[type[nn.Module], Callable[[Any], Mapping[str, Start]]] = {}


def declare(layer: Layer) -> None:
    """Makes known what a layer's own parameters start from, where they are drawn.

    Args:
        layer: The layer, which says it in `starts`.
    """
    starts = layer.starts
    if starts is not None:
        _STARTS[layer.right] = lambda part: starts


def _of_linear(part: nn.Linear) -> Mapping[str, Start]:
    bound = 1 / math.sqrt(part.in_features)
    return dict.fromkeys(("weight", "bias"), Start(std=bound / math.sqrt(3), bound=bound))


_STARTS[nn.Linear] = _of_linear


def starts_as(layer: nn.Module, right: nn.Module) -> Evidence:
    """Checks the initial values of all parameters, against what the parts of a right layer ask for.

    An `nn.Linear` starts from a uniform distribution up to 1/√in_features, a part that is a known
    layer from what this declares, and any other from constants, as gains and biases do.

    Args:
        layer: The candidate, as it is built.
        right: A layer of the same sizes, whose parts and names of parameters count.

    Returns:
        How many parameters were compared.

    Raises:
        AssertionError: If one starts from something else, or none has a counterpart.
        ValueError: If another part of the right layer draws a parameter.
    """
    expected, parameters = _starts(right), dict(layer.named_parameters())
    places = _places(layer, right)
    wrong = [
        f"{name} {found}"
        for name, known_as, place in places
        if (found := _what_is_wrong(parameters[name].detach().double()[place], expected[known_as]))
    ]
    if wrong or not places:
        raise AssertionError(f"not equal: {', '.join(wrong) or 'no parameter has its name'}")
    count = len({name for name, _, _ in places})
    return holds(True, f"{count} parameters start as they should")


def _places(layer: nn.Module, right: nn.Module) -> list[tuple[str, str, Tensor]]:
    """Which parameter holds which weight of the right layer, and at which of its elements."""
    weights = weights_of(right)
    match = current_match()
    if match is None:
        parameters = dict(layer.named_parameters())
        return [
            (name, known_as, torch.ones_like(parameters[name], dtype=torch.bool))
            for name, known_as in counterparts(layer, weights).items()
        ]
    # Each weight is filled with a number of its own, which stays with it wherever it is put.
    numbered = {
        name: torch.full_like(weight, number)
        for number, (name, weight) in enumerate(weights.items(), start=1)
    }
    found = []
    for name, numbers in match.weights_for(layer, numbered).items():
        for number, known_as in enumerate(weights, start=1):
            place = numbers == number
            if place.any():
                found.append((name, known_as, place))
    return found


def _starts(right: nn.Module) -> dict[str, Start]:
    starts: dict[str, Start] = {}
    for path, part in right.named_modules():
        known = next((_STARTS[each] for each in type(part).__mro__ if each in _STARTS), None)
        of_part = dict(known(part)) if known is not None else {}
        of_part |= {
            name: _constant(each, f"{path}.{name}".lstrip("."))
            for name, each in part.named_parameters(recurse=False)
            if name not in of_part
        }
        starts |= {f"{path}.{name}".lstrip("."): start for name, start in of_part.items()}
    return starts


def _constant(values: Tensor, name: str) -> Start:
    first = float(values.detach().flatten()[0])
    if bool((values != first).any()):
        raise ValueError(
            f"{name} of the right layer is drawn: tell how, in `starts` of the `Layer` of its part"
        )
    return Start(first)


def _what_is_wrong(values: Tensor, start: Start) -> str:
    """In a few words; nothing where the values are as they should be."""
    if start.value is not None:
        differs = bool((values != start.value).any())
        return f"not all {start.value:g}" if differs else ""
    found = float(values.square().mean().sqrt())
    # Six standard errors of a normal distribution's; a uniform one has smaller ones.
    if abs(found / start.std - 1) > 6 / math.sqrt(2 * values.numel()):
        return f"deviates by {found:.2g} against {start.std:.2g}"
    largest = float(values.abs().max())
    return f"up to {largest:.2g} against {start.bound:.2g}" if largest > start.bound else ""
