"""What a run will need, before it begins."""

import time
from dataclasses import dataclass

import torch

from transformer_layers import GPT2, GPT2Config
from transformer_training.config import TrainingConfig


@dataclass(frozen=True)
class Estimate:
    """Bytes and seconds of a run on one process.

    Attributes:
        parameters: Number of weights.
        state: Bytes of weights, gradients and AdamW's two means, in float32.
        activations: Bytes that the backward pass of a micro-batch needs.
        flops: Floating-point operations of all steps.
        seconds: How long they take at the speed of a product of the model's size, measured here.
    """

    parameters: int
    state: int
    activations: int
    flops: float
    seconds: float

    def __str__(self) -> str:
        """The numbers in a line."""
        return (
            f"{self.parameters:,} weights; memory {_bytes(self.state)} for them, their gradients "
            f"and AdamW's means, {_bytes(self.activations)} for activations; "
            f"{self.flops:.1e} operations, about {duration(self.seconds)}"
        )


def estimate(config: TrainingConfig, vocab_size: int, data_ranks: int = 1) -> Estimate:
    """Estimates what a run needs.

    Args:
        config: The run's.
        vocab_size: Tokens of the tokenizer.
        data_ranks: How many ranks share the sequences.
    """
    sizes = config.model(vocab_size)
    with torch.device("meta"):
        parameters = sum(each.numel() for each in GPT2(sizes).parameters())
    share = config.batch_size // data_ranks
    at_once = min(config.micro_batch or share, share) * config.seq
    flops = flops_of_token(sizes, config.seq) * config.batch_size * config.seq * config.steps
    width = 2 if config.precision == "bfloat16" else 4
    return Estimate(
        parameters,
        16 * parameters,
        at_once * activation_bytes(sizes, width),
        flops,
        flops / data_ranks / _speed(sizes.n_embd, min(at_once, 4096), config.precision),
    )


def flops_of_token(sizes: GPT2Config, seq: int) -> float:
    """Operations of a step for one token, forward and backward.

    Each weight of a matrix is multiplied and added once forward and twice backward: six operations.
    The attention has two products more, of each position with those up to it.

    Args:
        sizes: The model's.
        seq: Positions of a sequence.
    """
    matrices = 12 * sizes.n_layer * sizes.n_embd**2 + sizes.vocab_size * sizes.n_embd
    return 6.0 * matrices + 6.0 * sizes.n_layer * sizes.n_embd * seq


def activation_bytes(sizes: GPT2Config, width: int = 4) -> int:
    """Bytes that a token leaves for the backward pass, without dropout.

    A block leaves the inputs of its two norms and what they make, queries, keys and values, the
    heads' result, and the hidden features before and after GELU; the head the logits, and their
    log-softmax in float32.

    Args:
        sizes: The model's.
        width: Bytes of a number.
    """
    block = (2 + 2 + 3 + 1 + 4 + 4) * sizes.n_embd
    return width * (block * sizes.n_layer + 2 * sizes.n_embd) + 4 * sizes.vocab_size


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
