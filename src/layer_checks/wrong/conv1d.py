# ruff: noqa: D102 - the docstring of each class says what its one method changes
"""Known wrong versions of `Conv1D`."""

import torch
from torch import Tensor, nn

from layer_checks.definitions import WrongVersion


class _Conv1D(nn.Module):
    """A right one, of which each wrong version changes one step."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(self.initial_weight(in_features, out_features))
        self.bias = nn.Parameter(torch.zeros(out_features))

    def initial_weight(self, in_features: int, out_features: int) -> Tensor:
        return 0.02 * torch.randn(in_features, out_features)

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight + self.bias


class OutputFirst(_Conv1D):
    """Takes its arguments in the order of the notes."""

    def __init__(self, nf: int, nx: int) -> None:
        super().__init__(nx, nf)


class WeightStoredAsInLinear(_Conv1D):
    """Holds the transpose."""

    def initial_weight(self, in_features: int, out_features: int) -> Tensor:
        return super().initial_weight(out_features, in_features)

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight.t() + self.bias


class WeightTransposed(_Conv1D):
    """Multiplies by the transpose, right in shape where input and output are equally wide."""

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight, self.bias)


class NoBias(_Conv1D):
    """Holds a bias and does not add it."""

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight


class BiasTwice(_Conv1D):
    """Adds the bias to a product that has it already."""

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight.t(), self.bias) + self.bias


class StandardDeviationOne(_Conv1D):
    """Starts from weights 50 times too large."""

    def initial_weight(self, in_features: int, out_features: int) -> Tensor:
        return torch.randn(in_features, out_features)


class InitializedAsLinear(_Conv1D):
    """Starts from weights that are uniform, between bounds that depend on the width."""

    def initial_weight(self, in_features: int, out_features: int) -> Tensor:
        return nn.Linear(in_features, out_features).weight.detach().t().clone()


class ViewOfStrides(_Conv1D):
    """Flattens with `view`, which refuses input that is not contiguous."""

    def forward(self, x: Tensor) -> Tensor:
        y = torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight)
        return y.view(*x.shape[:-1], self.weight.shape[1])


class LeadingAxesLost(_Conv1D):
    """Flattens the leading axes and leaves them flat."""

    def forward(self, x: Tensor) -> Tensor:
        return x.reshape(-1, x.shape[-1]) @ self.weight + self.bias


WRONG_CONV1DS = (
    WrongVersion(
        "output size first",
        "take the input size first: with (nf, nx) every use in the order of nn.Linear is reversed.",
        OutputFirst,
        "the GPT-2 notes, Conv1D and FeedForward; the order is that of graykode/gpt-2-Pytorch, "
        "GPT2/model.py",
    ),
    WrongVersion(
        "weight stored as nn.Linear's",
        "hold the weight as (in, out), which is how GPT-2's checkpoints store it.",
        WeightStoredAsInLinear,
    ),
    WrongVersion(
        "weight transposed",
        "multiply by the weight, not by its transpose: only a layer as wide as its input hides it.",
        WeightTransposed,
    ),
    WrongVersion("no bias", "add the bias.", NoBias),
    WrongVersion("bias twice", "add the bias once.", BiasTwice),
    WrongVersion(
        "standard deviation 1",
        "multiply the initial weights by 0.02.",
        StandardDeviationOne,
    ),
    WrongVersion(
        "initialized as nn.Linear",
        "draw the initial weights from a normal distribution of standard deviation 0.02.",
        InitializedAsLinear,
    ),
    WrongVersion(
        "view of strides",
        "use @ or reshape: view raises on input that is not contiguous.",
        ViewOfStrides,
        "the GPT-2 notes, Conv1D; transformers, pytorch_utils.py",
    ),
    WrongVersion(
        "leading axes lost",
        "give the output the leading axes of the input.",
        LeadingAxesLost,
    ),
)
