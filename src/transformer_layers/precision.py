"""The dtype that a layer computes in."""

import torch
from jaxtyping import Float
from torch import Tensor


def at_least_float32(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Converts float16 and bfloat16 to float32, and returns float32 and float64 as they are."""
    return x.to(torch.promote_types(x.dtype, torch.float32))
