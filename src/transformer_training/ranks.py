"""The processes of a run, and how they share its work."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.fsdp import fully_shard
from torch.distributed.rendezvous import rendezvous
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.distributed.tensor.parallel import parallelize_module
from torch.nn.parallel import DistributedDataParallel

from transformer_training.config import TrainingConfig, TrainingError
from transformer_training.plans.cuts import Cut, by_matrix, by_rank
from transformer_training.plans.plan import Plan, Trainable
from transformer_training.recompute import recompute_activations
from transformer_training.step import whole


class LossOfModel(nn.Module):
    """The loss of a model as a module, since what wraps a model wraps its `forward`.

    Args:
        model: The model.
        loss: Its plan's.
        smoothing: Of labels, in training; an evaluation asks for the loss itself.
    """

    def __init__(
        self,
        model: Trainable,
        loss: Callable[[Any, Any, float], Tensor],
        smoothing: float = 0.0,
    ) -> None:
        super().__init__()
        self.model = model
        self._loss, self._smoothing = loss, smoothing

    def forward(self, batch: Any) -> Tensor:
        """The mean loss of a batch."""
        return self._loss(self.model, batch, self._smoothing if self.training else 0.0)


@dataclass(frozen=True)
class Ranks:
    """The processes of a run, seen by one of them.

    Attributes:
        rank: Which one this is.
        size: How many there are.
        device: Where this one computes.
        parallel: How they share the work, one of `PARALLEL`.
        data: Those that learn from different sequences; None for a process alone.
        tensor: Those that share matrices, if any do.
    """

    rank: int
    size: int
    device: torch.device
    parallel: str = "none"
    data: DeviceMesh | None = None
    tensor: DeviceMesh | None = None

    @property
    def data_rank(self) -> int:
        """Which share of a step's sequences is this process's."""
        return self.data.get_local_rank() if self.data else 0

    @property
    def data_ranks(self) -> int:
        """Into how many shares a step's sequences are cut."""
        return self.data.size() if self.data else 1

    def wrap(
        self,
        plan: Plan,
        model: Trainable,
        compile: bool,
        smoothing: float = 0.0,
        *,
        recompute: bool = False,
    ) -> nn.Module:
        """Makes the loss of a model, which ranks compute together.

        Args:
            plan: The model's.
            model: The model, with the same weights on each rank; shared in place.
            compile: Whether torch is to make one program of it.
            smoothing: Of labels, in training.
            recompute: Whether the backward pass is to run each block once more.

        Returns:
            A module that gives the mean loss of this rank's sequences, in training or not.
        """
        if self.tensor:
            for block in plan.blocks(model):
                parallelize_module(block, self.tensor, dict(plan.cuts))
                plan.share_heads(block, self.tensor.size())
        if recompute:
            recompute_activations(plan.blocks(model))
        loss = LossOfModel(model, plan.loss, smoothing)
        if self.data and self.parallel.startswith("fsdp"):
            for block in plan.blocks(model):
                fully_shard(block, mesh=self.data)
            # After an evaluation too, which no backward pass follows, each rank has its part only.
            fully_shard(loss, mesh=self.data, reshard_after_forward=True)
        if compile:
            loss.compile()
        if self.data and self.parallel == "ddp":
            return DistributedDataParallel(loss, process_group=self.data.get_group())
        return loss

    def unsent(self, loss: nn.Module) -> AbstractContextManager[object]:
        """A context in which gradients are added up and, under `ddp`, not sent.

        `fsdp` sends them there too: a rank that waited would have to hold a whole gradient, and
        sharding is chosen to hold less. It pays with sending, a gradient for each micro-batch.

        Args:
            loss: What :meth:`wrap` gave.
        """
        return loss.no_sync() if isinstance(loss, DistributedDataParallel) else nullcontext()

    def share(self, rows: Tensor) -> Tensor:
        """This rank's sequences of all of a step."""
        return rows.chunk(self.data_ranks)[self.data_rank]

    def mean(self, value: Tensor) -> Tensor:
        """The mean over the ranks that learn from different sequences."""
        if self.data:
            dist.all_reduce(value, group=self.data.get_group())
        return value / self.data_ranks

    def any(self, condition: bool) -> bool:
        """Whether it is so on some rank."""
        if self.size == 1:
            return condition
        found = torch.tensor(int(condition), device=self.device)
        dist.all_reduce(found, dist.ReduceOp.MAX)
        return bool(found)

    def wait(self) -> None:
        """Waits for all ranks."""
        if self.size > 1:
            dist.barrier()

    @torch.no_grad()
    def collect(self, tensor: Tensor, cut: tuple[Cut, int] | None) -> Tensor:
        """A tensor of a run's state as one process has it: whole, its columns in their order.

        Args:
            tensor: This rank's part.
            cut: How ranks cut it, and along which axis, as `cut_of` tells.
        """
        full = whole(tensor.detach())
        if self.tensor and cut:
            full = by_matrix(full, self.tensor.size(), cut[0].packed, cut[1])
        return full

    @torch.no_grad()
    def spread(self, full: Tensor, onto: Tensor, cut: tuple[Cut, int] | None) -> None:
        """Undoes :meth:`collect`: this rank's part of a tensor, into the one that it has."""
        if self.tensor and cut:
            full = by_rank(full, self.tensor.size(), cut[0].packed, cut[1])
        full = full.to(self.device)
        if isinstance(onto, DTensor):
            full = distribute_tensor(full, onto.device_mesh, onto.placements, src_data_rank=None)
        onto.copy_(full)


