"""How a check builds a candidate and calls it: written down while it runs."""

import functools
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from layer_checks.kit.arguments import signature_of
from layer_checks.kit.definitions import Candidate


@dataclass(frozen=True)
class Call:
    """A call, with copies of its tensors."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


@dataclass
class Record:
    """What a candidate is built and called with.

    Attributes:
        candidate: The class or function.
        built: The arguments of the last layer that was built.
        given: What that was called with, before hooks change it.
        called: The arguments of its last call, or of the function's.
        layer: The layer that was called last.
        training: Whether that was in training.
        ours: The book's arguments for it, where they are not the candidate's.
        last: The layer that was built last, called or not.
    """

    candidate: Candidate
    built: Call | None = None
    given: Call | None = None
    called: Call | None = None
    layer: nn.Module | None = None
    training: bool = False
    ours: Call | None = None
    last: nn.Module | None = None
    _builds: dict[int, Call] = field(default_factory=dict)

    @property
    def __signature__(self) -> inspect.Signature:
        """What `inspect.signature` tells of this."""
        signature = signature_of(self.candidate)
        if signature is None:
            raise ValueError("no signature")
        return signature

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Builds the layer, or calls the function."""
        call = Call(_kept(args), {name: _kept(each) for name, each in kwargs.items()})
        result = self.candidate(*args, **kwargs)
        if not isinstance(result, nn.Module):
            self.called = call
            return result
        self._builds[id(result)], self.last = call, result
        if isinstance(result, torch.jit.ScriptModule):  # which has no attributes of an instance's
            return result
        forward = result.forward

        @functools.wraps(forward)
        def noticed(*args: Any, **kwargs: Any) -> Any:
            self.layer, self.training = result, result.training
            self.built = self._builds[id(result)]
            self.called = Call(_kept(args), {name: _kept(each) for name, each in kwargs.items()})
            return forward(*args, **kwargs)

        def before(module: nn.Module, args: Any, kwargs: Any) -> None:
            self.given = Call(_kept(args), {name: _kept(each) for name, each in kwargs.items()})

        result.register_forward_pre_hook(before, prepend=True, with_kwargs=True)
        result.forward = noticed  # an instance's own comes first
        return result


def _kept(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_kept, value))
    return value.detach().clone() if isinstance(value, Tensor) else value
