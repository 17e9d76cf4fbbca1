"""What a run will need, before it begins."""

import time
from dataclasses import dataclass

import torch

from transformer_training.config import TrainingConfig
from transformer_training.costs import costs, flops_of_token


@dataclass(frozen=True)
class Estimate:
    """Bytes and seconds of a run, of each of its processes.

    Attributes:
        parameters: Number of weights.
        state: Bytes of weights, gradients and AdamW's two means, in float32.
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
            f"and AdamW's means, {_bytes(self.activations)} for activations; "
            f"{self.flops:.1e} operations, about {duration(self.seconds)}"
        )


def estimate(config: TrainingConfig, vocab_size: int, ranks: int = 1) -> Estimate:
    """Estimates what a run needs.

    Args:
        config: The run's.
        vocab_size: Tokens of the tokenizer.
        ranks: How many processes share the work.
    """
    sizes = config.model(vocab_size)
    parallel = config.parallel if ranks > 1 else "none"
    tensor = {"tp": ranks, "fsdp+tp": config.tensor_ranks}.get(parallel, 1)
    data = ranks // tensor
    share = config.batch_size // data
    at_once = min(config.micro_batch or share, share)
    needs = costs(sizes, at_once * data, config.seq, config.precision, parallel, ranks, tensor)
    tokens = config.batch_size * config.seq * config.steps
    return Estimate(
        costs(sizes, 1, config.seq).parameters // 4,
        needs.state,
        needs.activations,
        tokens * flops_of_token(sizes, config.seq),
        tokens
        // data
        * flops_of_token(sizes, config.seq, tensor)
        / _speed(sizes.n_embd, min(at_once * config.seq, 4096), config.precision),
    )


def _speed(width: int, tokens: int, precision: str) -> float:
    """Operations in a second of the model's largest product; a few hundredths of one to measure."""
    dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
    x, weight = torch.ones(tokens, width, dtype=dtype), torch.ones(width, 4 * width, dtype=dtype)
    x @ weight
    start, rounds = time.perf_counter(), 0
    while (passed := time.perf_counter() - start) < 0.05:
        x @ weight
        rounds += 1
    return rounds * 8.0 * tokens * width**2 / passed


def duration(seconds: float) -> str:
    """Seconds in words of the right size."""
    for size, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} seconds"


def _bytes(number: int) -> str:
    for size, name in ((1 << 30, "GiB"), (1 << 20, "MiB")):
        if number >= size:
            return f"{number / size:.1f} {name}"
    return f"{number / 1024:.1f} KiB"
