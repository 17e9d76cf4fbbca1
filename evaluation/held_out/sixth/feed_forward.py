"""Wrong versions of the layers that map each position by itself."""

from typing import Any

import torch
from torch import Tensor, nn

from evaluation.held_out.definitions import held_out
from transformer_layers import (
    Conv1D,
    FeedForward,
    GatedFeedForward,
    PackedGatedFeedForward,
    PositionwiseFeedForward,
)
from transformer_layers.validation import dtype_taken_by, require_dtype, require_last_axis


@held_out(
    "Conv1D",
    "flagos-ai/FlagGems, issue 5379",
    r"view|contiguous|stride|transpos|layout|memory",
)
class ViewOfTheLeadingAxes(Conv1D):
    """Flattens the leading axes with view, which refuses an input that is transposed."""

    def forward(self, x: Tensor) -> Tensor:
        require_last_axis("x", x, "in_features", self.in_features)
        leading = x.shape[:-1]
        y = super().forward(x.view(leading.numel(), self.in_features))
        return y.view(*leading, self.out_features)


@held_out(
    "Conv1D",
    "review practice: a transposed copy for inference",
    r"cache|copy|stale|kept|state|second|load|old|first call|again",
)
class TransposeOfTheFirstEvaluation(Conv1D):
    """Keeps a transposed copy of the weight from its first evaluation without gradients."""

    _transposed: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        if self.training or torch.is_grad_enabled():
            return super().forward(x)
        require_last_axis("x", x, "in_features", self.in_features)
        require_dtype("x", x, self.bias.dtype)
        if self._transposed is None:
            self._transposed = self.weight.T.contiguous()
        product = nn.functional.linear(x, self._transposed)
        return product + self.bias.to(product.dtype)


@held_out("Conv1D", "review practice: a bias that is drawn", r"bias|start|initial|zero|reset")
class BiasStartsAsThatOfLinear(Conv1D):
    """Draws the bias from the uniform distribution of torch's Linear, in place of zeros."""

    def reset_parameters(self) -> None:
        super().reset_parameters()
        bound = max(self.in_features, 1) ** -0.5
        nn.init.uniform_(self.bias, -bound, bound)


@held_out(
    "PositionwiseFeedForward",
    "review practice: positions in chunks",
    r"chunk|rest|remainder|tail|long|last|multiple|sequence|zero",
)
class RestOfTheChunksLost(PositionwiseFeedForward):
    """Maps more than 32 positions by 32, and leaves zeros behind the last whole chunk."""

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim < 2 or x.shape[-2] <= 32:
            return super().forward(x)
        whole = x.shape[-2] - x.shape[-2] % 32
        mapped = super().forward(x[..., :whole, :])
        return torch.cat([mapped, torch.zeros_like(x[..., whole:, :])], dim=-2)


@held_out(
    "PositionwiseFeedForward",
    "review practice: an option that nothing reads",
    r"activation|relu|option|argument|ignor",
)
class ActivationIgnored(PositionwiseFeedForward):
    """Has the ReLU, whatever activation it is given."""

    def __init__(self, *args: Any, activation: Any = torch.relu, **options: Any) -> None:
        super().__init__(*args, **options)


@held_out(
    "PositionwiseFeedForward",
    "review practice: the activation of a later paper",
    r"square|activation|relu|power",
)
class ActivationSquared(PositionwiseFeedForward):
    """Squares what the activation gives."""

    def forward(self, x: Tensor) -> Tensor:
        require_last_axis("x", x, "d_model", self.d_model)
        require_dtype("x", x, dtype_taken_by(self.linear1))
        return self.dropout(self.linear2(self.activation(self.linear1(x)).square()))


@held_out(
    "FeedForward",
    "review practice: two kernels for two modes",
    r"exact|erf|tanh|evaluation|eval|mode|approximate|approximation|form",
)
class ExactGeluInEvaluation(FeedForward):
    """Takes the exact GELU in evaluation, and the tanh form in training."""

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            return super().forward(x)
        return self.c_proj(nn.functional.gelu(self.c_fc(x)))


@held_out(
    "FeedForward",
    "review practice: results without new memory",
    r"buffer|alias|overwrit|writes|second call|next call|earlier|state|kept|same memory",
)
class ResultsInOneBuffer(FeedForward):
    """Without gradients writes its results into one buffer, so that a call changes those before."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._results: dict[Any, Tensor] = {}

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        if torch.is_grad_enabled():
            return y
        buffer = self._results.setdefault((y.shape, y.dtype, y.device), torch.empty_like(y))
        return buffer.copy_(y)


@held_out(
    "GatedFeedForward",
    "review practice: which of the two is the gate",
    r"gate|up|swap|activation|order|which",
)
class ActivationOnTheUp(GatedFeedForward):
    """Sends the other projection through the activation, not the gate."""

    def forward(self, x: Tensor) -> Tensor:
        require_last_axis("x", x, "d_model", self.d_model)
        require_dtype("x", x, dtype_taken_by(self.gate_proj))
        return self.down_proj(self.gate_proj(x) * self.activation(self.up_proj(x)))


@held_out(
    "GatedFeedForward",
    "review practice: limits of a later model",
    r"clamp|limit|large|extreme|bound|seven|saturat|clip",
)
class GateClampedAtSeven(GatedFeedForward):
    """Clamps the gate at seven before its activation."""

    def forward(self, x: Tensor) -> Tensor:
        require_last_axis("x", x, "d_model", self.d_model)
        require_dtype("x", x, dtype_taken_by(self.gate_proj))
        gate = self.gate_proj(x).clamp(max=7.0)
        return self.down_proj(self.activation(gate) * self.up_proj(x))


@held_out(
    "GatedFeedForward",
    "review practice: a projection that reset_parameters leaves",
    r"reset|up_proj|initial|drawn|anew|draw",
)
class ResetForgetsTheUp(GatedFeedForward):
    """Draws two of its three maps anew, and not `up_proj`."""

    def reset_parameters(self) -> None:
        self.gate_proj.reset_parameters()
        self.down_proj.reset_parameters()


@held_out(
    "PackedGatedFeedForward",
    "linkedin/Liger-Kernel, pull request 1340",
    r"interleav|row|order|half|chunk|pack|alternat",
)
class RowsInterleaved(PackedGatedFeedForward):
    """Takes every second row for the gate, in place of the first half."""

    def forward(self, x: Tensor) -> Tensor:
        require_last_axis("x", x, "d_model", self.d_model)
        require_dtype("x", x, dtype_taken_by(self.gate_up_proj))
        both = self.gate_up_proj(x)
        return self.down_proj(self.activation(both[..., 0::2]) * both[..., 1::2])


@held_out(
    "PackedGatedFeedForward",
    "review practice: the convention of glu",
    r"half|second|first|gate|order|swap|glu",
)
class SecondHalfGates(PackedGatedFeedForward):
    """Takes the second half for the gate, as torch's glu does."""

    def forward(self, x: Tensor) -> Tensor:
        require_last_axis("x", x, "d_model", self.d_model)
        require_dtype("x", x, dtype_taken_by(self.gate_up_proj))
        up, gate = self.gate_up_proj(x).chunk(2, dim=-1)
        return self.down_proj(self.activation(gate) * up)


@held_out(
    "PackedGatedFeedForward",
    "review practice: an option that one map does not get",
    r"bias|down|option|argument",
)
class DownWithoutBias(PackedGatedFeedForward):
    """Has no bias in the map down, also with `bias=True`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.down_proj.register_parameter("bias", None)
