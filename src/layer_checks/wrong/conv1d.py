"""Known wrong versions of `Conv1D`."""

import torch
from torch import Tensor, nn

from layer_checks.checks.conv1d import conv1d


@conv1d.right_otherwise
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


@conv1d.wrong(
    "take the input size first: with (nf, nx) every use in the order of nn.Linear is reversed.",
    published="the GPT-2 notes, Conv1D and FeedForward; the order is that of "
    "graykode/gpt-2-Pytorch, GPT2/model.py",
)
class OutputSizeFirst(_Conv1D):
    """Takes its arguments in the order of the notes."""

    def __init__(self, nf: int, nx: int) -> None:
        super().__init__(nx, nf)


@conv1d.wrong(
    "hold the weight as (in, out), which is how GPT-2's checkpoints store it.",
    name="weight stored as nn.Linear's",
)
class WeightStoredAsInLinear(_Conv1D):
    """Holds the transpose."""

    def initial_weight(self, in_features: int, out_features: int) -> Tensor:
        return super().initial_weight(out_features, in_features)

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight.t() + self.bias


@conv1d.wrong(
    "multiply by the weight, not by its transpose: only a layer as wide as its input hides it."
)
class WeightTransposed(_Conv1D):
    """Multiplies by the transpose, right in shape where input and output are equally wide."""

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight, self.bias)


@conv1d.wrong("add the bias.")
class NoBias(_Conv1D):
    """Holds a bias and does not add it."""

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight


@conv1d.wrong("multiply the initial weights by 0.02.", name="standard deviation 1")
class StandardDeviationOne(_Conv1D):
    """Starts from weights 50 times too large."""

    def initial_weight(self, in_features: int, out_features: int) -> Tensor:
        return torch.randn(in_features, out_features)


@conv1d.wrong(
    "draw the initial weights from a normal distribution of standard deviation 0.02.",
    name="initialized as nn.Linear",
)
class InitializedAsLinear(_Conv1D):
    """Starts from weights that are uniform, between bounds that depend on the width."""

    def initial_weight(self, in_features: int, out_features: int) -> Tensor:
        return nn.Linear(in_features, out_features).weight.detach().t().clone()


@conv1d.wrong(
    "use @ or reshape: view raises on input that is not contiguous.",
    published="the GPT-2 notes, Conv1D; transformers, pytorch_utils.py",
)
class ViewOfStrides(_Conv1D):
    """Flattens with `view`, which refuses input that is not contiguous."""

    def forward(self, x: Tensor) -> Tensor:
        y = torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight)
        return y.view(*x.shape[:-1], self.weight.shape[1])


@conv1d.wrong("give the output the leading axes of the input.")
class LeadingAxesLost(_Conv1D):
    """Flattens the leading axes and leaves them flat."""

    def forward(self, x: Tensor) -> Tensor:
        return x.reshape(-1, x.shape[-1]) @ self.weight + self.bias
