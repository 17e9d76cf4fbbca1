"""Handling of layers that others wrote: giving them weights, and asking for their gradients."""

import copy
import inspect
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeAlias, TypeVar

import torch
from torch import Tensor, nn

from layer_checks.evidence.evidence import Evidence, equivalent, holds, raises
from layer_checks.evidence.gradients import differentiated
from layer_checks.evidence.randomness import seeded
from layer_checks.kit.arguments import CannotTakeError
from layer_checks.kit.definitions import Candidate
from layer_checks.kit.matching import Match

randn64 = partial(torch.randn, dtype=torch.float64)

Module = TypeVar("Module", bound=nn.Module)
Copied = TypeVar("Copied", bound=nn.Module | tuple[nn.Module, ...])
# Told of each layer that is given weights, and of the weights.
Witness: TypeAlias = Callable[[nn.Module, Mapping[str, Tensor]], None]

_match: ContextVar[Match | None] = ContextVar("match", default=None)
_witness: ContextVar[Witness | None] = ContextVar("witness", default=None)


@contextmanager
def matched_by(match: Match | None) -> Iterator[None]:
    """Has `load` match a layer's weights in this way, in place of by name or order."""
    token = _match.set(match)
    try:
        yield
    finally:
        _match.reset(token)


@contextmanager
def witnessed_by(witness: Witness) -> Iterator[None]:
    """Has a function told of what `load` is given."""
    token = _witness.set(witness)
    try:
        yield
    finally:
        _witness.reset(token)


def is_witnessed() -> bool:
    """Whether somebody is told of what `load` is given."""
    return _witness.get() is not None


def current_match() -> Match | None:
    """How weights are matched now, None where it is by name or order."""
    return _match.get()


def randomized(module: Module, std: float = 0.2) -> Module:
    """Draws every parameter anew, normal with mean 0, and returns the module."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(std=std)
    return module


def weights_of(module: nn.Module) -> dict[str, Tensor]:
    """The parameters by name, as values."""
    return {name: parameter.detach().clone() for name, parameter in module.named_parameters()}


def deep_copy(value: Copied) -> Copied:
    """A deep copy, also of modules that keep a tensor of their last call, which has a history.

    Args:
        value: A module, or several of them in a tuple.

    Returns:
        The copy, in which such tensors are values alone.
    """
    modules = value if isinstance(value, tuple) else (value,)
    kept = [
        tensor
        for module in modules
        for part in module.modules()
        for held in vars(part).values()
        for tensor in _tensors_in(held)
        if not tensor.is_leaf
    ]
    return copy.deepcopy(value, {id(tensor): tensor.detach().clone() for tensor in kept})


def _tensors_in(value: object) -> Iterator[Tensor]:
    several = list(value.values()) if isinstance(value, dict) else value
    for each in several if isinstance(several, list | tuple) else (several,):
        if isinstance(each, Tensor):
            yield each


@contextmanager
def of_three_axes_alone(layer: object) -> Iterator[None]:
    """Where a layer is made of `nn.Conv1d`, an error says only that it takes inputs of three axes.

    Raises:
        CannotTakeError: In the place of that error.
    """
    try:
        yield
    except (AssertionError, IndexError, RuntimeError, ValueError) as error:
        parts = layer.modules() if isinstance(layer, nn.Module) else ()
        if not any(isinstance(part, nn.Conv1d) for part in parts):
            raise
        raise CannotTakeError("it takes inputs of three axes alone") from error


def width_of(module: nn.Module) -> int | None:
    """The last axis of a module's first parameter, None if it has none."""
    first = next(module.parameters(), None)
    return None if first is None else first.shape[-1]


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


def takes(candidate: Candidate, name: str) -> bool:
    """Whether a class or function says that it takes an argument of this name."""
    try:
        return name in inspect.signature(candidate).parameters
    except (TypeError, ValueError):  # it does not say what it takes
        return False


def default_of(candidate: Candidate, names: Collection[str]) -> Any:
    """The value that an argument has where it is left out, None where there is none.

    Args:
        candidate: A class or function.
        names: What the argument may be called.
    """
    try:
        parameters = inspect.signature(candidate).parameters
    except (TypeError, ValueError):  # it does not say what it takes
        return None
    found = (each.default for name, each in parameters.items() if name in names)
    return next((each for each in found if each is not inspect.Parameter.empty), None)


