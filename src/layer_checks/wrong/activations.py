"""Known wrong versions of `gelu` and `gelu_tanh`."""

import math

import torch
from torch import Tensor
from torch.nn import functional

from layer_checks.definitions import WrongVersion


def tanh_form(x: Tensor) -> Tensor:
    """The approximation in place of the exact function."""
    return functional.gelu(x, approximate="tanh")


def exact_form(x: Tensor) -> Tensor:
    """The exact function in place of the approximation."""
    return functional.gelu(x)


def sigmoid_form(x: Tensor) -> Tensor:
    """The other approximation of the paper."""
    return x * torch.sigmoid(1.702 * x)


def relu(x: Tensor) -> Tensor:
    """Another activation."""
    return x.relu()


def silu(x: Tensor) -> Tensor:
    """Another activation, which looks much like GELU."""
    return x * torch.sigmoid(x)


def erf_of_x(x: Tensor) -> Tensor:
    """Leaves out the root of 2."""
    return 0.5 * x * (1 + torch.erf(x))


def without_one_half(x: Tensor) -> Tensor:
    """Is twice as large."""
    return x * (1 + torch.erf(x / math.sqrt(2)))


def gate_detached(x: Tensor) -> Tensor:
    """Takes the factor of x for a constant."""
    return x * torch.special.ndtr(x.detach())


def in_float32(x: Tensor) -> Tensor:
    """Returns float32 whatever it was given."""
    return functional.gelu(x.float())


def tanh_in_float32(x: Tensor) -> Tensor:
    """Returns float32 whatever it was given."""
    return tanh_form(x.float())


def _tanh_of(x: Tensor, inner: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.tanh(inner))


def misplaced_point(x: Tensor) -> Tensor:
    """Has a cubic term ten times too large."""
    return _tanh_of(x, math.sqrt(2 / math.pi) * (x + 0.44715 * x**3))


def no_cubic_term(x: Tensor) -> Tensor:
    """Has no cubic term."""
    return _tanh_of(x, math.sqrt(2 / math.pi) * x)


def square_for_cube(x: Tensor) -> Tensor:
    """Has x² in place of x³."""
    return _tanh_of(x, math.sqrt(2 / math.pi) * (x + 0.044715 * x**2))


def root_of_two_over_pi(x: Tensor) -> Tensor:
    """Divides by pi outside the root."""
    return _tanh_of(x, math.sqrt(2) / math.pi * (x + 0.044715 * x**3))


def rounded_constant(x: Tensor) -> Tensor:
    """Has the root of 2/pi to two digits."""
    return _tanh_of(x, 0.8 * (x + 0.044715 * x**3))


def without_one_half_tanh(x: Tensor) -> Tensor:
    """Is twice as large."""
    return 2 * tanh_form(x)


WRONG_GELUS = (
    WrongVersion(
        "tanh form",
        "use erf: the tanh form is an approximation, for weights that were trained with it.",
        tanh_form,
    ),
    WrongVersion(
        "sigmoid form",
        "use erf: x·sigmoid(1.702x) is a coarse approximation.",
        sigmoid_form,
    ),
    WrongVersion("ReLU", "multiply x by Φ(x), not by the step function.", relu),
    WrongVersion("SiLU", "multiply x by Φ(x), not by the logistic function.", silu),
    WrongVersion(
        "root of 2 missing",
        "take erf(x/√2): Φ(x) is (1 + erf(x/√2))/2.",
        erf_of_x,
    ),
    WrongVersion("one half missing", "multiply by 1/2: Φ runs from 0 to 1.", without_one_half),
    WrongVersion(
        "gate detached",
        "let the gradient flow through Φ(x) too: the derivative is Φ(x) + x·φ(x).",
        gate_detached,
    ),
    WrongVersion(
        "always float32",
        "return the dtype of the input.",
        in_float32,
    ),
)

WRONG_TANH_GELUS = (
    WrongVersion(
        "exact form",
        "use the tanh form: GPT-2's weights were trained with it.",
        exact_form,
        "the GPT-2 notes, FeedForward; nanoGPT, model.py, "
        "https://github.com/karpathy/nanoGPT/pull/274",
    ),
    WrongVersion(
        "sigmoid form",
        "use tanh: x·sigmoid(1.702x) is another approximation.",
        sigmoid_form,
    ),
    WrongVersion(
        "decimal point misplaced",
        "the factor of x³ is 0.044715.",
        misplaced_point,
    ),
    WrongVersion("no cubic term", "add 0.044715·x³ to x.", no_cubic_term),
    WrongVersion("square for cube", "add 0.044715·x³ to x, not a multiple of x².", square_for_cube),
    WrongVersion(
        "pi outside the root",
        "the factor is √(2/π) = 0.798, with π under the root.",
        root_of_two_over_pi,
    ),
    WrongVersion(
        "constant rounded",
        "compute √(2/π), do not round it.",
        rounded_constant,
    ),
    WrongVersion(
        "one half missing",
        "multiply by 1/2: 1 + tanh runs from 0 to 2.",
        without_one_half_tanh,
    ),
    WrongVersion(
        "always float32",
        "return the dtype of the input.",
        tanh_in_float32,
    ),
)
