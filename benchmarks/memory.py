"""Memory: of a whole process, and of what torch allocates."""

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.contestants import OURS, Contestant, new_model, with_transformers
from transformer_layers import (
    CausalSelfAttention,
    GPT2Config,
    causal_mask,
    scaled_dot_product_attention,
)


def rise_of_peak(contestant: str, task: str, config: GPT2Config, shape: tuple[int, int]) -> int:
    """By how much a task raises the peak memory of a process that has loaded the model.

    The process is a fresh one; its peak is the most memory that it had resident.

    Args:
        contestant: "GPT2" or "transformers".
        task: "forward", "forward and backward" or "generate".
        config: Sizes of the model.
        shape: Positions, and new tokens for "generate".

    Returns:
        Bytes.
    """
    request = json.dumps([contestant, task, asdict(config), shape, torch.get_num_threads()])
    finished = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory", request],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=Path(__file__).parents[1],
    )
    return json.loads(finished.stdout)


def allocated(function: Callable[[], object]) -> int:
    """The most memory that torch holds at once for a call, beyond what it held before.

    The allocations are those that `torch.profiler` records, inside of kernels too.

    Args:
        function: What is called.

    Returns:
        Bytes, the same in every run.
    """
    function()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        function()
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "trace.json")
        profiler.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text())["traceEvents"]
    changes = [(event["ts"], event["args"]) for event in events if event["name"] == "[memory]"]
    held, most = 0, 0
    for _, change in sorted(changes, key=lambda pair: (pair[0], pair[1]["Ev Idx"])):
        held += change["Bytes"]
        most = max(most, held)
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
                "layer": allocated(lambda x=x: layer(x)),
                "definition": allocated(
                    lambda x=heads, mask=mask: scaled_dot_product_attention(x, x, x, mask)
                ),
            }
        )
    return rows


def main() -> None:
    """What the fresh process does: prints the bytes."""
    name, task, sizes, (seq, new), threads = json.loads(sys.argv[1])
    torch.set_num_threads(threads)
    model = new_model(GPT2Config(**sizes))
    contestant = Contestant(model if name == OURS else with_transformers(model))
    ids = torch.randint(model.config.vocab_size, (1, seq))
    before = _peak_from_here()
    if task == "generate":
        contestant.generate(ids, new)
    elif task == "forward":
        contestant.forward(ids)
    else:
        contestant.forward_and_backward(ids)
    print(_peak() - before)


def _peak_from_here() -> int:
    # Loading may have needed more than what is left of it. Linux can forget that peak.
    forget = Path("/proc/self/clear_refs")
    if forget.exists():
        forget.write_text("5")
    return _peak()


def _peak() -> int:
    # Linux' ru_maxrss begins with the peak of the process that started this one, VmHWM does not.
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
        return 1024 * int(line.split()[1])
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
