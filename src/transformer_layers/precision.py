"""The dtype that a layer computes in."""

import torch
from jaxtyping import Float
from torch import Tensor


def at_least_float32(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Converts float16 and bfloat16 to float32, and returns float32 and float64 as they are."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def autocast_dtype(x: Float[Tensor, "*shape"]) -> torch.dtype:
    """The dtype of a matrix product with `x`: under `torch.autocast` the one that it chooses."""
    device = x.device.type
    # Asking about a device without autocast, such as meta, is an error; float64 is not converted.
    if x.dtype == torch.float64 or not torch.amp.is_autocast_available(device):
        return x.dtype
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype
