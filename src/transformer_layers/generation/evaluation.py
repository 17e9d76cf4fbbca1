"""A model in evaluation mode, whatever others do with it meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch


@runtime_checkable
class _HasModules(Protocol):
    """An `nn.Module`, or what is known to have the names of one."""

    def modules(self) -> Any: ...


_Module = TypeVar("_Module", bound=_HasModules)


@contextmanager
def evaluating(model: _Module) -> Iterator[_Module]:
    """Gives a model's twin in evaluation mode, without gradients; see :func:`in_evaluation`.

    Args:
        model: The model.
    """
    with torch.no_grad():
        yield in_evaluation(model)


def in_evaluation(model: _Module) -> _Module:
    """A twin of a model in evaluation mode: all is shared but the modes.

    A mode belongs to the model, whoever uses it: another thread that trains it, or has just
    generated with it, switches dropout for all. So the model's own modes are neither asked nor
    changed. Parameters, buffers and hooks are the same objects, and a hook is handed the twin.

    Args:
        model: The model.

    Returns:
        A module of the same class.
    """
    twins: dict[Any, Any] = {None: None}  # a child may be None
    for module in model.modules():
        # Not copy.copy, which would build some modules anew.
        twin = twins[module] = object.__new__(type(module))
        # A module that was compiled in place would call the one that was compiled.
        twin.__dict__.update(module.__dict__, training=False, _compiled_call_impl=None)
    for module in model.modules():
        children = {name: twins[child] for name, child in module._modules.items()}
        twins[module].__dict__["_modules"] = children
    return twins[model]
