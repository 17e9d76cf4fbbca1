"""Layers that are plain objects, as courses write them: tensors, a call, and no `nn.Module`."""

from typing import Any

import torch
from torch import Tensor, nn

from layer_checks.kit.arguments import signature_of


class OfObject(nn.Module):
    """A module whose parameters and buffers are the tensors that a plain object has.

    What its `parameters` returns is learned; its other tensors are buffers. Before each call it is
    handed what the module has, and the module takes its buffers back behind it.

    Args:
        plain: Something to call.
    """

    def __init__(self, plain: Any) -> None:
        super().__init__()
        self.plain = plain
        self.call_signature = signature_of(plain)
        listed = getattr(plain, "parameters", None)
        learned = {id(each) for each in listed()} if callable(listed) else set()
        for name, each in list(getattr(plain, "__dict__", {}).items()):
            if not isinstance(each, Tensor):
                continue
            if id(each) in learned:
                self.register_parameter(name, nn.Parameter(each.detach().clone()))
            else:
                self.register_buffer(name, each.detach().clone())

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the object returns."""
        held = vars(self.plain)
        held.update({**self._parameters, **self._buffers})
        if "training" in held:
            held["training"] = self.training
        output = self.plain(*args, **kwargs)
        self._buffers.update({name: held[name].detach() for name in self._buffers})
        for name, each in held.items():  # with its history it could not be copied
            if isinstance(each, Tensor):
                held[name] = each.detach()
        return output


def as_module(built: Any) -> Any:
    """A plain object that can be called as a module; anything else as it is."""
    plain = callable(built) and hasattr(built, "__dict__") and not isinstance(built, type)
    if not plain or isinstance(built, nn.Module | Tensor | torch.jit.ScriptModule):
        return built
    return OfObject(built)
