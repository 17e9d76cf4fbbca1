"""A module that a reader has built: a copy of it at its own sizes, and its class at others."""

import copy
import inspect
from typing import Any

import torch
from torch import Tensor, nn

from layer_checks.diagnosis.adaptation import is_compiled
from layer_checks.evidence.evidence import Evidence, equivalent
from layer_checks.kit.arguments import SYNONYMS, signature_of
from layer_checks.kit.candidates import built, randn64, randomized
from layer_checks.kit.definitions import Candidate, Layer
from layer_checks.kit.oracles import agreeing_gradients, with_weights_of
from layer_checks.registry import right_version


def original_of(instance: nn.Module) -> tuple[nn.Module, tuple[str, ...]]:
    """The module that was compiled, if it was, and the words for it."""
    if is_compiled(instance):
        return instance.get_submodule("_orig_mod"), (
            "compiled: what is checked is the module that was compiled",
        )
    return instance, ()


def rebuilt(layer: Layer, instance: nn.Module) -> Candidate:
    """The class of an instance, with those of its options that the book's layer does not have."""
    cls = type(instance)
    theirs = signature_of(cls)
    ours = signature_of(right_version(layer.name))
    if theirs is None or ours is None:
        return cls
    known = set(ours.parameters)
    for name in ours.parameters:
        known |= SYNONYMS.get(name, frozenset())
    options = {
        name: value
        for name, value in vars(instance).items()
        if name in theirs.parameters and name not in known and isinstance(value, bool)
    }
    if not options:
        return cls

    def build(*args: Any, **kwargs: Any) -> nn.Module:
        return cls(*args, **kwargs, **options)

    rest = [each for name, each in theirs.parameters.items() if name not in options]
    build.__signature__ = theirs.replace(parameters=rest)  # type: ignore[attr-defined]  # inspect reads it
    return build


def own_layer(layer: Layer, instance: nn.Module) -> Layer | None:
    """Checks of an instance at its own sizes, None where these cannot be told."""
    right: Any = right_version(layer.name)
    sizes = _sizes(right, instance)
    called = signature_of(right.forward)
    if sizes is None or called is None:
        return None
    inputs = [
        name
        for name, each in called.parameters.items()
        if name != "self" and each.default is inspect.Parameter.empty
    ]
    if not set(inputs) <= {"x", "query", "key", "value"} or not instance.state_dict():
        return None
    own = Layer(layer.name, layer.signature, lambda candidate: None, lambda candidate: [])
    width = next(iter(sizes.values()))
    shape = (4, width) if layer.name == "BatchNorm1d" else (2, 3, width)

    def pair(candidate: Candidate) -> tuple[nn.Module, nn.Module]:
        theirs = randomized(built(right, **sizes), std=0.5).double().eval()
        return with_weights_of(theirs, candidate, **sizes).eval(), theirs

    def drawn() -> list[Tensor]:
        return [randn64(*shape) for _ in inputs]

    @own.check("At its own sizes the values in float64 are those of the book's layer.")
    def values_at_its_own_sizes(candidate: Candidate) -> Evidence:
        ours, theirs = pair(candidate)
        drawn_inputs = drawn()
        return equivalent(ours(*drawn_inputs), theirs(*drawn_inputs), atol=1e-11)

    @own.check("So are the gradients.")
    def gradients_at_its_own_sizes(candidate: Candidate) -> Evidence:
        ours, theirs = pair(candidate)
        return agreeing_gradients(ours, theirs, *drawn(), atol=1e-10)

    return own


def _sizes(right: Any, instance: nn.Module) -> dict[str, Any] | None:
    """The arguments with which the book's layer has the sizes of an instance."""
    signature = signature_of(right)
    sizes: dict[str, Any] = {}
    for name, each in signature.parameters.items() if signature else ():
        value = _attribute(instance, name)
        if name == "bias" and isinstance(value, Tensor | None):
            value = None
        if value is None and name in ("d_model", "num_features"):
            value = _width(instance)
        if value is None and name == "d_ff":
            value = _inner(instance)
        if name == "dropout":
            value = 0.0
        if value is None and name == "bias":
            value = any(key.endswith(("bias", "beta")) for key, _ in instance.named_parameters())
        if value is None and each.default is inspect.Parameter.empty:
            return None
        if value is not None:
            sizes[name] = value
    return sizes


def _attribute(instance: nn.Module, name: str) -> Any:
    """An attribute of that name or a synonym, of the module or of a part of it."""
    for module in (instance, *instance.children()):
        for known in (name, *sorted(SYNONYMS.get(name, ()))):
            value = vars(module).get(known)
            if isinstance(value, tuple | list | torch.Size) and len(value) == 1:
                value = value[0]
            if isinstance(value, int | float) and not (name != "bias" and isinstance(value, bool)):
                return value
    return None


def _width(instance: nn.Module) -> int | None:
    first = next(instance.parameters(), None)
    return None if first is None else first.shape[-1]


def _inner(instance: nn.Module) -> int | None:
    matrices = [each for each in instance.parameters() if each.ndim == 2]
    return max(matrices[0].shape) if matrices else None


def copied(instance: nn.Module) -> nn.Module:
    """A copy that can be given weights, and trained."""
    with torch.no_grad():  # the copy of a scripted module would have parameters with a history
        again = copy.deepcopy(instance)
    for parameter in again.parameters():
        parameter.requires_grad_(True)
    return again
