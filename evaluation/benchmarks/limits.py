"""What the machine can do: products of matrices and reading memory."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import nn

from evaluation.benchmarks.timing import shortest

CALLS = 7


def matrix_rates(size: int, threads: int) -> list[dict[str, str | int | float]]:
    """The rate of products of two square matrices, a multiplication and a sum being two operations.

    Args:
        size: Rows and columns of each matrix.
        threads: Each count from 1 to this is measured.

    Returns:
        For each kernel and number of threads its rate, in 1e9 operations a second.
    """
    a, b = torch.randn(2, size, size)
    low_a, low_b = a.bfloat16(), b.bfloat16()
    kernels: dict[str, Callable[[], object]] = {
        "float32": lambda: a @ b,
        "bfloat16": lambda: low_a @ low_b,
    }
    if torch.backends.mkldnn.is_available():
        packed_a, packed_b = a.to_mkldnn(), b.to_mkldnn()
        kernels["float32 by oneDNN"] = lambda: nn.functional.linear(packed_a, packed_b)
    return [
        {
            "kernel": name,
            "threads": count,
            "gflops": 2 * size**3 / shortest(kernel, CALLS) / 1e9,
        }
        for count in _thread_counts(threads)
        for name, kernel in kernels.items()
    ]


def memory_bandwidths(elements: int, threads: int) -> list[dict[str, int | float]]:
    """The rate at which memory is read, or read and written, by the fastest of three kernels.

    Args:
        elements: Size of the float32 tensors that are read; beyond all caches.
        threads: Each count from 1 to this is measured.

    Returns:
        For each number of threads the rate, in 1e9 bytes a second.
    """
    x, y = torch.ones(elements), torch.ones(elements)
    kernels: list[tuple[int, Callable[[], object]]] = [
        (1, x.amax),
        (2, lambda: torch.dot(x, y)),
        (2, lambda: y.copy_(x)),
    ]
    return [
        {
            "threads": count,
            "gigabytes_per_second": max(
                tensors * x.nbytes / shortest(kernel, CALLS) / 1e9 for tensors, kernel in kernels
            ),
        }
        for count in _thread_counts(threads)
    ]


def _thread_counts(threads: int) -> Iterator[int]:
    for count in range(1, threads + 1):
        with limited_to(count):
            yield count


@contextmanager
def limited_to(threads: int) -> Iterator[None]:
    """Has torch use so many threads.

    Args:
        threads: Number of threads.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
