"""Checks of arguments that the layers share: each error prints the values and says the remedy.

What is of a wrong type or dtype is a TypeError, any other wrong value a ValueError. `name` is what
the caller calls the argument, for the error.

They look at shapes, dtypes and Python numbers only, never at a tensor's elements, so that a layer
which calls them still compiles and exports as one graph.
"""

import torch
from jaxtyping import Shaped
from torch import Tensor, nn

LOW_PRECISION = (torch.float16, torch.bfloat16)


def require_text(name: str, text: str) -> None:
    """Refuses what is no str, and half of a surrogate pair, which UTF-8 cannot write."""
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a str, got {text!r} of type {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{name} must be text that UTF-8 can write, got half of a surrogate pair, "
            f"{text[error.start]!r}, at position {error.start}"
        ) from error


def require_size(name: str, value: int, minimum: int = 1) -> None:
    """Refuses the size of an axis, or a count, that is no int, or is below `minimum`."""
    if not isinstance(value, int | torch.SymInt) or isinstance(value, bool):
        raise TypeError(f"{name} must be an int, got {value!r} of type {type(value).__name__}")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {value}")


def require_activation(activation: object) -> None:
    """Refuses what cannot be called, such as the name that torch's layers take."""
    if not callable(activation):
        raise TypeError(
            "activation must be a function from a tensor to a tensor, such as torch.relu or "
            f"transformer_layers.gelu; got {activation!r} of type {type(activation).__name__}"
        )


def require_positive(name: str, value: float) -> None:
    """Refuses a number that is not above zero, NaN included."""
    if not value > 0:
        raise ValueError(f"{name} must be greater than 0, got {value}")


def require_not_negative(name: str, value: float) -> None:
    """Refuses a number below zero, NaN included."""
    if not value >= 0:
        raise ValueError(f"{name} must be at least 0, got {value}")


def require_probability(name: str, value: float) -> None:
    """Refuses a probability, or a share, outside [0, 1], NaN included."""
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be between 0 and 1, got {value}")


def require_floating(name: str, x: Shaped[Tensor, "..."]) -> None:
    """Refuses a tensor of integers, booleans or complex numbers."""
    if not x.is_floating_point():
        raise TypeError(
            f"{name} must be a floating-point tensor, got {x.dtype}; convert it, for example with "
            f"{name}.to(torch.float32)"
        )


def require_integers(name: str, x: object) -> None:
    """Refuses what is no tensor of int64 or int32, the dtypes of torch's indices."""
    if not isinstance(x, Tensor):
        raise TypeError(
            f"{name} must be a tensor of int64 or int32, got a {type(x).__name__}; make one with "
            f"torch.tensor({name})"
        )
    if x.dtype not in (torch.int64, torch.int32):
        raise TypeError(
            f"{name} must be a tensor of int64 or int32, got {x.dtype}; convert it with "
            f"{name}.long()"
        )


def require_floating_dtype(dtype: torch.dtype | None) -> None:
    """Refuses a dtype that parameters cannot have; None stands for torch's default."""
    if dtype is not None and not dtype.is_floating_point:
        raise TypeError(f"dtype must be a floating one, got {dtype}")


def require_dtype(
    name: str,
    x: Shaped[Tensor, "..."],
    dtype: torch.dtype | None,
    low_precision_input: bool = False,
    of: str = "parameters",
) -> None:
    """Refuses an input whose dtype differs from the parameters', instead of promoting silently.

    Under `torch.autocast`, float16, bfloat16 and float32 may meet: autocast converts them. Nothing
    is asked of the input but to be floating where `dtype`, that of the parameters, is None. With
    `low_precision_input`, float16 and bfloat16 input may meet float32 parameters, as in a layer
    that computes its statistics in float32. `of` is what the layer has of that dtype, for the
    error.
    """
    require_floating(name, x)
    if dtype is None or x.dtype == dtype:
        return
    if low_precision_input and x.dtype in LOW_PRECISION and dtype == torch.float32:
        return
    if _autocasts(x) and torch.float64 not in (x.dtype, dtype):
        return
    raise TypeError(
        f"{name} is {x.dtype} but the layer's {of} are {dtype}; convert one of "
        f"them, with {name}.to({dtype}) or layer.to({x.dtype})"
    )


def dtype_taken_by(layer: nn.Module) -> torch.dtype | None:
    """The dtype that a layer wants of its input, as far as its own parameters tell.

    None if they are not of one floating dtype, as where the weight is quantized; if there are none,
    as in a wrapper of another layer; or if a hook sees the input first and may convert it. Such a
    layer says by itself what it takes.
    """
    if layer._forward_pre_hooks:
        return None
    dtypes = {parameter.dtype for parameter in layer.parameters(recurse=False)}
    dtype = dtypes.pop() if len(dtypes) == 1 else None
    return dtype if dtype is not None and dtype.is_floating_point else None


def require_last_axis(name: str, x: Shaped[Tensor, "..."], size_name: str, size: int) -> None:
    """Refuses an input whose last axis is missing or is not the layer's `size_name`, `size`."""
    if x.ndim == 0 or x.shape[-1] != size:
        found = f"a last axis of {x.shape[-1]}" if x.ndim else "no axes"
        raise ValueError(
            f"{name} must have a last axis of {size_name} = {size}, got {found}: its shape is "
            f"{tuple(x.shape)}"
        )


def _autocasts(x: Shaped[Tensor, "..."]) -> bool:
    device = x.device.type  # asking about a device without autocast, such as meta, is an error
    return torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)
