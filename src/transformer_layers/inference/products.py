"""Matrix products for inference on a CPU: a weight, stored as the machine multiplies it fastest.

Each takes the weight as (in, out), as :class:`Conv1D` has it, and computes `x @ weight + bias`.
"""

import functools
import warnings
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.ao.nn.quantized import dynamic

from transformer_layers.inference.choices import (
    cut,
    onednn_is_faster,
    row_kernel,
    sliced_product,
)

INT8_STEPS = 127  # to either side of 0


class Float32Product(nn.Module):
    """A product in float32, exact but for the order of its sums.

    Which kernels are fastest depends on the processor, so that they are timed when the first
    product of a process is made (:mod:`transformer_layers.inference.choices`). A single row takes
    as long as reading the weight does: torch's own product reads it, or a batched product, for
    which the weight is cut into as many matrices as there are threads. Several rows take as long as
    multiplying does: torch's own product does that, or oneDNN, which needs the weight a second
    time. In a graph that torch compiles or exports it is torch's own product, for which the
    compiler chooses.

    Args:
        weight: Shape `(in_features, out_features)`.
        bias: Shape `(out_features,)`, or None.

    Attributes:
        weight: The weight, with the axis contiguous along which a row is multiplied fastest.
        bias: The bias, zeros if there was none.
        slices: Views of the weight and of the bias, a matrix and a row for each thread; None where
            torch's own product is faster.
        packed: Weight and bias as oneDNN holds them; None where it is not faster.
    """

    weight: Tensor
    bias: Tensor
    slices: tuple[Tensor, Tensor] | None
    packed: tuple[Tensor, Tensor] | None

    def __init__(
        self,
        weight: Float[Tensor, "in_features out_features"],
        bias: Float[Tensor, " out_features"] | None,
    ) -> None:
        super().__init__()
        in_features, out_features = weight.shape
        threads = torch.get_num_threads()
        kernel = row_kernel(in_features <= out_features, threads)
        padding = -out_features % threads if kernel.sliced else 0
        padded = nn.functional.pad(weight.detach(), (0, padding))
        padded = padded.T.contiguous().T if kernel.by_rows else padded.contiguous()
        bias = weight.new_zeros(out_features) if bias is None else bias.detach()
        self.register_buffer("weight", padded[:, :out_features])
        self.register_buffer("bias", bias)
        self.slices = None
        if kernel.sliced:
            padded_bias = nn.functional.pad(bias, (0, padding))
            self.slices = (cut(padded, threads), padded_bias.view(threads, 1, -1))
        self.packed = None
        if onednn_is_faster(threads):
            self.packed = (self.weight.T.contiguous().to_mkldnn(), bias.to_mkldnn())

    def forward(self, x: Float[Tensor, "... in_features"]) -> Float[Tensor, "... out_features"]:
        """Maps the last axis of `x`."""
        if not torch.compiler.is_compiling():  # a graph cannot hold a packed weight's values
            in_features, out_features = self.weight.shape
            single = x.numel() == in_features
            if single and self.slices is not None:
                row = sliced_product(x.reshape(in_features), *self.slices)
                return row[:out_features].view(*x.shape[:-1], out_features)
            if not single and self.packed is not None:
                return nn.functional.linear(x.to_mkldnn(), *self.packed).to_dense()
        return nn.functional.linear(x, self.weight.T, self.bias)

    def __reduce__(self) -> tuple[type, tuple[Tensor, Tensor]]:
        """What a copy is made of: torch cannot copy the packed weight."""
        return Float32Product, (self.weight, self.bias)


class QuantizedProduct(nn.Module):
    """A product of float32 by a weight of fewer bits, by torch's dynamic quantization.

    Args:
        weight: Shape `(in_features, out_features)`.
        bias: Shape `(out_features,)`, or None.
        dtype: torch.float16 or torch.int8.

    Attributes:
        weight: Empty; its dtype is that of the input.
        stored: The dtype in which the weight is stored.

    Raises:
        ValueError: If torch has no kernel for `dtype` on this machine.
    """

    weight: Tensor

    def __init__(
        self,
        weight: Float[Tensor, "in_features out_features"],
        bias: Float[Tensor, " out_features"] | None,
        dtype: torch.dtype,
    ) -> None:
        super().__init__()
        self.register_buffer("weight", weight.new_empty(0))
        in_features, out_features = weight.shape
        rows = weight.detach().T.contiguous()
        stored = torch.float16 if dtype == torch.float16 else torch.qint8
        with warnings.catch_warnings():
            # torch announces that its quantized tensors will go: pytorch/pytorch#184982.
            warnings.filterwarnings("ignore", message=".*quantized tensor creation functions")
            try:
                linear = dynamic.Linear(in_features, out_features, bias is not None, stored)
                linear.set_weight_bias(
                    rows if dtype == torch.float16 else _in_int8(rows),
                    None if bias is None else bias.detach(),
                )
            except RuntimeError as error:
                raise ValueError(
                    f"torch {torch.__version__} has no products by weights of {dtype} on this "
                    f"machine, where it multiplies with {torch.backends.quantized.engine}; use "
                    "torch.float32 or torch.bfloat16"
                ) from error
        self.stored = dtype
        self._held = (
            linear,
        )  # no submodule, or export would meet its weight and not say what is wrong

    def forward(self, x: Float[Tensor, "... in_features"]) -> Float[Tensor, "... out_features"]:
        """Maps the last axis of `x`."""
        if torch.compiler.is_compiling():
            raise RuntimeError(
                f"a weight in {self.stored} is no tensor that a graph could hold: to compile with "
                "fullgraph=True or to export, make the model ready in torch.float32 or "
                "torch.bfloat16"
            )
        return self.linear(x)

    @property
    def linear(self) -> nn.Module:
        """The layer that multiplies."""
        return self._held[0]


def bfloat16_product(
    weight: Float[Tensor, "in_features out_features"],
    bias: Float[Tensor, " out_features"] | None,
) -> nn.Linear:
    """A product in the dtype of the weight, stored as (out, in): bfloat16's kernels are for that.

    Args:
        weight: Shape `(in_features, out_features)`.
        bias: Shape `(out_features,)`, or None.

    Returns:
        The layer.
    """
    in_features, out_features = weight.shape
    linear = nn.Linear(in_features, out_features, bias is not None, device="meta")
    linear.weight = nn.Parameter(weight.detach().T.contiguous())
    if bias is not None:
        linear.bias = nn.Parameter(bias.detach())
    return linear


PRODUCTS: dict[torch.dtype, Callable[[Tensor, Tensor | None], nn.Module]] = {
    torch.float32: Float32Product,
    torch.bfloat16: bfloat16_product,
    torch.float16: functools.partial(QuantizedProduct, dtype=torch.float16),
    torch.int8: functools.partial(QuantizedProduct, dtype=torch.int8),
}


def _in_int8(rows: Float[Tensor, "out_features in_features"]) -> Tensor:
    # Each row has a scale of its own: the largest element of it is 127 steps.
    scales = rows.abs().amax(dim=1).clamp(min=torch.finfo(rows.dtype).tiny) / INT8_STEPS
    zeros = torch.zeros(len(rows), dtype=torch.long)
    return torch.quantize_per_channel(rows, scales.double(), zeros, 0, torch.qint8)