def load(layer: Module, weights: Mapping[str, Tensor]) -> Module:
    """Copies weights into a layer as far as their names, or else their order, fit.

    A weight without a counterpart is left out: what that changes, a check of values shows.

    Raises:
        AssertionError: If a parameter of the right name has another shape.
    """
    if (witness := _witness.get()) is not None:
        witness(layer, weights)
    parameters = dict(layer.named_parameters())
    if (match := current_match()) is not None:
        _copy_into(parameters, match.weights_for(layer, weights))
        return layer
    for name, parameter in parameters.items():
        if name in weights and parameter.shape != weights[name].shape:
            raise AssertionError(
                f"not equal: shape of {name}: {tuple(parameter.shape)} against "
                f"{tuple(weights[name].shape)}"
            )
    _copy_into(
        parameters,
        {name: weights[known_as] for name, known_as in counterparts(layer, weights).items()},
    )
    return layer


def _copy_into(parameters: Mapping[str, nn.Parameter], values: Mapping[str, Tensor]) -> None:
    for name, value in values.items():
        if parameters[name].shape != value.shape:
            raise AssertionError(
                f"not equal: shape of {name}: {tuple(parameters[name].shape)} against "
                f"{tuple(value.shape)}"
            )
    with torch.no_grad():
        for name, value in values.items():
            parameters[name].copy_(value)


def counterparts(layer: nn.Module, weights: Mapping[str, Tensor]) -> dict[str, str]:
    """Which weight each parameter takes, by name; by order where no name and every shape agrees."""
    shapes = {name: parameter.shape for name, parameter in layer.named_parameters()}
    same_order = list(shapes.values()) == [weight.shape for weight in weights.values()]
    if same_order and not shapes.keys() & weights.keys():
        return dict(zip(shapes, weights, strict=True))
    return {name: name for name in shapes if name in weights}


@contextmanager
def quietly() -> Iterator[None]:
    """Without torch's warnings: a wrong version divides by n - 1 = 0, a norm takes two dtypes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


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


def rounded_once(
    actual: Tensor, exact: Tensor, atol: float, dtype: torch.dtype = torch.bfloat16
) -> Evidence:
    """Checks that values of a dtype are exact ones, rounded once: what arithmetic in float32 gives.

    A step in that dtype rounds once more, which shows where both rounded in one direction.
    """
    same(actual.dtype, dtype)
    return equivalent(actual.double(), exact, atol=atol, rtol=1.01 * torch.finfo(dtype).eps / 2)


def rounds_once_with_float32_parameters(ours: nn.Module, theirs: nn.Module, *axes: int) -> Evidence:
    """Checks what a norm with parameters in float32 makes of float16 and of bfloat16.

    The squares of the values are too large for float16.

    Args:
        ours: The candidate, whose parameters become float32.
        theirs: Another one with its weights, which become those in float32 as well.
        *axes: Of the input.
    """
    ours.float()
    theirs.float().double()
    for dtype in (torch.float16, torch.bfloat16):
        x = (300 * randn64(*axes) + 1000).to(dtype)
        with quietly():
            result = ours(x)
        evidence = rounded_once(result, theirs(x.double()), atol=1e-5, dtype=dtype)
    return evidence


def outputs_and_gradients(
    layer: Candidate, weights: Mapping[str, Tensor], *inputs: Any
) -> list[Tensor]:
    """The output, and the gradient of its sine's sum with respect to each input and weight.

    The sine makes every output's cotangent another one, without a draw. Gradients come in the
    order of `inputs` and of `weights`; one that does not exist is zero, and that of a weight that
    the layer has not is empty.
    """
    parameters: dict[str, Tensor] = {}
    if isinstance(layer, nn.Module):
        named = dict(layer.named_parameters())
        match = current_match()
        pairs: Collection[str] = counterparts(layer, weights)
        if match is not None:
            pairs = match.sources_in(layer)
        parameters = {name: named[name] for name in pairs if name in named}
    output, gradients = differentiated("the layer", layer, inputs, parameters, torch.cos)
    of_inputs = [each for name, each in gradients.items() if name not in parameters]
    if not isinstance(layer, nn.Module):
        return [output, *of_inputs]
    ours = as_ours(layer, weights, {name: gradients[name] for name in parameters})
    return [output, *of_inputs, *(ours.get(name, torch.empty(0)) for name in weights)]


def as_ours(
    layer: nn.Module, weights: Mapping[str, Tensor], gradients: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Gradients of a layer's parameters, as the book names and shapes the weights."""
    match = current_match()
    if match is not None:
        return match.as_ours(layer, weights, gradients)
    known_as = counterparts(layer, weights)
    return {known_as[name]: each for name, each in gradients.items() if name in known_as}
