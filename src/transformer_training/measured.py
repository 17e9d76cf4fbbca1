"""What a step really costs a rank, beside what :mod:`transformer_training.costs` derives."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import torch
import torch._dynamo  # the first optimizer imports it: here once, not in each rank that is forked
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import TCPStore  # type: ignore[attr-defined]  # no stub
from torch.distributed.tensor import DTensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map
from torch.utils.flop_counter import flop_registry

from transformer_training.config import TrainingConfig
from transformer_training.pairs import random_pairs
from transformer_training.ranks import ranks_of
from transformer_training.step import make_optimizer, train_step
from transformer_training.tokens import random_sequences

_ACCOUNT = Path("/proc/self/io")
_MOMENTS = ("exp_avg", "exp_avg_sq")
_WARM_UP = 2  # after its first step DDP sorts its gradients anew, and sends the order


Found = TypeVar("Found")


@dataclass(frozen=True)
class Measured:
    """Bytes and operations of a step, counted on one rank; the names are those of `Costs`.

    Attributes:
        parameters: Bytes of its part of the weights.
        gradients: Bytes of its part of the gradients.
        optimizer: Bytes of its part of AdamW's two moments.
        activations: Bytes of all storages, the weights' apart, that the backward pass waits for.
        sent: Bytes that the kernel took from this process; gloo's, if nothing is printed meanwhile.
        flops: Operations of the products of matrices, as torch counts them.
        loss: Mean loss of the step's sequences, over all ranks, after some steps before it.
    """

    parameters: int
    gradients: int
    optimizer: int
    activations: int
    sent: int
    flops: int
    loss: float


def measure(config: TrainingConfig, vocab_size: int) -> Measured:
    """Makes some steps on random tokens, under `torchrun` with the ranks that it started.

    Args:
        config: Sizes, batch, precision, and how the ranks share the work.
        vocab_size: Tokens of the vocabulary.

    Returns:
        What one of the steps cost this rank.

    Raises:
        OSError: If the kernel, one other than Linux, does not account for what is sent.
    """
    with ranks_of(config) as ranks:
        torch.manual_seed(config.seed)
        model = config.plan.model(config.model(vocab_size)).to(ranks.device)
        loss = ranks.wrap(config.plan, model, compile=False)
        optimizer = make_optimizer(model, config.lr, config.weight_decay)
        made = random_pairs if config.plan.pairs else random_sequences
        tokens = made(vocab_size, config.batch_size, config.seq)
        share = ranks.share(torch.arange(config.batch_size))
        micro_batches = [
            tree_map(lambda each, part=part: _some(each, part).to(ranks.device), tokens)
            for part in share.split(config.micro_batch or len(share))
        ]

        def loss_of(batch: Any) -> Tensor:
            lower = config.precision == "bfloat16"
            with torch.autocast(ranks.device.type, torch.bfloat16, enabled=lower):
                return loss(batch)

        def step() -> None:
            train_step(
                loss_of, optimizer, micro_batches, config.lr, unsent=lambda: ranks.unsent(loss)
            )

        for _ in range(_WARM_UP):
            step()
        parameters = [each for group in optimizer.param_groups for each in group["params"]]
        moments = [optimizer.state[each][key] for each in parameters for key in _MOMENTS]
        gradients = _bytes(each.grad for each in parameters if each.grad is not None)
        with _left_by(model) as storages:
            value = loss_of(micro_batches[0])
        value.backward()
        sent = _sent_by(step)
        # Torch counts the products of the definition, and not those of the kernel on a CPU.
        with _Products() as products, sdpa_kernel(SDPBackend.MATH):
            step()
        return Measured(
            parameters=_bytes(parameters),
            gradients=gradients,
            optimizer=_bytes(moments),
            activations=sum(storages.values()),
            sent=sent,
            flops=products.flops,
            loss=ranks.mean(value.detach().clone()).item(),
        )


def measure_collectives(numbers: int = 100_000) -> dict[str, float]:
    """Makes some collectives by themselves, under `torchrun` with the ranks that it started.

    Args:
        numbers: Of float32, that the ranks sum, gather or scatter; a multiple of the ranks.

    Returns:
        The bytes that this rank sent for each, as a share of those of the numbers.

    Raises:
        OSError: If the kernel, one other than Linux, does not account for what is sent.
    """
    with ranks_of(TrainingConfig(("-",), "-", parallel="ddp", batch_size=1 << 10)) as ranks:
        whole, part = torch.ones(numbers), torch.ones(numbers // ranks.size)
        made: Mapping[str, Callable[[], object]] = {
            "all_reduce": lambda: dist.all_reduce(whole),
            "all_gather": lambda: dist.all_gather_into_tensor(whole, part),
            "reduce_scatter": lambda: dist.reduce_scatter_tensor(part, whole),
        }
        return {name: _sent_by(make) / (4 * numbers) for name, make in made.items()}


def measure_forked(ranks: int, config: TrainingConfig, vocab_size: int) -> list[Measured]:
    """What :func:`measure` finds on each of some ranks, which are forks of this process.

    Args:
        ranks: How many.
        config: That of :func:`measure`.
        vocab_size: That of :func:`measure`.
    """
    return _forked(ranks, partial(measure, config, vocab_size))


class LocalRanks:
    """Ranks that are forked on this machine, one set after another, to be measured.

    `torchrun` would import torch in each rank; here one process does so, and ranks are its forks.

    Examples:
        >>> config = TrainingConfig(("-",), "-", parallel="ddp", seq=8, n_layer=1, n_embd=16)
        >>> with LocalRanks() as ranks:
        ...     first, second = ranks.measure(2, config, vocab_size=50)
        >>> first.sent > first.parameters, second.gradients == first.gradients
        (True, True)
    """

    def __enter__(self) -> "LocalRanks":
        """Starts the process."""
        self._said = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        return self

    def __exit__(self, *error: object) -> None:
        """Ends it."""
        self._process.communicate()
        self._said.close()

    def measure(self, ranks: int, config: TrainingConfig, vocab_size: int) -> list[Measured]:
        """What :func:`measure` finds on each rank.

        Args:
            ranks: How many.
            config: That of :func:`measure`.
            vocab_size: That of :func:`measure`.

        Raises:
            RuntimeError: If the ranks could not.
        """
        asked = {"ranks": ranks, "config": asdict(config), "vocab_size": vocab_size}
        return [Measured(**each) for each in self._ask(asked)]

    def collectives(self, ranks: int) -> list[dict[str, float]]:
        """What :func:`measure_collectives` finds on each rank.

        Args:
            ranks: How many.

        Raises:
            RuntimeError: If the ranks could not.
        """
        return self._ask({"ranks": ranks})

    def _ask(self, asked: Mapping[str, object]) -> Any:
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("there is no process to ask")
        stdin.write(json.dumps(asked) + "\n")
        stdin.flush()
        answer = stdout.readline()
        if not answer:
            self._said.seek(0)
            raise RuntimeError(f"the ranks ended: {self._said.read().decode()[-2000:]}")
        return json.loads(answer)


def _serve() -> None:
    """Answers a line of requests with one of what each rank found."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever ranks print is no answer
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(_found(asked)), file=answers, flush=True)


