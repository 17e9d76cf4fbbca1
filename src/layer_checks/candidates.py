"""Handling of layers that others wrote: giving them weights, and asking for their gradients."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from layer_checks.definitions import Candidate
from layer_checks.evidence import Evidence, equivalent, holds, raises
from layer_checks.gradients import differentiated
from layer_checks.randomness import seeded

randn64 = partial(torch.randn, dtype=torch.float64)

Module = TypeVar("Module", bound=nn.Module)


def randomized(module: Module, std: float = 0.2) -> Module:
    """Draws every parameter anew, normal with mean 0, and returns the module."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(std=std)
    return module


def weights_of(module: nn.Module) -> dict[str, Tensor]:
    """The parameters by name, as values."""
    return {name: parameter.detach().clone() for name, parameter in module.named_parameters()}


def built(candidate: Candidate, *args: Any, **kwargs: Any) -> nn.Module:
    """Builds a layer, which must be an `nn.Module`.

    Its initial weights come from a random state of their own, so that the inputs drawn next do not
    depend on how many numbers a layer draws.

    Raises:
        AssertionError: If it is something else.
    """
    with seeded(torch.initial_seed() + 1):
        layer = candidate(*args, **kwargs)
    if not isinstance(layer, nn.Module):
        raise AssertionError(f"not a torch.nn.Module but {type(layer).__name__}")
    return layer


def load(layer: Module, weights: Mapping[str, Tensor]) -> Module:
    """Copies weights into a layer as far as their names, or else their order, fit.

    A weight without a counterpart is left out: what that changes, a check of values shows.

    Raises:
        AssertionError: If a parameter of the right name has another shape.
    """
    parameters = dict(layer.named_parameters())
    for name, parameter in parameters.items():
        if name in weights and parameter.shape != weights[name].shape:
            raise AssertionError(
                f"not equal: shape of {name}: {tuple(parameter.shape)} against "
                f"{tuple(weights[name].shape)}"
            )
    with torch.no_grad():
        for name, known_as in counterparts(layer, weights).items():
            parameters[name].copy_(weights[known_as])
    return layer


def counterparts(layer: nn.Module, weights: Mapping[str, Tensor]) -> dict[str, str]:
    """Which weight each parameter takes, by name; by order where no name and every shape agrees."""
    shapes = {name: parameter.shape for name, parameter in layer.named_parameters()}
    same_order = list(shapes.values()) == [weight.shape for weight in weights.values()]
    if same_order and not shapes.keys() & weights.keys():
        return dict(zip(shapes, weights, strict=True))
    return {name: name for name in shapes if name in weights}


def same(found: object, expected: object) -> Evidence:
    """Checks that two plain values, such as shapes or names, are the same."""
    if found != expected:
        raise AssertionError(f"not equal: {found} against {expected}")
    return holds(True, f"{found}")


def has_parameters(layer: nn.Module, **shapes: tuple[int, ...]) -> Evidence:
    """Checks the names and shapes of all parameters; dots in names are written as `__`."""
    expected = {name.replace("__", "."): shape for name, shape in shapes.items()}
    found = {name: tuple(parameter.shape) for name, parameter in layer.named_parameters()}
    wrong = [f"no {name}" for name in expected if name not in found]
    wrong += [f"unknown {name}" for name in found if name not in expected]
    wrong += [
        f"{name} {found[name]} against {shape}"
        for name, shape in expected.items()
        if found.get(name, shape) != shape
    ]
    if wrong:
        raise AssertionError(f"not equal: {', '.join(wrong)}")
    return holds(True, ", ".join(f"{name} {shape}" for name, shape in expected.items()))


def refused(layer: Candidate, masked: Sequence[tuple[Any, ...]]) -> Evidence:
    """Checks that calls with masks of 0 and -inf, and of 1 and 0, raise a type or value error."""
    found = {
        raises((TypeError, ValueError), layer, *inputs).text.split(":")[0] for inputs in masked
    }
    return holds(True, f"masks of 0 and -inf, and of 1 and 0, raise {' or '.join(sorted(found))}")


def rounded_once(actual: Tensor, exact: Tensor, atol: float) -> Evidence:
    """Checks that bfloat16 values are exact ones, rounded once: what arithmetic in float32 gives.

    A step in bfloat16 rounds once more, which shows where both rounded in one direction.
    """
    same(actual.dtype, torch.bfloat16)
    return equivalent(actual.double(), exact, atol=atol, rtol=1.01 * 2**-8)


def outputs_and_gradients(
    layer: Candidate, weights: Mapping[str, Tensor], *inputs: Any
) -> list[Tensor]:
    """The output, and the gradient of its sine's sum with respect to each input and weight.

    The sine makes every output's cotangent another one, without a draw. Gradients come in the
    order of `inputs` and of `weights`; one that does not exist is zero.
    """
    named: dict[str, Tensor] = {}
    if isinstance(layer, nn.Module):
        parameters = dict(layer.named_parameters())
        pairs = counterparts(layer, weights).items()
        named = {known_as: parameters[name] for name, known_as in pairs}
    ordered = {name: named[name] for name in weights if name in named}
    output, gradients = differentiated("the layer", layer, inputs, ordered, torch.cos)
    return [output, *gradients.values()]
