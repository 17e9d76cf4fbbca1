"""Matrices that ranks share: each holds some of the heads and of the hidden features.

It is the cut of https://arxiv.org/abs/1909.08053, section 3: the first matrix of a pair by columns,
the second by rows, so that the ranks meet once a pair, in a sum. Embeddings and norms are whole on
each rank. PyTorch has the styles for `nn.Linear`; these also cut :class:`Conv1D`, whose weight is
(in, out), and several matrices in one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import (
    DTensor,
    Placement,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
)
from torch.distributed.tensor.parallel import ParallelStyle

from transformer_layers import Conv1D


@dataclass  # torch sets an attribute of a style
class Columns(ParallelStyle):
    """A layer of which each rank computes some of the outputs.

    A cut of several matrices in one into as many parts as ranks would give one rank all queries. So
    the columns are put into another order first: those of the first rank's queries, keys and
    values, then those of the second's.

    Attributes:
        packed: How many matrices the layer's is, side by side along the outputs.
    """

    packed: int = 1

    def axis(self, layer: nn.Module, name: str) -> int:
        """Along which axis a parameter of the layer is cut, `weight` or `bias`."""
        return 0 if name == "bias" else _axes(layer)[1]

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                axis, ranks = self.axis(module, name), device_mesh.size()
                parameter.copy_(by_rank(parameter, ranks, self.packed, axis))
        return _distributed(self, module, device_mesh, Replicate(), Shard(-1))


class Rows(ParallelStyle):
    """A layer of which each rank has some of the inputs; the ranks sum what they make.

    Attributes:
        packed: One: the inputs of a layer are of one matrix.
    """

    packed = 1

    def axis(self, layer: nn.Module, name: str) -> int | None:
        """Along which axis a parameter of the layer is cut; the bias is whole on each rank."""
        return None if name == "bias" else _axes(layer)[0]

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        return _distributed(self, module, device_mesh, Shard(-1), Replicate())


Cut = Columns | Rows


def cut_of(cuts: Mapping[str, Cut], model: nn.Module, name: str) -> tuple[Cut, int] | None:
    """How ranks cut a parameter.

    Args:
        cuts: The cuts of layers by the end of their names.
        model: The model.
        name: The parameter's name.

    Returns:
        The cut of its layer and the axis; None if it is whole on each rank.
    """
    layer, _, parameter = name.rpartition(".")
    for end, cut in cuts.items():
        if layer.endswith(f".{end}"):
            axis = cut.axis(model.get_submodule(layer), parameter)
            return None if axis is None else (cut, axis)
    return None


def by_rank(packed: Tensor, ranks: int, matrices: int = 3, axis: int = -1) -> Tensor:
    """The columns of packed matrices, those of the first rank first.

    Args:
        packed: Matrices side by side along an axis, such as queries, keys and values.
        ranks: How many ranks share them.
        matrices: How many there are.
        axis: Which axis.

    Examples:
        >>> by_rank(torch.tensor([1, 2, 10, 20, 100, 200]), ranks=2)
        tensor([  1,  10, 100,   2,  20, 200])
    """
    return _regrouped(packed, matrices, ranks, axis)


def by_matrix(shared: Tensor, ranks: int, matrices: int = 3, axis: int = -1) -> Tensor:
    """Undoes :func:`by_rank`."""
    return _regrouped(shared, ranks, matrices, axis)


def _regrouped(tensor: Tensor, outer: int, inner: int, axis: int) -> Tensor:
    axis %= tensor.ndim
    parts = tensor.unflatten(axis, (outer, inner, -1))
    return parts.transpose(axis, axis + 1).flatten(axis, axis + 2)


def _axes(layer: nn.Module) -> tuple[int, int]:
    """The axes of a weight's inputs and outputs."""
    return (0, 1) if isinstance(layer, Conv1D) else (1, 0)


def _distributed(
    cut: Cut, module: nn.Module, mesh: DeviceMesh, taken: Placement, given: Placement
) -> nn.Module:
    def share(name: str, part: nn.Module, mesh: DeviceMesh) -> None:
        for key, parameter in list(part.named_parameters(recurse=False)):
            axis = cut.axis(part, key)
            placement = Replicate() if axis is None else Shard(axis)
            # Each rank has the same values: none needs to send them.
            tensor = distribute_tensor(parameter.detach(), mesh, [placement], src_data_rank=None)
            part.register_parameter(key, nn.Parameter(tensor))

    def take(part: nn.Module, inputs: tuple[Any, ...], mesh: DeviceMesh) -> DTensor:
        return DTensor.from_local(inputs[0], mesh, [_of(taken, inputs[0])], run_check=False)

    def give(part: nn.Module, output: DTensor, mesh: DeviceMesh) -> Tensor:
        return output.redistribute(placements=[_of(given, output)]).to_local()

    return distribute_module(module, mesh, share, take, give)  # type: ignore[arg-type]


def _of(placement: Placement, tensor: Tensor) -> Placement:
    return Shard(tensor.ndim - 1) if placement.is_shard() else placement
