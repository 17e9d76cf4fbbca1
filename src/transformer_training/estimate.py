"""What a run will need, before it begins."""

import math
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from transformer_training.adapters import adapter_weights
from transformer_training.config import TrainingConfig, TrainingError
from transformer_training.costs import Costs, costs
from transformer_training.ranks import device_of

# What a container may hold, in the two versions of Linux' control groups.
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@dataclass(frozen=True)
class Estimate:
    """Bytes and seconds of a run, of each of its processes.

    Attributes:
        parameters: Number of weights.
        state: Bytes of weights, gradients and AdamW's two moments, in float32.
        activations: Bytes that the backward pass of a micro-batch needs.
        flops: Floating-point operations of all steps, over all processes.
        seconds: How long a process's share of them takes, at the speed of a product of the model's
            size, measured here.
    """

    parameters: int
    state: int
    activations: int
    flops: int
    seconds: float

    def __str__(self) -> str:
        """The numbers in a line."""
        return (
            f"{self.parameters:,} weights; memory {_bytes(self.state)} for them, their gradients "
            f"and AdamW's moments, {_bytes(self.activations)} for activations; "
            f"{self.flops:.1e} operations, about {duration(self.seconds)}"
        )


def estimate(
    config: TrainingConfig,
    vocab_size: int,
    ranks: int = 1,
    *,
    device: torch.device | None = None,
) -> Estimate:
    """Estimates what a run needs.

    Args:
        config: The run's.
        vocab_size: Tokens of the tokenizer.
        ranks: How many processes share the work.
        device: Where this one computes; where `--device` says if not given.
    """
    plan, sizes = config.plan, config.model(vocab_size)
    data, _ = _shares(config, ranks)
    needs = _needs(config, vocab_size, ranks)
    alone = costs(sizes, config.batch_size, config.seq, recompute=config.recompute)
    at_once = config.at_once(config.batch_size // data)
    return Estimate(
        alone.parameters // 4,
        needs.state,
        needs.activations,
        alone.flops * config.steps,
        needs.flops
        * config.steps
        / _speed(
            plan.shape(sizes).features,
            min(at_once * config.seq, 4096),
            config.precision,
            device or device_of(config.device),
        ),
    )


def require_memory(
    config: TrainingConfig, vocab_size: int, ranks: int, device: torch.device
) -> None:
    """Refuses a run that the device's memory cannot hold, before any of it is allocated.

    Args:
        config: The run's.
        vocab_size: Tokens of the tokenizer, or as few as one may have.
        ranks: How many processes share the work.
        device: Where this one computes.

    Raises:
        TrainingError: If the memory is too small.
    """
    needs = _needs(config, vocab_size, ranks)
    # Before weights are shared, each process has all of them.
    state = max(needs.state, costs(config.model(vocab_size), 1, config.seq).parameters)
    beside = needs.activations + 8 * config.batch_size * (config.seq + 1)
    there = _memory(device) / _processes_on(device)
    if state > there:
        raise TrainingError(
            f"--n-embd {config.n_embd}, --n-layer {config.n_layer} and --seq {config.seq} make a "
            f"model that needs {_bytes(state)} in each process, with gradients and AdamW's "
            f"moments, and there are {_bytes(there)}; make it smaller"
        )
    if state + beside > there:
        raise TrainingError(
            f"--batch-size {config.batch_size} and --seq {config.seq} need {_bytes(beside)} in "
            f"each process beside the {_bytes(state)} of the model, and there are "
            f"{_bytes(there)}; make them smaller, or give a smaller --micro-batch"
        )


def _needs(config: TrainingConfig, vocab_size: int, ranks: int) -> Costs:
    """What a step costs each process."""
    parallel = config.parallel if ranks > 1 else "none"
    data, _ = _shares(config, ranks)
    share = config.batch_size // data
    needs = costs(
        config.model(vocab_size),
        config.batch_size,
        config.seq,
        config.precision,
        parallel,
        ranks,
        config.tensor_ranks,
        micro_batches=share // config.at_once(share),
        recompute=config.recompute,
    )
    if not config.lora_rank:
        return needs
    adapters = adapter_weights(config.plan, config.model(vocab_size), config.lora_rank)
    return replace(
        needs,
        parameters=needs.parameters + 4 * adapters,
        gradients=4 * adapters,
        optimizer=8 * adapters,
    )


def _shares(config: TrainingConfig, ranks: int) -> tuple[int, int]:
    """How many processes learn from different sequences, and how many share each matrix."""
    tensor = {"tp": ranks, "fsdp+tp": config.tensor_ranks}.get(config.parallel, 1)
    tensor = tensor if ranks > 1 else 1
    return ranks // tensor, tensor


def _memory(device: torch.device) -> float:
    """Bytes of memory that a device has, or the machine, or what a container may have of it."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    if not hasattr(os, "sysconf"):  # Windows
        return math.inf
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in map(Path, _LIMITS):
        if path.is_file() and (limit := path.read_text().strip()).isdigit():
            limits.append(int(limit))
    return min(limits)


def _processes_on(device: torch.device) -> int:
    """How many processes `torchrun` started on a device of this machine, or on it as a whole."""
    here = int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    return -(-here // torch.cuda.device_count()) if device.type == "cuda" else here


def _speed(width: int, tokens: int, precision: str, device: torch.device) -> float:
    """Operations in a second of the model's largest product; a few hundredths of one to measure."""
    dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
    x = torch.ones(tokens, width, dtype=dtype, device=device)
    weight = torch.ones(width, 4 * width, dtype=dtype, device=device)

    def multiply() -> None:
        x @ weight
        if device.type != "cpu":
            torch.accelerator.synchronize(device)  # a GPU begins, and Python goes on at once

    multiply()
    start, rounds = time.perf_counter(), 0
    while (passed := time.perf_counter() - start) < 0.05:
        multiply()
        rounds += 1
    return rounds * 8.0 * tokens * width**2 / passed


def duration(seconds: float) -> str:
    """Seconds in words of the right size."""
    for size, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} seconds"


def _bytes(number: float) -> str:
    for power, name in ((5, "PiB"), (4, "TiB"), (3, "GiB"), (2, "MiB")):
        if number >= 1024**power:
            return f"{number / 1024**power:,.1f} {name}"
    return f"{number / 1024:.1f} KiB"
