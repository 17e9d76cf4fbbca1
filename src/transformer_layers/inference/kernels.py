"""Which of torch's kernels compute a product."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch

_switching = threading.Lock()
_without = 0  # how many threads are computing without oneDNN
_before = True  # whether it was on before the first of them


def kernels(dtype: torch.dtype, positions: int) -> AbstractContextManager[None]:
    """Chooses the kernels for the products of so many positions.

    oneDNN rearranges a weight in bfloat16 at every product; torch's own kernel for a single row
    reads it as it is, at the speed of the memory. In a graph that torch compiles or exports the
    compiler chooses.

    Args:
        dtype: That of the products.
        positions: The rows of each.

    Returns:
        A context in which the kernels are chosen, for the whole process.
    """
    if torch.compiler.is_compiling():
        return nullcontext()
    return _without_onednn() if dtype == torch.bfloat16 and positions == 1 else nullcontext()


@contextmanager
def _without_onednn() -> Iterator[None]:
    # torch has one switch for all threads: the first one turns it, and the last one turns it back.
    # torch.backends.mkldnn.flags does not count, and warns about GPUs.
    global _without, _before
    switch = torch.backends.mkldnn
    with _switching:
        if _without == 0:
            _before = switch.enabled  # type: ignore[assignment]  # torch declares a descriptor here
            switch.enabled = False  # type: ignore[assignment]  # the same
        _without += 1
    try:
        yield
    finally:
        with _switching:
            _without -= 1
            if _without == 0:
                switch.enabled = _before  # type: ignore[assignment]  # the same
