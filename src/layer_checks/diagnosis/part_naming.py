"""Which known mistake of a part gives the values that a candidate has there, in a composed layer.

The part has the candidate's weights and the input of its call, so nothing is to be matched: each
wrong version of the part, and of what it is made of, is called in its place.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn

from layer_checks.diagnosis.instances import sizes_of
from layer_checks.evidence.randomness import seeded
from layer_checks.kit.arguments import signature_of
from layer_checks.kit.candidates import built, deep_copy
from layer_checks.kit.definitions import Layer, WrongVersion
from layer_checks.kit.rotations import each_rotation
from layer_checks.registry import LAYERS
from transformer_layers import RotaryPositions

_RTOL, _ATOL = 1e-4, 1e-6  # a candidate's angles may be of float32


def mistake_in(part: nn.Module, whole: nn.Module, x: Tensor, output: Tensor) -> str:
    """The mistake that gives this output, with the layer whose it is; empty if none or several do.

    Args:
        part: The right part, with the weights.
        whole: The right layer that it is a part of.
        x: Its input.
        output: The candidate's.
    """
    part = _by_itself(part, whole)
    found: dict[str, None] = {}
    ways = (each for _ in each_rotation(part) for each in _with_each_mistake(part))
    for layer, version, wrong in ways:
        with suppress(Exception), torch.no_grad(), seeded(0):  # not each can be called like this
            given = wrong(x)
            given = given[0] if isinstance(given, tuple) else given
            if given.shape == output.shape and torch.allclose(given.double(), output, _RTOL, _ATOL):
                found[f"{layer.name} behaves like: {version}"] = None
    return next(iter(found)) if len(found) == 1 else ""


def _by_itself(part: nn.Module, whole: nn.Module) -> nn.Module:
    """A copy that is called with its input alone: what its model hands on to it, it has inside."""
    rotation = next((each for each in whole.modules() if isinstance(each, RotaryPositions)), None)
    layer = _layer_of(part)
    if layer is None or rotation is None:
        return deep_copy(part)
    options = _options(layer, part)
    signature = signature_of(layer.right)
    if signature and "positions" in signature.parameters:
        options["positions"] = deep_copy(rotation)
    return _with_state_of(part, layer.right, options) or deep_copy(part)


def _with_each_mistake(part: nn.Module) -> Iterator[tuple[Layer, WrongVersion, nn.Module]]:
    """The part with each known mistake of its own, and of the layers inside it."""
    for place, module in part.named_modules():
        layer = _layer_of(module)
        if layer is None:
            continue
        options = _options(layer, module)
        for version in layer.wrong_versions:
            wrong = None if version.generic else _with_state_of(module, version.layer, options)
            if wrong is None:
                continue
            if not place:
                yield layer, version, wrong
                continue
            whole = deep_copy(part)
            outer, _, name = place.rpartition(".")
            setattr(whole.get_submodule(outer), name, wrong)
            yield layer, version, whole


def _layer_of(module: nn.Module) -> Layer | None:
    return next((each for each in LAYERS.values() if each.right is type(module)), None)


def _options(layer: Layer, module: nn.Module) -> dict[str, Any]:
    """The arguments with which a right layer was built, but for those that are the defaults."""
    signature = signature_of(layer.right)
    parameters = signature.parameters if signature else {}
    found = {name: getattr(module, name, None) for name in parameters}
    found |= sizes_of(layer, module) or {}
    return {
        name: value
        for name, value in found.items()
        if value is not None and not isinstance(value, Tensor) and value != parameters[name].default
    }


def _with_state_of(module: nn.Module, kind: Any, options: dict[str, Any]) -> nn.Module | None:
    """A layer of these options with the weights of another; None if there is none."""
    with suppress(Exception):  # one that takes fewer options, or holds weights in another form
        layer = built(kind, **options).double().eval()
        layer.load_state_dict(module.state_dict())
        return layer
    return None
