"""What a layer needs before it can be given weights: shapes, weights of its own, a usual dtype."""

from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy as has_no_shape
from torch.nn.utils import parametrize, remove_spectral_norm, remove_weight_norm
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm


def is_lazy(module: nn.Module) -> bool:
    """Whether a parameter or a buffer has no shape yet."""
    tensors = (*module.parameters(), *module.buffers())
    return any(map(has_no_shape, tensors))


def initialized(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Calls a lazy layer once in evaluation, from which its parameters have their shapes."""
    training = module.training
    try:
        with torch.no_grad():
            module.eval()(*args, **kwargs)
    finally:
        module.train(training)


def unnormed(module: nn.Module) -> tuple[str, ...]:
    """Replaces parametrizations of weights, such as weight norm, by the weights themselves.

    Returns:
        The words for it, if there was one.
    """
    found = False
    for part in list(module.modules()):
        if parametrize.is_parametrized(part):
            for name in list(getattr(part, "parametrizations", {})):
                parametrize.remove_parametrizations(part, name, leave_parametrized=True)
                found = True
        for hook in list(part._forward_pre_hooks.values()):
            if isinstance(hook, WeightNorm):
                remove_weight_norm(part, hook.name)
                found = True
            elif isinstance(hook, SpectralNorm):
                remove_spectral_norm(part, hook.name)
                found = True
    return ("weights are parametrized: what is checked are the weights themselves",) * found


def in_default_dtype(module: nn.Module) -> tuple[str, ...]:
    """Converts a layer with parameters of another floating-point dtype to torch's default one.

    Returns:
        The words for it, if it had another.
    """
    wanted = torch.get_default_dtype()
    dtypes = {each.dtype for each in module.parameters() if each.is_floating_point()} - {wanted}
    if not dtypes:
        return ()
    module.to(wanted)
    names = " and ".join(sorted(str(each).removeprefix("torch.") for each in dtypes))
    return (f"parameters in {names}: they are converted to {str(wanted).removeprefix('torch.')}",)
