"""Checks of arguments that the layers share: each error prints the values and says the remedy.

They look at shapes, dtypes and Python numbers only, never at a tensor's elements, so that a layer
which calls them still compiles and exports as one graph.
"""

import torch
from jaxtyping import Shaped
from torch import Tensor, nn

LOW_PRECISION = (torch.float16, torch.bfloat16)


def require_size(name: str, value: int, minimum: int = 1) -> None:
    """Refuses the size of an axis, or a count, that is no int or is below `minimum`.

    Args:
        name: Name of the argument, for the error.
        value: The argument.
        minimum: Smallest value allowed.

    Raises:
        TypeError: If `value` is not an int, or is a bool.
        ValueError: If `value` is below `minimum`.
    """
    if not isinstance(value, int | torch.SymInt) or isinstance(value, bool):
        raise TypeError(f"{name} must be an int, got {value!r} of type {type(value).__name__}")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {value}")


def require_positive(name: str, value: float) -> None:
    """Refuses a number that is not above zero, NaN included.

    Args:
        name: Name of the argument, for the error.
        value: The argument.

    Raises:
        ValueError: If `value` is zero, negative or NaN.
    """
    if not value > 0:
        raise ValueError(f"{name} must be greater than 0, got {value}")


def require_not_negative(name: str, value: float) -> None:
    """Refuses a number below zero, NaN included.

    Args:
        name: Name of the argument, for the error.
        value: The argument.

    Raises:
        ValueError: If `value` is negative or NaN.
    """
    if not value >= 0:
        raise ValueError(f"{name} must be at least 0, got {value}")


def require_probability(name: str, value: float) -> None:
    """Refuses a probability, or a share, outside [0, 1], NaN included.

    Args:
        name: Name of the argument, for the error.
        value: The argument.

    Raises:
        ValueError: If `value` is below 0, above 1 or NaN.
    """
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be between 0 and 1, got {value}")


def require_floating(name: str, x: Shaped[Tensor, "..."]) -> None:
    """Refuses a tensor of integers, booleans or complex numbers.

    Args:
        name: Name of the argument, for the error.
        x: The argument.

    Raises:
        TypeError: If `x` is not of a floating dtype.
    """
    if not x.is_floating_point():
        raise TypeError(
            f"{name} must be a floating-point tensor, got {x.dtype}; convert it, for example with "
            f"{name}.to(torch.float32)"
        )


def require_integers(name: str, x: Shaped[Tensor, "..."]) -> None:
    """Refuses what is no tensor of int64 or int32, the dtypes of torch's indices.

    Args:
        name: Name of the argument, for the error.
        x: The argument.

    Raises:
        TypeError: If `x` is of another dtype.
    """
    if x.dtype not in (torch.int64, torch.int32):
        raise TypeError(
            f"{name} must be a tensor of int64 or int32, got {x.dtype}; convert it with "
            f"{name}.long()"
        )


def require_floating_dtype(dtype: torch.dtype | None) -> None:
    """Refuses a dtype that the parameters of a layer cannot have.

    Args:
        dtype: The argument of this name; None stands for torch's default, which is floating.

    Raises:
        TypeError: If `dtype` is not a floating one.
    """
    if dtype is not None and not dtype.is_floating_point:
        raise TypeError(f"dtype must be a floating one, got {dtype}")


def require_dtype(
    name: str,
    x: Shaped[Tensor, "..."],
    dtype: torch.dtype | None,
    low_precision_input: bool = False,
) -> None:
    """Refuses an input whose dtype differs from the parameters', instead of promoting silently.

    Under `torch.autocast`, float16, bfloat16 and float32 may meet: autocast converts them.

    Args:
        name: Name of the input, for the error.
        x: The input.
        dtype: That of the layer's parameters; None if nothing is known of it.
        low_precision_input: Whether float16 and bfloat16 input may meet float32 parameters, as
            in a layer that computes its statistics in float32.

    Raises:
        TypeError: If `x` is not of a floating dtype, or of one that does not go with `dtype`.
    """
    require_floating(name, x)
    if dtype is None or x.dtype == dtype:
        return
    if low_precision_input and x.dtype in LOW_PRECISION and dtype == torch.float32:
        return
    if _autocasts(x) and torch.float64 not in (x.dtype, dtype):
        return
    raise TypeError(
        f"{name} is {x.dtype} but the layer's parameters are {dtype}; convert one of "
        f"them, with {name}.to({dtype}) or layer.to({x.dtype})"
    )


def dtype_taken_by(layer: nn.Module) -> torch.dtype | None:
    """The dtype that a layer wants of its input, as far as its own parameters tell.

    Args:
        layer: One of torch's, or whatever was put in its place.

    Returns:
        The dtype of the layer's own parameters. None if they are not of one floating dtype, as
        where the weight is quantized; if it has none, as a wrapper of another layer; or if a hook
        sees the input first and may convert it. What such a layer takes it says by itself.
    """
    if layer._forward_pre_hooks:
        return None
    dtypes = {parameter.dtype for parameter in layer.parameters(recurse=False)}
    dtype = dtypes.pop() if len(dtypes) == 1 else None
    return dtype if dtype is not None and dtype.is_floating_point else None


def require_last_axis(name: str, x: Shaped[Tensor, "..."], size_name: str, size: int) -> None:
    """Refuses an input whose last axis is missing or has another size than the layer's.

    Args:
        name: Name of the input, for the error.
        x: The input.
        size_name: Name of the layer's size, for the error.
        size: The layer's size.

    Raises:
        ValueError: If `x` has no axes, or a last axis of another size.
    """
    if x.ndim == 0 or x.shape[-1] != size:
        found = f"a last axis of {x.shape[-1]}" if x.ndim else "no axes"
        raise ValueError(
            f"{name} must have a last axis of {size_name} = {size}, got {found}: its shape is "
            f"{tuple(x.shape)}"
        )


def _autocasts(x: Shaped[Tensor, "..."]) -> bool:
    device = x.device.type  # asking about a device without autocast, such as meta, is an error
    return torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)
