"""Which kernels multiply fastest in float32 on this machine: timed once, and remembered.

It depends on the processor, and on the library that torch multiplies with (MKL, on most machines).
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer_layers.inference.fastest import fastest

SIDES = (768, 3072)  # of the matrices that are multiplied to find out
COPIES = 7  # of a matrix, 66 MB in all: a model's weights are not in the nearest caches either
SEVERAL = 256  # rows


class RowKernel(NamedTuple):
    """How a single row is multiplied by a weight.

    Attributes:
        by_rows: Whether the weight's rows of the shape (out, in) are contiguous, or else those of
            the shape (in, out).
        sliced: Whether the weight is cut into a matrix for each thread, which a batched product
            shares out.
    """

    by_rows: bool
    sliced: bool


def cut(
    weight: Float[Tensor, "in_features out_features"], slices: int
) -> Float[Tensor, "slices in_features columns"]:
    """A view of a weight as a batch of matrices; `slices` divides `out_features`."""
    return weight.unflatten(1, (slices, -1)).transpose(0, 1)


def sliced_product(
    row: Float[Tensor, " in_features"],
    weight: Float[Tensor, "slices in_features columns"],
    bias: Float[Tensor, "slices 1 columns"],
) -> Float[Tensor, " out_features"]:
    """A row times a weight that was cut, as a batched product."""
    slices, in_features, _ = weight.shape
    return torch.baddbmm(bias, row.expand(slices, 1, in_features), weight).flatten()


@functools.cache
def row_kernel(wide: bool, threads: int) -> RowKernel:
    """How a single row is multiplied fastest.

    That takes as long as reading the weight does. Some libraries read it with one thread, and some
    are slow along one of its axes.

    Args:
        wide: Whether the result is longer than the row.
        threads: How many there are.

    Returns:
        What took the least time in this process.
    """
    out_features, in_features = sorted(SIDES, reverse=wide)
    memory = torch.ones(COPIES, in_features * out_features)
    row, bias = torch.ones(1, in_features), torch.ones(out_features)
    even = out_features // threads * threads
    ways: dict[RowKernel, Callable[[], object]] = {}
    for by_rows in (True, False):
        shape = (out_features, in_features) if by_rows else (in_features, out_features)
        weights = [each.view(shape).T if by_rows else each.view(shape) for each in memory]
        whole = functools.partial(_multiply_all, row, weights, bias)
        ways[RowKernel(by_rows, sliced=False)] = whole
        slices = [cut(each[:, :even], threads) for each in weights]
        part = functools.partial(_multiply_slices, row[0], slices, bias[:even].view(threads, 1, -1))
        ways[RowKernel(by_rows, sliced=True)] = part
    return fastest(ways)


@functools.cache
def onednn_is_faster(threads: int) -> bool:
    """Whether oneDNN multiplies several rows faster than torch's own product.

    Args:
        threads: How many there are.

    Returns:
        What took less time in this process; False where torch has no oneDNN.
    """
    if not torch.backends.mkldnn.is_available():
        return False
    in_features, out_features = SIDES
    x, weight = torch.ones(SEVERAL, in_features), torch.ones(out_features, in_features)
    bias = torch.ones(out_features)
    packed = (weight.to_mkldnn(), bias.to_mkldnn())

    def by_onednn() -> Tensor:
        return nn.functional.linear(x.to_mkldnn(), *packed).to_dense()

    return fastest({False: lambda: nn.functional.linear(x, weight, bias), True: by_onednn})


def _multiply_all(row: Tensor, weights: list[Tensor], bias: Tensor) -> None:
    for weight in weights:
        nn.functional.linear(row, weight.T, bias)


def _multiply_slices(row: Tensor, weights: list[Tensor], bias: Tensor) -> None:
    for weight in weights:
        sliced_product(row, weight, bias)
