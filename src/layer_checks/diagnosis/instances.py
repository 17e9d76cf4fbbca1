"""A module that a reader has built: a copy of it at its own sizes, and its class at others."""

import inspect
import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from layer_checks.diagnosis.adaptation import is_compiled
from layer_checks.evidence.evidence import Evidence, equivalent
from layer_checks.kit.arguments import Vocabulary, signature_of, vocabulary_of
from layer_checks.kit.candidates import built, deep_copy, randn64, randomized, width_of
from layer_checks.kit.definitions import Candidate, Layer
from layer_checks.kit.oracles import agreeing_gradients, with_weights_of


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
    ours = signature_of(layer.right)
    if theirs is None or ours is None:
        return cls
    vocabulary = vocabulary_of(layer)
    known = set(ours.parameters)
    for name in ours.parameters:
        known |= set(vocabulary.get(name, ()))
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
    right = layer.right
    sizes = sizes_of(layer, instance)
    called = signature_of(right.forward)
    if layer.leading is None or sizes is None or called is None or not instance.state_dict():
        return None
    inputs = [
        name
        for name, each in called.parameters.items()
        if name != "self" and each.default is inspect.Parameter.empty
    ]
    own = replace(
        layer,
        example=lambda candidate: None,
        probe=lambda candidate: [],
        checks=(),
        wrong_versions=(),
    )
    shape = (*layer.leading, next(iter(sizes.values())))

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


def sizes_of(layer: Layer, instance: nn.Module) -> dict[str, Any] | None:
    """The arguments with which the book's layer has the sizes of an instance."""
    signature, vocabulary = signature_of(layer.right), vocabulary_of(layer)
    read_off = {"d_model": width_of, "d_ff": _inner_width} | dict(layer.sizes)
    sizes: dict[str, Any] = {}
    guessed: list[str] = []
    for name, each in signature.parameters.items() if signature else ():
        value = _attribute(instance, name, vocabulary)
        if name == "bias" and isinstance(value, Tensor | None):
            value = None
        if value is None and name in read_off:
            value = read_off[name](instance)
            guessed.append(name)
        if name == "dropout":
            value = 0.0
        if value is None and name == "bias":
            value = any(key.endswith(("bias", "beta")) for key, _ in instance.named_parameters())
        if value is None and each.default is inspect.Parameter.empty:
            return None
        if value is not None:
            sizes[name] = value
    return _of_its_shapes(layer, instance, sizes, guessed)


def _of_its_shapes(
    layer: Layer, instance: nn.Module, sizes: dict[str, Any], guessed: Sequence[str]
) -> dict[str, Any]:
    """Sizes with which the book's layer has the shapes of an instance, however it holds weights.

    What was guessed can be any axis of a matrix. Where it is packed, as many numbers as the book's
    has are enough; where nothing fits, the first guess stands, and the checks say what differs.
    """
    axes = sorted({axis for each in instance.parameters() if each.ndim == 2 for axis in each.shape})
    guesses = [
        sizes | dict(zip(guessed, values, strict=True))
        for values in itertools.product(axes, repeat=len(guessed))
    ]
    guesses = [sizes, *sorted(guesses, key=lambda each: len(each.items() - sizes.items()))]
    for as_seen in (_shapes, _number_in_matrices):
        for each in guesses:
            try:
                with torch.device("meta"):  # where the size of a layer costs nothing
                    right = built(layer.right, **each)
            except Exception:  # there is no right layer of such sizes
                continue
            if as_seen(right) == as_seen(instance):
                return each
    return sizes


def _shapes(module: nn.Module) -> list[list[int]]:
    """In order; of a matrix it does not count which axis is the first."""
    return [sorted(each.shape) for each in module.parameters()]


def _number_in_matrices(module: nn.Module) -> int:
    return sum(each.numel() for each in module.parameters() if each.ndim == 2)


def _attribute(instance: nn.Module, name: str, vocabulary: Vocabulary) -> Any:
    """An attribute of that name or a synonym, of the module or of a part of it."""
    for module in (instance, *instance.children()):
        for known in (name, *sorted(vocabulary.get(name, ()))):
            value = vars(module).get(known)
            if isinstance(value, tuple | list | torch.Size) and len(value) == 1:
                value = value[0]
            if isinstance(value, int | float) and not (name != "bias" and isinstance(value, bool)):
                return value
    return None


def _inner_width(instance: nn.Module) -> int | None:
    """The width between two maps, as the first matrix tells it."""
    matrices = [each for each in instance.parameters() if each.ndim == 2]
    return max(matrices[0].shape) if matrices else None


def can_be_copied(instance: nn.Module) -> bool:
    """Whether a copy computes with its own weights.

    One that holds a method of its class compiled, such as `forward`, has copies that compute with
    the weights of the first; what its class builds does not.
    """
    return not any(
        _is_compiled_method(value)
        for part in instance.modules()
        if not isinstance(part, torch.jit.ScriptModule)
        for value in vars(part).values()
    )


def _is_compiled_method(value: object) -> bool:
    """Whether it is what `torch.compile` returns for a method as the class defines it."""
    method = getattr(value, "_torchdynamo_orig_callable", None)
    if not inspect.ismethod(method):
        return False
    return getattr(type(method.__self__), method.__name__, None) is method.__func__


def copied(instance: nn.Module) -> nn.Module:
    """A copy that can be given weights, and trained."""
    with torch.no_grad():  # the copy of a scripted module would have parameters with a history
        again = deep_copy(instance)
    for parameter in again.parameters():
        parameter.requires_grad_(True)
    return again
