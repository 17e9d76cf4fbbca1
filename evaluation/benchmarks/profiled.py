"""Where the time of a call goes: to matrix products, to attention, to other kernels, to Python."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from torch.profiler import ProfilerActivity, profile

_PRODUCTS = frozenset({"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm"})


@dataclass(frozen=True)
class Parts:
    """Seconds of one call, by what they were spent on.

    Attributes:
        products: Products of matrices.
        attention: Torch's fused kernel of attention.
        others: All other kernels: norms, activations, sums, copies, tokens looked up.
        between: What is left: Python, and torch's way from a call to its kernel.
    """

    products: float
    attention: float
    others: float
    between: float


def parts(function: Callable[[], object]) -> Parts:
    """Calls a function twice, and reads off the second call where its time went.

    Args:
        function: What is to be profiled.

    Returns:
        The parts. They sum up to the time of the call, which the profiler makes a little longer.
    """
    function()
    with profile(activities=[ProfilerActivity.CPU]) as recorded:
        start = time.perf_counter()
        function()
        seconds = time.perf_counter() - start
    kernels = {each.key: each.self_cpu_time_total / 1e6 for each in recorded.key_averages()}
    products = sum(kernels.pop(name, 0.0) for name in _PRODUCTS)
    attention = sum(spent for name, spent in kernels.items() if "attention" in name)
    others = sum(kernels.values()) - attention
    return Parts(products, attention, others, max(0.0, seconds - products - attention - others))
