"""torch's linear layer on a weight that is held as (in, out): the authority for GPT-2's layers."""

from torch import Tensor, nn
from torch.nn import functional

from layer_checks.candidates import randn64


class TransposedLinear(nn.Module):
    """`torch.nn.functional.linear` with random float64 weights, the matrix held transposed."""

    def __init__(self, in_features: int, out_features: int, std: float = 0.2) -> None:
        super().__init__()
        self.weight = nn.Parameter(std * randn64(in_features, out_features))
        self.bias = nn.Parameter(std * randn64(out_features))

    def forward(self, x: Tensor) -> Tensor:
        """Maps the last axis of `x`."""
        return functional.linear(x, self.weight.t(), self.bias)
