"""Wrong versions of the feed-forward layers, and of GPT-2's linear layer."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from evaluation.held_out.definitions import held_out
from transformer_layers.models.gpt2.conv1d import Conv1D
from transformer_layers.models.gpt2.feed_forward import FeedForward
from transformer_layers.regularization.dropout import Dropout, dropout
from transformer_layers.validation import (
    dtype_taken_by,
    require_dtype,
    require_floating_dtype,
    require_last_axis,
    require_probability,
    require_size,
)

Activation = Callable[[Tensor], Tensor]
Device = torch.device | str | int | None


class _Maps(nn.Module):
    """Two maps and what stands between them."""

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        dropout: float = 0.1,
        *,
        activation: Activation = torch.relu,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_size("d_model", d_model)
        require_size("d_ff", d_ff)
        require_probability("dropout", dropout)
        require_floating_dtype(dtype)
        self.d_model = d_model
        self._keep(activation)
        self.linear1 = nn.Linear(d_model, d_ff, device=device, dtype=dtype)
        self.linear2 = nn.Linear(d_ff, d_model, device=device, dtype=dtype)
        self.dropout = Dropout(dropout)

    def _keep(self, activation: Activation) -> None:
        self.activation = activation

    def reset_parameters(self) -> None:
        self.linear1.reset_parameters()
        self.linear2.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        require_last_axis("x", x, "d_model", self.d_model)
        require_dtype("x", x, dtype_taken_by(self.linear1))
        return self.dropout(self.linear2(self._inner(x)))

    def _inner(self, x: Tensor) -> Tensor:
        return self.activation(self.linear1(x))


@held_out("PositionwiseFeedForward", "review practice", r"activation|register|parameters|submodule")
class PositionwiseWithAnUnseenActivation(_Maps):
    """Keeps its activation in a tuple, so that the parameters of one that has some are missing."""

    def _keep(self, activation: Activation) -> None:
        self.activations = (activation,)

    def _inner(self, x: Tensor) -> Tensor:
        return self.activations[0](self.linear1(x))


@held_out(
    "PositionwiseFeedForward",
    "huggingface/transformers, issue 9295",
    r"clamp|clip|large|limit|6\d{4}",
)
class PositionwiseWithinTheRangeOfHalf(_Maps):
    """Clamps what is inside to the range of float16, in float32 as well."""

    def _inner(self, x: Tensor) -> Tensor:
        limit = torch.finfo(torch.float16).max - 1024
        return super()._inner(x).clamp(-limit, limit)


@held_out("FeedForward", "review practice", r"gradient|backward|derivative|exact")
class FeedForwardWithTheExactGradient(FeedForward):
    """Gives the tanh form, and takes the gradient of the exact one."""

    def forward(self, x: Tensor) -> Tensor:
        inner = self.c_fc(x)
        exact = nn.functional.gelu(inner)
        value = nn.functional.gelu(inner.detach(), approximate="tanh")
        return self.dropout(self.c_proj(value + (exact - exact.detach())))


@held_out("FeedForward", "review practice", r"dropout|drop|position|whole|element")
class FeedForwardDroppingPositions(FeedForward):
    """Drops whole positions in training where it should drop single elements."""

    def forward(self, x: Tensor) -> Tensor:
        result = self.c_proj(nn.functional.gelu(self.c_fc(x), approximate="tanh"))
        passing = dropout(torch.ones_like(result[..., :1]), self.dropout.p, self.training)
        return torch.where(passing > 0, result, 0.0) * passing


class _Gated(nn.Module):
    """Three maps, one of them a gate."""

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        activation: Activation = nn.functional.silu,
        bias: bool = False,
        *,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_size("d_model", d_model)
        require_size("d_ff", d_ff)
        require_floating_dtype(dtype)
        self.d_model = d_model
        self.activation = activation
        d_ff = self._width(d_ff)
        self.gate_proj = nn.Linear(d_model, d_ff, bias, device=device, dtype=dtype)
        self.up_proj = nn.Linear(d_model, d_ff, bias, device=device, dtype=dtype)
        self.down_proj = nn.Linear(d_ff, d_model, bias, device=device, dtype=dtype)

    def _width(self, d_ff: int) -> int:
        return d_ff

    def reset_parameters(self) -> None:
        for each in (self.gate_proj, self.up_proj, self.down_proj):
            each.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        require_last_axis("x", x, "d_model", self.d_model)
        require_dtype("x", x, dtype_taken_by(self.gate_proj))
        return self.down_proj(self._product(self.gate_proj(x), self.up_proj(x)))

    def _product(self, gate: Tensor, up: Tensor) -> Tensor:
        return self.activation(gate) * up


@held_out("GatedFeedForward", "review practice", r"in[- ]place|backward|gradient|train|overwrit")
class GatedProductWrittenOverTheGate(_Gated):
    """Writes the product over the activated gate, which the ReLU needs for its gradient."""

    def _product(self, gate: Tensor, up: Tensor) -> Tensor:
        return self.activation(gate).mul_(up)


@held_out("GatedFeedForward", "review practice", r"d_ff|width|shape|multiple|size|parameters")
class GatedWidthOfFullTiles(_Gated):
    """Rounds the inner width up to a multiple of eight, so that weights of others do not fit."""

    def _width(self, d_ff: int) -> int:
        return math.ceil(d_ff / 8) * 8


@held_out(
    "GatedFeedForward", "review practice", r"gate|up_proj|swap|activat|wrong (map|one|branch)"
)
class GatedActivationOfTheOther(_Gated):
    """Puts the activation on what is to pass, and none on the gate."""

    def _product(self, gate: Tensor, up: Tensor) -> Tensor:
        return gate * self.activation(up)


class _Packed(nn.Module):
    """Two maps, the first of them of gate and content together."""

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        activation: Activation = nn.functional.silu,
        bias: bool = False,
        *,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_size("d_model", d_model)
        require_size("d_ff", d_ff)
        require_floating_dtype(dtype)
        self.d_model = d_model
        self.activation = activation
        self.gate_up_proj = nn.Linear(d_model, 2 * d_ff, bias, device=device, dtype=dtype)
        self.down_proj = nn.Linear(d_ff, d_model, bias, device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        self.gate_up_proj.reset_parameters()
        self.down_proj.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        require_last_axis("x", x, "d_model", self.d_model)
        require_dtype("x", x, dtype_taken_by(self.gate_up_proj))
        gate, up = self._parts(self.gate_up_proj(x))
        return self.down_proj(self.activation(gate) * up)

    def _parts(self, both: Tensor) -> tuple[Tensor, Tensor]:
        gate, up = both.chunk(2, dim=-1)
        return gate, up


@held_out(
    "PackedGatedFeedForward",
    "vllm-project/vllm, pull 29273",
    r"interleav|turns|order|rows|halves|half",
)
class PackedRowsByTurns(_Packed):
    """Reads gate and content from rows by turns, as gpt-oss has them, not from two halves."""

    def _parts(self, both: Tensor) -> tuple[Tensor, Tensor]:
        return both[..., 0::2], both[..., 1::2]


@held_out(
    "PackedGatedFeedForward",
    "NVIDIA/TransformerEngine, pull 2161",
    r"clamp|clip|limit|large|\b7\b|\bcap",
)
class PackedCappedAtSeven(_Packed):
    """Clamps gate and content at 7, as gpt-oss does."""

    def _parts(self, both: Tensor) -> tuple[Tensor, Tensor]:
        gate, up = super()._parts(both)
        return gate.clamp(max=7.0), up.clamp(-7.0, 7.0)


@held_out("Conv1D", "flagos-ai/Torch-FL, pull 76", r"contiguous|transpos|stride|view|layout")
class Conv1DByAFlatView(nn.Module):
    """Flattens its input by a view, which a transposed input does not have."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_size("in_features", in_features, minimum=0)
        require_size("out_features", out_features, minimum=0)
        require_floating_dtype(dtype)
        self.in_features, self.out_features = in_features, out_features
        sizes = (in_features, out_features)
        self.weight = nn.Parameter(torch.empty(sizes, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.empty(out_features, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=0.02)
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        require_last_axis("x", x, "in_features", self.in_features)
        require_dtype("x", x, self.bias.dtype)
        leading = x.shape[:-1]
        rows = x.view(math.prod(leading), self.in_features)
        return torch.addmm(self.bias, rows, self.weight).view(*leading, self.out_features)

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}"


@held_out("Conv1D", "review practice", r"stale|cache|load|chang|copy|old|update")
class Conv1DServingItsFirstWeight(Conv1D):
    """Copies its weight at the first call for inference, and goes on with it once others load."""

    _served: Tensor | None = None

    def train(self, mode: bool = True) -> "Conv1DServingItsFirstWeight":
        self._served = None
        super().train(mode)
        return self

    def forward(self, x: Tensor) -> Tensor:
        if self.training or torch.is_grad_enabled():
            return super().forward(x)
        require_last_axis("x", x, "in_features", self.in_features)
        require_dtype("x", x, self.bias.dtype)
        if self._served is None:
            self._served = self.weight.detach().t().contiguous()
        product = nn.functional.linear(x, self._served)
        return product + self.bias.to(product.dtype)
