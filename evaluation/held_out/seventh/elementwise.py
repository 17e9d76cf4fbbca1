"""Wrong versions of activations, dropout and penalties."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from evaluation.held_out.definitions import held_out
from transformer_layers.precision import at_least_float32
from transformer_layers.regularization.dropout import dropout
from transformer_layers.validation import (
    require_floating,
    require_not_negative,
    require_probability,
)


@held_out("gelu", "review practice", r"erf|float64|double|digit|polynomial|precis|approx")
def gelu_by_polynomial_erf(x: Tensor) -> Tensor:
    """Takes erf from a polynomial of five terms, so that float64 has seven digits only."""
    require_floating("x", x)
    wide = at_least_float32(x)
    z = wide.abs() / math.sqrt(2)
    t = 1 / (1 + 0.3275911 * z)
    series = -0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))
    tail = 0.5 * t * (0.254829592 + t * series) * torch.exp(-z * z)
    return (wide * torch.where(wide < 0, tail, 1 - tail)).to(x.dtype)


@held_out("gelu", "review practice", r"gradient|backward|derivative|detach")
def gelu_of_a_constant_gate(x: Tensor) -> Tensor:
    """Detaches the share that passes to save memory, so its own gradient is missing."""
    require_floating("x", x)
    wide = at_least_float32(x)
    passing = 0.5 * torch.erfc(-wide.detach() / math.sqrt(2))
    return (wide * passing).to(x.dtype)


@held_out("gelu_tanh", "review practice", r"clamp|clip|bound|large|wide|limit|beyond|\b10\b")
def gelu_tanh_of_bounded_input(x: Tensor) -> Tensor:
    """Clamps its input to 10 against an overflow of the cube, so larger values come out as 10."""
    require_floating("x", x)
    wide = at_least_float32(x).clamp(-10.0, 10.0)
    inner = math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)
    return (0.5 * wide * (1 + torch.tanh(inner))).to(x.dtype)


@held_out("gelu_tanh", "review practice", r"0\.0447|constant|coefficient|digits|round")
def gelu_tanh_of_short_constant(x: Tensor) -> Tensor:
    """Has 0.0447 for the coefficient of the cube, which is 0.044715."""
    require_floating("x", x)
    wide = at_least_float32(x)
    inner = math.sqrt(2 / math.pi) * (wide + 0.0447 * wide**3)
    return (0.5 * wide * (1 + torch.tanh(inner))).to(x.dtype)


@held_out("dropout", "review practice", r"inf|nan|multiply|product|zero times|where")
def dropout_by_product(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Multiplies by zeros and ones, so that an infinity that is dropped becomes NaN."""
    require_probability("p", p)
    require_floating("x", x)
    if not training or p == 0:
        return x
    draws = torch.rand_like(x, dtype=torch.promote_types(x.dtype, torch.float32))
    scale = 1 / (1 - p) if p < 1 else 0.0
    return x * (draws >= p).to(x.dtype) * scale


@held_out("dropout", "review practice", r"rate|share|small p|probab|resolution|256|draw|byte")
def dropout_by_random_bytes(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Compares random bytes with p times 256, so that p is rounded to 256ths."""
    require_probability("p", p)
    require_floating("x", x)
    if not training or p == 0:
        return x
    draws = torch.randint(256, x.shape, device=x.device)
    scale = 1 / (1 - p) if p < 1 else 0.0
    return torch.where(draws >= round(256 * p), x, 0.0) * scale


@held_out("Dropout", "review practice", r"no_grad|gradient|checkpoint|grad mode|recompute")
class DropoutOnlyWithGradients(nn.Module):
    """Drops only where gradients are recorded, so it is off in training under no_grad."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        require_probability("p", p)
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.p, self.training and torch.is_grad_enabled())

    def extra_repr(self) -> str:
        return f"p={self.p}"


@held_out("Dropout", "review practice", r"same (mask|pattern|element)|anew|again|second call|lock")
class DropoutWithAPatternByShape(nn.Module):
    """Draws once for each shape, so that the next call of that shape drops the same elements."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        require_probability("p", p)
        self.p = p
        self._pattern: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        require_floating("x", x)
        if not self.training or self.p == 0:
            return x
        if self._pattern is None or self._pattern.shape != x.shape:
            self._pattern = torch.rand(x.shape, device=x.device) >= self.p
        scale = 1 / (1 - self.p) if self.p < 1 else 0.0
        return torch.where(self._pattern.to(x.device), x, 0.0) * scale

    def extra_repr(self) -> str:
        return f"p={self.p}"


def _listed(parameters: Iterable[Tensor]) -> list[Tensor]:
    """The parameters as a list; an error if there are none, or one is not floating."""
    weights = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    if not weights:
        raise ValueError("no parameters to penalize, got an empty iterable")
    for weight in weights:
        require_floating("each parameter", weight)
    return weights


@held_out("l1_penalty", "review practice", r"half|float16|bfloat16|overflow|precision|dtype")
def l1_penalty_summed_in_half(parameters: Iterable[Tensor]) -> Tensor:
    """Sums each tensor in its own dtype and widens the sums, so that float16 overflows."""
    sums = [at_least_float32(w.abs().sum()) for w in _listed(parameters)]
    return torch.stack(sums).sum()


@held_out("l1_penalty", "review practice", r"zero|smooth|\beps|sqrt|root|sparse")
def l1_penalty_of_smoothed_roots(parameters: Iterable[Tensor]) -> Tensor:
    """Takes the root of the square plus 1e-12, so that each zero costs 1e-6."""
    wide = [at_least_float32(w) for w in _listed(parameters)]
    return torch.stack([torch.sqrt(w.square() + 1e-12).sum() for w in wide]).sum()


@held_out("l2_penalty", "review practice", r"empty|nothing|no parameters|generator|exhaust|error")
def l2_penalty_of_a_spent_generator(parameters: Iterable[Tensor]) -> Tensor:
    """Begins its sum at 0, so that a generator that was read before costs nothing, silently."""
    total = torch.zeros(())
    weights = [parameters] if isinstance(parameters, Tensor) else parameters
    for weight in weights:
        require_floating("each parameter", weight)
        total = total.to(weight.device) + at_least_float32(weight).square().sum()
    return 0.5 * total


@held_out("l2_penalty", "review practice", r"mean|average|number of|size|\bsum")
def l2_penalty_averaged_by_tensor(parameters: Iterable[Tensor]) -> Tensor:
    """Takes the mean square of each tensor in place of the sum of its squares."""
    wide = [at_least_float32(w) for w in _listed(parameters)]
    return 0.5 * torch.stack([w.square().mean() for w in wide]).sum()


@held_out("soft_threshold", "review practice", r"gradient|straight|backward|derivative")
def soft_threshold_with_straight_gradient(x: Tensor, threshold: float) -> Tensor:
    """Passes the gradient straight through, also where the result is zero."""
    require_floating("x", x)
    require_not_negative("threshold", threshold)
    wide = at_least_float32(x)
    shrunk = wide - wide.clamp(-threshold, threshold)
    return (shrunk.detach() + (wide - wide.detach()).nan_to_num()).to(x.dtype)


@held_out("soft_threshold", "review practice", r"negative|refus|error|reject|valid|grow")
def soft_threshold_that_grows(x: Tensor, threshold: float) -> Tensor:
    """Takes a negative threshold, by which elements grow, where there should be an error."""
    require_floating("x", x)
    wide = at_least_float32(x)
    return (wide.sign() * torch.relu(wide.abs() - threshold)).to(x.dtype)