@contextmanager
def ranks_of(config: TrainingConfig) -> Iterator[Ranks]:
    """Joins the processes that `torchrun` started; a process alone if it did not.

    Args:
        config: The run's.

    Raises:
        TrainingError: If the ranks cannot share the work as they are to.
    """
    size, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
    device = device_of(config.device)
    if size == 1:
        yield Ranks(rank, size, device)
        return
    data, tensor = _axes(config, size)
    _join("nccl" if device.type == "cuda" else "gloo")
    mesh = init_device_mesh(device.type, (data, tensor), mesh_dim_names=("data", "tensor"))
    yield Ranks(
        rank,
        size,
        device,
        config.parallel,
        mesh["data"] if data > 1 else None,
        mesh["tensor"] if tensor > 1 else None,
    )
    dist.destroy_process_group()  # not after an error: it would wait for ranks that are gone


def _join(backend: str) -> None:
    """Makes the ranks one group.

    Ranks that `torchrun` starts again on one machine find the store of those before, with addresses
    at which nobody listens any more: each start has names of its own there. On several machines
    starts are not counted alike, and ranks are left to torch.
    """
    if os.environ.get("GROUP_WORLD_SIZE") != "1":
        dist.init_process_group(backend)
        return
    store, rank, size = next(rendezvous("env://"))
    store = PrefixStore(f"start {os.environ['TORCHELASTIC_RESTART_COUNT']}", store)
    dist.init_process_group(backend, store=store, rank=rank, world_size=size)


def _axes(config: TrainingConfig, size: int) -> tuple[int, int]:
    """How many ranks learn from different sequences, and how many share each matrix."""
    if config.parallel == "none":
        raise TrainingError(
            f"torchrun started {size} ranks; say how they share the work, with --parallel ddp, "
            "fsdp, tp or fsdp+tp"
        )
    tensor = {"tp": size, "fsdp+tp": config.tensor_ranks}.get(config.parallel, 1)
    if size % tensor:
        raise TrainingError(f"{size} ranks cannot be cut into --tensor-ranks {tensor}")
    sizes = config.model(vocab_size=257)
    queries, *keys = config.plan.shape(sizes).heads
    if queries % tensor:
        raise TrainingError(
            f"{tensor} ranks cannot share --n-head {queries} evenly; give a multiple of {tensor}"
        )
    if any(heads % tensor for heads in keys):
        raise TrainingError(f"{tensor} ranks cannot share {keys[0]} heads of keys evenly")
    if tensor > 1:
        with torch.device("meta"):
            model = config.plan.model(sizes)
        try:
            for block in config.plan.blocks(model):
                config.plan.share_heads(block, tensor)
        except ValueError as error:
            raise TrainingError(f"--parallel {config.parallel}: {error}") from error
    data = size // tensor
    if config.batch_size % data:
        raise TrainingError(
            f"--batch-size {config.batch_size} must be a multiple of {data}, the ranks that learn "
            "from different sequences"
        )
    return data, tensor


def device_of(name: str) -> torch.device:
    """Where this process computes.

    Args:
        name: What `--device` says.

    Raises:
        TrainingError: If there is no such device.
    """
    if name == "cuda" and not torch.cuda.is_available():
        raise TrainingError("--device cuda: torch finds no GPU here")
    if name == "cpu" or not torch.cuda.is_available():
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)) % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device