def _found(asked: dict[str, Any]) -> list[dict[str, Any]]:
    """What each rank found."""
    if "config" not in asked:
        return _forked(asked["ranks"], measure_collectives)
    config = TrainingConfig(**asked["config"])
    return list(map(asdict, measure_forked(asked["ranks"], config, asked["vocab_size"])))


def _forked(ranks: int, work: Callable[[], Found]) -> list[Found]:
    """What each rank found. They are forked before the store that they meet in has its thread."""
    with get_context("fork").Pool(ranks) as pool:
        # Held from now on: a port that the first rank opens could be taken until it does.
        store = TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
        return pool.map(partial(_rank, work=work, ranks=ranks, port=store.port), range(ranks), 1)


def _rank(rank: int, work: Callable[[], Found], ranks: int, port: int) -> Found:
    torch.set_num_threads(1)
    names: dict[str, object] = {"WORLD_SIZE": ranks, "RANK": rank, "LOCAL_RANK": rank}
    names |= {"MASTER_ADDR": "localhost", "MASTER_PORT": port}
    names |= {"TORCHELASTIC_USE_AGENT_STORE": True}
    os.environ.update({name: str(value) for name, value in names.items()})
    return work()


def _sent_by(action: Callable[[], object]) -> int:
    """Bytes that the kernel takes from this process for an action that all ranks do together."""
    if dist.is_initialized():
        dist.barrier()
    before = _written()
    action()
    time.sleep(0.05)  # threads of gloo may still be writing
    return _written() - before


def _some(each: Tensor, part: Tensor) -> Tensor:
    """Some rows of what has rows; a number as it is."""
    return each[part] if each.ndim else each


def _bytes(tensors: Iterable[Tensor]) -> int:
    return sum(each.numel() * each.element_size() for each in map(_own, tensors))


class _Products(TorchDispatchMode):
    """Counts operations as `FlopCounterMode` does, but of a shared tensor this rank's only."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch gives it no types
        self.flops = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if DTensor in types:
            return NotImplemented  # it comes again, with the parts
        result = func(*args, **(kwargs or {}))
        if func.overloadpacket in flop_registry:
            count = flop_registry[func.overloadpacket]
            self.flops += count(*args, **(kwargs or {}), out_val=result)
        return result


@contextmanager
def _left_by(model: nn.Module) -> Iterator[dict[int, int]]:
    """Notes the storages that a forward pass leaves, by their addresses, with their bytes."""
    found: dict[int, int] = {}
    kept = []  # so that no address is given to a second storage

    def note(tensor: Tensor) -> Tensor:
        storage = _own(tensor.detach()).untyped_storage()
        weights = {_own(each.detach()).untyped_storage().data_ptr() for each in model.parameters()}
        if storage.data_ptr() not in weights:
            found[storage.data_ptr()] = storage.nbytes()
            kept.append(storage)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        yield found


def _own(tensor: Tensor) -> Tensor:
    """This rank's part."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def _written() -> int:
    entries = dict(line.split(": ") for line in _ACCOUNT.read_text().splitlines())
    return int(entries["wchar"])


if __name__ == "__main__":
    _serve()
