"""Memory that torch allocates, as `torch.profiler` records it."""

import json
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from transformer_layers import (
    CausalSelfAttention,
    GPT2Config,
    causal_mask,
    scaled_dot_product_attention,
)


def allocated(function: Callable[[], object]) -> int:
    """The most memory that torch holds at once for a call, beyond what it held before.

    Allocations inside of kernels count too, what MKL and oneDNN keep for themselves does not.

    Args:
        function: What is called, twice.

    Returns:
        Bytes.
    """
    function()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        function()
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "trace.json")
        profiler.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text())["traceEvents"]
    changes = [event for event in events if event["name"] == "[memory]"]
    held: dict[int, int] = {}
    most = now = 0
    for change in sorted(changes, key=lambda event: (event["ts"], event["args"]["Ev Idx"])):
        size, address = change["args"]["Bytes"], change["args"]["Addr"]
        if size > 0:
            held[address] = size
            now += size
        else:  # what was there before the call is not ours
            now -= held.pop(address, 0)
        most = max(most, now)
    return most


@torch.no_grad()
def growth_of_attention(config: GPT2Config, lengths: list[int]) -> list[dict[str, int]]:
    """Memory of one layer of attention by the number of positions: the layer, and the definition.

    Args:
        config: Sizes of the model.
        lengths: Numbers of positions.

    Returns:
        For each length the bytes that the model's layer allocates, and those of the definition,
        which makes the matrix of weights.
    """
    layer = CausalSelfAttention(config.n_embd, config.n_head).eval()
    rows = []
    for seq in lengths:
        x = torch.randn(1, seq, config.n_embd)
        heads = torch.randn(1, config.n_head, seq, config.n_embd // config.n_head)
        mask = causal_mask(seq)
        rows.append(
            {
                "positions": seq,
                "layer": allocated(partial(layer, x)),
                "definition": allocated(
                    partial(scaled_dot_product_attention, heads, heads, heads, mask)
                ),
            }
        )
    return rows
