"""On which device a result lies, tried on the meta device: it is there everywhere, and fast."""

import re
from typing import Any

import torch
from torch import Tensor, nn

from layer_checks.evidence.evidence import Evidence, holds
from layer_checks.kit.arguments import CannotTakeError
from layer_checks.kit.candidates import same
from layer_checks.kit.definitions import Candidate

# What torch says where tensors of two devices meet.
_MIXED = re.compile(r"(same|expected) device|two devices")


def stays_on_its_device(called: Candidate, *inputs: Any) -> Evidence:
    """Checks that what is called with tensors on a device gives its result there.

    It is called on the CPU before, and a function afterwards as well: nothing that one call made
    may serve another on another device.

    Where there is no tensor among the inputs, it is that device which is torch's default one.

    Args:
        called: A function; or a module, which is moved.
        *inputs: What it is called with.

    Returns:
        That it does so, or that it cannot be tried: on the meta device tensors have no values.

    Raises:
        AssertionError: If the result lies elsewhere, or tensors of two devices meet.
    """
    meta = torch.device("meta")
    torch.ones(1, device=meta).neg()  # has torch load what it needs before a default device is set
    moved = [x.to(meta) if isinstance(x, Tensor) else x for x in inputs]
    with torch.no_grad():
        called(*inputs)
    away = called.to(meta) if isinstance(called, nn.Module) else called
    try:
        if any(isinstance(x, Tensor) for x in inputs):
            result = away(*moved)
        else:
            with meta:
                result = away(*moved)
    except CannotTakeError:
        raise
    except Exception as error:  # a reader's layer can raise anything
        if _MIXED.search(str(error)):
            raise AssertionError(f"not equal: {str(error).splitlines()[0]}") from error
        return holds(True, "it does not run on the meta device")
    evidence = same(f"on the device {result.device}", "on the device meta")
    if not isinstance(called, nn.Module):
        again = f"on the device {called(*inputs).device} afterwards"
        same(again, "on the device cpu afterwards")
    return evidence
