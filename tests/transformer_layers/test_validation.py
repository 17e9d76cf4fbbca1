"""The checks that the layers share: what they let pass, and what they refuse."""

import math

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

from transformer_layers.precision import at_least_float32
from transformer_layers.validation import (
    dtype_taken_by,
    require_dtype,
    require_floating,
    require_floating_dtype,
    require_last_axis,
    require_not_negative,
    require_positive,
    require_probability,
    require_size,
)

pytestmark = pytest.mark.usefixtures("as_users_run_it")

LOW = [torch.float16, torch.bfloat16]
FLOATING = [*LOW, torch.float32, torch.float64]


def test_what_passes():
    require_size("n", 1)
    require_size("n", 0, minimum=0)
    require_positive("eps", 1e-300)
    require_not_negative("threshold", 0.0)
    for p in (0, 0.0, 0.5, 1, 1.0):
        require_probability("p", p)
    for dtype in FLOATING:
        x = torch.zeros(2, 3, dtype=dtype)
        require_floating("x", x)
        require_dtype("x", x, dtype)
        require_dtype("x", x, None)
        require_floating_dtype(dtype)
        require_last_axis("x", x, "width", 3)
    for dtype in LOW:
        require_dtype("x", x.to(dtype), torch.float32, low_precision_input=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for dtype in (*LOW, torch.float32):
            require_dtype("x", x.to(dtype), torch.float32)
    require_floating_dtype(None)


@pytest.mark.parametrize(
    ("check", "arguments", "message"),
    [
        (require_size, ("n", 0), "n must be at least 1, got 0"),
        (require_size, ("n", 2, 3), "n must be at least 3, got 2"),
        (require_positive, ("eps", math.nan), "eps must be greater than 0, got nan"),
        (require_not_negative, ("t", math.nan), "t must be at least 0, got nan"),
        (require_probability, ("p", math.nan), "p must be between 0 and 1, got nan"),
        (
            require_last_axis,
            ("x", torch.zeros(2, 3), "width", 4),
            r"x must have a last axis of width = 4, got a last axis of 3: its shape is \(2, 3\)",
        ),
        (
            require_last_axis,
            ("x", torch.tensor(1.0), "width", 1),
            r"x must have a last axis of width = 1, got no axes: its shape is \(\)",
        ),
    ],
)
def test_values_that_are_refused(check, arguments, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        check(*arguments)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(2.0, "2.0 of type float"), (True, "True of type bool"), ("2", "'2' of type str")],
)
def test_a_size_that_is_no_int(value, shown):
    with pytest.raises(TypeError, match=f"^n must be an int, got {shown}$"):
        require_size("n", value)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
def test_a_tensor_that_is_no_floating_point(dtype):
    message = (
        f"^x must be a floating-point tensor, got {dtype}; convert it, for example with "
        r"x\.to\(torch\.float32\)$"
    )
    with pytest.raises(TypeError, match=message):
        require_floating("x", torch.zeros(2, dtype=dtype))


@pytest.mark.parametrize("low_precision_input", [False, True])
@pytest.mark.parametrize("of_parameter", FLOATING)
@pytest.mark.parametrize("of_input", FLOATING)
def test_which_dtypes_go_together(of_input, of_parameter, low_precision_input):
    x = torch.zeros(2, dtype=of_input)
    widened = low_precision_input and of_input in LOW and of_parameter == torch.float32
    if of_input == of_parameter or widened:
        require_dtype("x", x, of_parameter, low_precision_input)
        return
    message = (
        f"^x is {of_input} but the layer's parameters are {of_parameter}; convert one of them, "
        rf"with x\.to\({of_parameter}\) or layer\.to\({of_input}\)$"
    )
    with pytest.raises(TypeError, match=message):
        require_dtype("x", x, of_parameter, low_precision_input)


def hooked(layer: nn.Module) -> nn.Module:
    layer.register_forward_pre_hook(lambda module, inputs: (inputs[0].double(),))
    return layer


def with_weight_of_integers(layer: nn.Linear) -> nn.Linear:
    layer.weight = nn.Parameter(torch.ones(2, 2, dtype=torch.uint8), requires_grad=False)
    return layer


@pytest.mark.parametrize(
    ("layer", "dtype"),
    [
        (nn.Linear(2, 2), torch.float32),
        (nn.LayerNorm(2).bfloat16(), torch.bfloat16),
        (parametrizations.weight_norm(nn.Linear(2, 2).double()), torch.float64),  # by its bias
        (parametrizations.weight_norm(nn.Linear(2, 2, bias=False)), None),
        (nn.Sequential(nn.Linear(2, 2)), None),
        (with_weight_of_integers(nn.Linear(2, 2)), None),
        (with_weight_of_integers(nn.Linear(2, 2, bias=False)), None),
        (hooked(nn.Linear(2, 2)), None),
    ],
)
def test_the_dtype_that_a_layer_takes_as_far_as_one_can_tell(layer, dtype):
    assert dtype_taken_by(layer) == dtype


@pytest.mark.parametrize("dtype", FLOATING)
def test_the_dtype_that_a_layer_computes_in(dtype):
    x = torch.ones(2, dtype=dtype)
    wide = at_least_float32(x)
    assert wide.dtype == (torch.float32 if dtype in LOW else dtype)
    assert (wide is x) == (dtype not in LOW)
