"""Draws that can be repeated, and that leave the caller's own draws as they would have been."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seeds the CPU's global generator, and restores its state at the end.

    `torch.manual_seed` would also queue a call, with its stack trace, for GPUs not yet in use.
    """
    state = torch.get_rng_state()
    try:
        torch.default_generator.manual_seed(seed)
        yield
    finally:
        torch.set_rng_state(state)


@contextmanager
def repeatable(seed: int) -> Iterator[None]:
    """The same, with float32 as torch's default dtype, whatever the caller has set."""
    dtype = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        with seeded(seed):
            yield
    finally:
        torch.set_default_dtype(dtype)
