"""Known wrong versions of `gelu` and `gelu_tanh`."""

import math

import torch
from torch import Tensor
from torch.nn import functional

from layer_checks.checks.activations import gelu, gelu_tanh
from transformer_layers.precision import at_least_float32


def _tanh_of(x: Tensor, inner: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.tanh(inner))


@gelu.wrong("use erf: the tanh form is an approximation, for weights that were trained with it.")
def tanh_form(x: Tensor) -> Tensor:
    """The approximation in place of the exact function."""
    return functional.gelu(x, approximate="tanh")


@gelu.wrong("use erf: x·sigmoid(1.702x) is a coarse approximation.")
def sigmoid_form(x: Tensor) -> Tensor:
    """The other approximation of the paper."""
    return x * torch.sigmoid(1.702 * x)


@gelu.wrong("multiply x by Φ(x), not by the step function.", name="ReLU")
def relu(x: Tensor) -> Tensor:
    """Another activation."""
    return x.relu()


@gelu.wrong("multiply x by Φ(x), not by the logistic function.", name="SiLU")
def silu(x: Tensor) -> Tensor:
    """Another activation, which looks much like GELU."""
    return x * torch.sigmoid(x)


@gelu.wrong("take erf(x/√2): Φ(x) is (1 + erf(x/√2))/2.", name="root of 2 missing")
def erf_of_x(x: Tensor) -> Tensor:
    """Leaves out the root of 2."""
    return 0.5 * x * (1 + torch.erf(x))


@gelu.wrong("compute √2, do not round it: six digits show in float64.")
def root_of_2_rounded(x: Tensor) -> Tensor:
    """Has the root of 2 to six digits."""
    wide = at_least_float32(x)
    return (0.5 * wide * (1 + torch.erf(wide / 1.41421))).to(x.dtype)


@gelu.wrong("multiply by 1/2: Φ runs from 0 to 1.", name="one half missing")
def without_one_half(x: Tensor) -> Tensor:
    """Is twice as large."""
    return x * (1 + torch.erf(x / math.sqrt(2)))


@gelu.wrong("let the gradient flow through Φ(x) too: the derivative is Φ(x) + x·φ(x).")
def gate_detached(x: Tensor) -> Tensor:
    """Takes the factor of x for a constant."""
    wide = at_least_float32(x)
    return (wide * torch.special.ndtr(wide.detach())).to(x.dtype)


@gelu.wrong("return the dtype of the input.", name="always float32")
def in_float32(x: Tensor) -> Tensor:
    """Returns float32 whatever it was given."""
    return functional.gelu(x.float())


@gelu.wrong("convert bfloat16 to float32 as well, and round once, at the end.")
def computed_in_bfloat16(x: Tensor) -> Tensor:
    """Widens float16 alone."""
    wide = x.float() if x.dtype == torch.float16 else x
    return (0.5 * wide * (1 + torch.erf(wide / math.sqrt(2)))).to(x.dtype)


@gelu_tanh.wrong(
    "use the tanh form: GPT-2's weights were trained with it.",
    published="the GPT-2 notes, FeedForward; nanoGPT, model.py, "
    "https://github.com/karpathy/nanoGPT/pull/274",
)
def exact_form(x: Tensor) -> Tensor:
    """The exact function in place of the approximation."""
    return functional.gelu(x)


gelu_tanh.wrong("use tanh: x·sigmoid(1.702x) is another approximation.")(sigmoid_form)


@gelu_tanh.wrong("the factor of x³ is 0.044715.")
def decimal_point_misplaced(x: Tensor) -> Tensor:
    """Has a cubic term ten times too large."""
    return _tanh_of(x, math.sqrt(2 / math.pi) * (x + 0.44715 * x**3))


@gelu_tanh.wrong("add 0.044715·x³ to x.")
def no_cubic_term(x: Tensor) -> Tensor:
    """Has no cubic term."""
    return _tanh_of(x, math.sqrt(2 / math.pi) * x)


@gelu_tanh.wrong("add 0.044715·x³ to x, not a multiple of x².")
def square_for_cube(x: Tensor) -> Tensor:
    """Has x² in place of x³."""
    return _tanh_of(x, math.sqrt(2 / math.pi) * (x + 0.044715 * x**2))


@gelu_tanh.wrong("the factor is √(2/π) = 0.798, with π under the root.")
def pi_outside_the_root(x: Tensor) -> Tensor:
    """Divides by pi outside the root."""
    return _tanh_of(x, math.sqrt(2) / math.pi * (x + 0.044715 * x**3))


@gelu_tanh.wrong("compute √(2/π), do not round it.")
def constant_rounded(x: Tensor) -> Tensor:
    """Has the root of 2/pi to two digits."""
    return _tanh_of(x, 0.8 * (x + 0.044715 * x**3))


@gelu_tanh.wrong(
    "compute √(2/π), do not type it: ten digits are fewer than float64 has.",
    published="transformers 5.23, activations.py, FastGELUActivation; megatron-core 0.16.1, "
    "megatron/core/fusions/fused_bias_gelu.py, with eight",
)
def constant_of_ten_digits(x: Tensor) -> Tensor:
    """Has the root of 2/pi to ten digits."""
    wide = at_least_float32(x)
    return _tanh_of(wide, 0.7978845608 * (wide + 0.044715 * wide**3)).to(x.dtype)


@gelu_tanh.wrong("multiply by 1/2: 1 + tanh runs from 0 to 2.")
def one_half_missing(x: Tensor) -> Tensor:
    """Is twice as large."""
    return 2 * tanh_form(x)


@gelu_tanh.wrong("return the dtype of the input.", name="always float32")
def tanh_in_float32(x: Tensor) -> Tensor:
    """Returns float32 whatever it was given."""
    return tanh_form(x.float())


@gelu_tanh.wrong(
    "convert bfloat16 to float32 as well, and round once, at the end.", name="computed in bfloat16"
)
def tanh_computed_in_bfloat16(x: Tensor) -> Tensor:
    """Widens float16 alone."""
    wide = x.float() if x.dtype == torch.float16 else x
    return _tanh_of(wide, math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)).to(x.dtype)
