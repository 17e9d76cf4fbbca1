"""A candidate that is called in a form of its own, by a function that its author hands in."""

import inspect
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from torch import nn

from layer_checks.diagnosis.examples import name_of
from layer_checks.diagnosis.recording import Record
from layer_checks.kit.arguments import CannotTakeError, signature_of
from layer_checks.kit.candidates import deep_copy
from layer_checks.kit.definitions import Candidate, Layer

# Takes the reader's layer and the arguments of the book's call, and calls the layer its own way.
Adapter = Callable[..., Any]


class Called:
    """A candidate that takes the book's call, and hands it to an adapter.

    Args:
        layer: What it is to be.
        candidate: The reader's class, function that builds one, or function.
        adapter: Calls what was built, or the function.

    Attributes:
        is_given: Whether the adapter is the reader's.
    """

    is_given = True

    def __init__(self, layer: Layer, candidate: Candidate, adapter: Adapter) -> None:
        self.layer, self.candidate, self.book_call = layer, candidate, adapter
        self.__name__ = name_of(candidate)
        self.__module__ = getattr(candidate, "__module__", None) or ""
        self.itself = is_the_layer(layer, candidate)
        if self.itself:
            signature = signature_of(layer.right)
        elif layer.is_class:
            signature = signature_of(candidate)
        else:
            signature = without_first(adapter)
        if signature is not None:
            self.__signature__ = signature  # what `inspect.signature` then tells of this

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Builds the layer, or calls the function."""
        if not self.layer.is_class:
            return self.book_call(_function_of(self.candidate), *args, **kwargs)
        if self.itself:
            options = self._options(args, kwargs)
            return called_by(_Function(self.candidate), partial(self.book_call, **options))
        return called_by(self.candidate(*args, **kwargs), self.book_call)

    def _options(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments of the book's constructor that the adapter of a function asks for."""
        ours, taken = inspect.signature(self.layer.right), signature_of(self.book_call)
        asked = ours.bind(*args, **kwargs)
        defaults = {name: each.default for name, each in ours.parameters.items()}
        wanted = ours.parameters.keys() & (taken.parameters if taken else {})
        for name, value in asked.arguments.items():
            if name not in wanted and defaults[name] not in (value, inspect.Parameter.empty):
                who = "the adapter" if self.is_given else "it"
                text = f"{who} takes no {name}, so that {name}={value!r} cannot be asked for"
                raise CannotTakeError(text, name)
        asked.apply_defaults()
        return {name: asked.arguments[name] for name in wanted}


def is_the_layer(layer: Layer, candidate: Candidate) -> bool:
    """Whether a function computes what a layer without weights does, and builds none."""
    if not (layer.is_class and inspect.isroutine(candidate)):
        return False
    ours, theirs = Record(layer.right), Record(candidate)
    for record in (ours, theirs):
        with suppress(Exception):  # a reader's function can raise anything
            layer.example(record)
    return theirs.last is None and ours.last is not None and not list(ours.last.parameters())


class _Function(nn.Module):
    """A layer without weights that is a function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


class _Own:
    """A layer as its author calls it: without hooks, and with all its attributes."""

    def __init__(self, layer: nn.Module, forward: Callable[..., Any]) -> None:
        self._layer, self._forward = layer, forward

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._forward(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._layer, name)


def by_adapter(layer: Layer, candidate: Candidate, adapter: Adapter) -> Candidate:
    """A candidate whose call is mapped by an adapter.

    Args:
        layer: What it is to be.
        candidate: The reader's class, function or module; a module stays as it is.
        adapter: Takes what was built, or the function, and the arguments of the book's call.

    Raises:
        TypeError: If the adapter is no function.
    """
    if not callable(adapter):
        raise TypeError(f"adapter must be a function, got {adapter!r}")
    if isinstance(candidate, nn.Module) and layer.is_class:
        return called_by(deep_copy(candidate), adapter)
    return Called(layer, candidate, adapter)


def called_by(built: Any, adapter: Adapter) -> Any:
    """A module whose forward hands its arguments to an adapter; anything else as it is."""
    if not isinstance(built, nn.Module):
        return built
    built = getattr(built, "_orig_mod", built)  # where it is compiled
    kind = type(built)

    def forward(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        own = _Own(self, lambda *args, **kwargs: kind.forward(self, *args, **kwargs))
        return adapter(own, *args, **kwargs)

    signature = signature_of(adapter)
    if signature is not None:  # its first argument is the layer, as that of a method
        forward.__signature__ = signature  # type: ignore[attr-defined]  # inspect reads it
    own = {"forward": forward, "book_call": staticmethod(adapter)}
    built.__class__ = type(kind.__name__, (kind,), own)
    return built


def has_adapter(candidate: object) -> bool:
    """Whether it is called by an adapter."""
    return hasattr(candidate, "book_call")


def adapter_lines(layer: Layer, candidate: Candidate, theirs: inspect.Signature | None) -> str:
    """An adapter to paste and to fill in, for a candidate that cannot be called.

    Args:
        layer: What the candidate is to be.
        candidate: The reader's.
        theirs: How that is called, None where Python cannot tell.
    """
    ours = signature_of(layer.right.forward if layer.is_class else layer.right)
    own = [each for name, each in ours.parameters.items() if name != "self"] if ours else []
    given = ", ".join(each.name for each in own)
    taken = [*map(_untyped, own)]
    if is_the_layer(layer, candidate):
        built = inspect.signature(layer.right).parameters.values()
        taken += ["*", *(_untyped(each) for each in built if each.kind is not each.KEYWORD_ONLY)]
    called = "" if theirs is None else f": {_plain(theirs)}"
    return (
        f"def adapter(layer, {', '.join(taken)}):  # as the book's layer is called\n"
        f"    return layer({given})  # write here how yours is called{called}\n"
        f'check("{layer.name}", {name_of(candidate)}, adapter=adapter)'
    )


def _plain(signature: inspect.Signature) -> str:
    """Names and defaults alone."""
    return f"({', '.join(map(_untyped, signature.parameters.values()))})"


def _untyped(parameter: inspect.Parameter) -> str:
    return str(parameter.replace(annotation=inspect.Parameter.empty))


def without_first(function: Callable[..., Any]) -> inspect.Signature | None:
    """A signature without its first argument, None where Python cannot tell."""
    signature = signature_of(function)
    if signature is None:
        return None
    return signature.replace(parameters=list(signature.parameters.values())[1:])


def _function_of(candidate: Candidate) -> Candidate:
    """A function as it is; of a class of modules without sizes one of them."""
    if inspect.isclass(candidate) and issubclass(candidate, nn.Module):
        return candidate()
    return candidate
