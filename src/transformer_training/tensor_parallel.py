"""Matrices that ranks share: each holds some of the heads and of the hidden features.

It is the cut of https://arxiv.org/abs/1909.08053, section 3: the first matrix of a pair by columns,
the second by rows, so that the ranks meet once a pair, in a sum. Embeddings and norms are whole on
each rank. PyTorch has the styles for `nn.Linear`; those of :class:`Conv1D`, whose weight is (in,
out), and of queries, keys and values in one matrix, are here.
"""

from collections.abc import Iterable, Mapping
from typing import Any, cast

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
from torch.distributed.tensor.parallel import ParallelStyle, parallelize_module

from transformer_layers import GPT2, GPT2Block
from transformer_training.config import TrainingError

_PACKED = 3  # queries, keys and values


class Columns(ParallelStyle):
    """A :class:`Conv1D` of which each rank computes some of the outputs."""

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        return _distributed(module, device_mesh, Shard(1), Shard(0), Replicate(), Shard(-1))


class PackedColumns(Columns):
    """The same for several matrices in one: each rank gets its columns of each of them.

    A cut of the whole into as many parts as ranks would give one rank all queries. So the columns
    are put into another order first: those of the first rank's queries, keys and values, then those
    of the second's.
    """

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.copy_(by_rank(parameter, device_mesh.size()))
        return super()._apply(module, device_mesh)


class Rows(ParallelStyle):
    """A :class:`Conv1D` of which each rank has some of the inputs; the ranks sum what they make."""

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        return _distributed(module, device_mesh, Shard(0), Replicate(), Shard(-1), Replicate())


STYLES: Mapping[str, ParallelStyle] = {
    "attn.c_attn": PackedColumns(),
    "attn.c_proj": Rows(),
    "mlp.c_fc": Columns(),
    "mlp.c_proj": Rows(),
}


def share_matrices(model: GPT2, mesh: DeviceMesh) -> None:
    """Leaves each rank of a mesh its part of the matrices of each block.

    Args:
        model: The model, with the same weights on each rank.
        mesh: The ranks, on one axis.

    Raises:
        TrainingError: If the heads cannot be shared evenly.
    """
    heads, ranks = model.config.n_head, mesh.size()
    require_shared_heads(heads, ranks)
    for block in cast(Iterable[GPT2Block], model.h):
        parallelize_module(block, mesh, dict(STYLES))
        block.attn.num_heads = heads // ranks


def require_shared_heads(heads: int, ranks: int) -> None:
    """Refuses heads that ranks cannot share evenly.

    Args:
        heads: Of a block.
        ranks: How many share its matrices.

    Raises:
        TrainingError: If one would have more than another.
    """
    if heads % ranks:
        raise TrainingError(
            f"{ranks} ranks cannot share --n-head {heads} evenly; give a multiple of {ranks}"
        )


def is_packed(name: str) -> bool:
    """Whether a weight of :class:`GPT2` is of queries, keys and values."""
    return ".c_attn." in name


def by_rank(packed: Tensor, ranks: int) -> Tensor:
    """The columns of packed matrices, those of the first rank first.

    Args:
        packed: Queries, keys and values side by side along the last axis.
        ranks: How many ranks share them.

    Examples:
        >>> by_rank(torch.tensor([1, 2, 10, 20, 100, 200]), ranks=2)
        tensor([  1,  10, 100,   2,  20, 200])
    """
    return packed.unflatten(-1, (_PACKED, ranks, -1)).transpose(-3, -2).flatten(-3)


def by_matrix(shared: Tensor, ranks: int) -> Tensor:
    """Undoes :func:`by_rank`."""
    return shared.unflatten(-1, (ranks, _PACKED, -1)).transpose(-3, -2).flatten(-3)


def _distributed(
    module: nn.Module,
    mesh: DeviceMesh,
    weight: Placement,
    bias: Placement,
    taken: Placement,
    given: Placement,
) -> nn.Module:
    def share(name: str, part: nn.Module, mesh: DeviceMesh) -> None:
        for key, placement in (("weight", weight), ("bias", bias)):
            # Each rank has the same values: none needs to send them.
            tensor = distribute_tensor(
                part.get_parameter(key).detach(), mesh, [placement], src_data_rank=None
            )
            part.register_parameter(key, nn.Parameter(tensor))

    def take(part: nn.Module, inputs: tuple[Any, ...], mesh: DeviceMesh) -> DTensor:
        return DTensor.from_local(inputs[0], mesh, [_of(taken, inputs[0])], run_check=False)

    def give(part: nn.Module, output: DTensor, mesh: DeviceMesh) -> Tensor:
        return output.redistribute(placements=[_of(given, output)]).to_local()

    return distribute_module(module, mesh, share, take, give)  # type: ignore[arg-type]


def _of(placement: Placement, tensor: Tensor) -> Placement:
    return Shard(tensor.ndim - 1) if placement.is_shard() else placement
