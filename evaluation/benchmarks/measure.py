"""All measurements, in one run."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median

import torch
from torch import Tensor

from evaluation.benchmarks import limits, machine, memory
from evaluation.benchmarks.contestants import (
    OURS,
    THEIRS,
    Contestant,
    new_model,
    ready_models,
    with_transformers,
)
from evaluation.benchmarks.timing import interleaved, ratio
from transformer_layers import GPT2Config


@dataclass(frozen=True)
class Plan:
    """What is measured.

    Attributes:
        config: Sizes of the model.
        forward: Numbers of positions of a forward.
        backward: Number of positions of a forward and backward.
        prompt: Number of tokens before generation.
        new: Number of tokens to generate.
        rounds: How often each is timed.
        growth: Numbers of positions for which the memory of attention is measured.
        matrix_size: Rows of the matrices that are multiplied for the limit.
        elements: Numbers read for the limit of memory.
    """

    config: GPT2Config
    forward: tuple[int, ...]
    backward: int
    prompt: int
    new: int
    rounds: int
    growth: tuple[int, ...]
    matrix_size: int
    elements: int


FULL = Plan(
    # Without dropout torch's kernel computes attention, with gradients too: in both models.
    config=GPT2Config(dropout=0.0),
    forward=(128, 512, 1024),
    backward=512,
    prompt=64,
    new=64,
    rounds=9,
    growth=(256, 512, 1024, 2048),
    matrix_size=2048,
    elements=2**26,
)
QUICK = Plan(
    config=GPT2Config(vocab_size=101, n_positions=48, n_embd=24, n_layer=2, n_head=3, dropout=0.0),
    forward=(8, 16, 32),
    backward=16,
    prompt=5,
    new=4,
    rounds=2,
    growth=(64, 128),
    matrix_size=64,
    elements=2**12,
)


def measure(plan: Plan) -> dict[str, object]:
    """Runs the plan.

    Args:
        plan: What is measured.

    Returns:
        The results, as they are written to `results.json`.
    """
    model = new_model(plan.config)
    ready = ready_models(model)
    eager = {THEIRS: Contestant(with_transformers(model)), OURS: Contestant(model)}
    everyone = eager | {name: Contestant(one) for name, one in ready.items()}
    ids = torch.randint(plan.config.vocab_size, (1, plan.config.n_positions))
    threads = torch.get_num_threads()
    timings = [
        _timing(
            "forward", seq, everyone, plan.rounds, lambda one, seq=seq: one.forward(ids[:, :seq])
        )
        for seq in plan.forward
    ]
    timings.append(
        _timing(
            "generate",
            plan.new,
            everyone,
            plan.rounds,
            lambda one: one.generate(ids[:, : plan.prompt], plan.new),
        )
    )
    timings.append(
        _timing(
            "forward and backward",
            plan.backward,
            eager,
            plan.rounds,
            lambda one: one.forward_and_backward(ids[:, : plan.backward]),
        )
    )
    return {
        "machine": machine.description(),
        "model": {
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            **asdict(plan.config),
        },
        "prompt": plan.prompt,
        "rounds": plan.rounds,
        "limits": {
            "matrix_products": limits.matrix_rates(plan.matrix_size, threads),
            "memory": limits.memory_bandwidths(plan.elements, threads),
        },
        "timings": timings,
        "errors": [
            {"contestant": name} | asdict(one.error) | {"dtype": str(one.error.dtype)}
            for name, one in ready.items()
        ],
        "peak_memory": _peaks(eager, ids, plan),
        "attention_memory": memory.growth_of_attention(plan.config, list(plan.growth)),
    }


def _timing(
    task: str,
    positions: int,
    contestants: dict[str, Contestant],
    rounds: int,
    call: Callable[[Contestant], object],
) -> dict[str, object]:
    seconds = interleaved(
        {name: lambda one=one: call(one) for name, one in contestants.items()}, rounds
    )
    return {
        "task": task,
        "positions": positions,
        "results": [
            {
                "contestant": name,
                "median_seconds": median(own),
                "ratio": asdict(ratio(own, seconds[THEIRS])),
            }
            for name, own in seconds.items()
        ],
    }


def _peaks(eager: dict[str, Contestant], ids: Tensor, plan: Plan) -> list[dict[str, object]]:
    longest = max(plan.forward)
    tasks: dict[tuple[str, int], Callable[[Contestant], object]] = {
        ("forward", longest): lambda one: one.forward(ids[:, :longest]),
        ("generate", plan.new): lambda one: one.generate(ids[:, : plan.prompt], plan.new),
        ("forward and backward", plan.backward): (
            lambda one: one.forward_and_backward(ids[:, : plan.backward])
        ),
    }
    return [
        {
            "task": task,
            "positions": positions,
            "bytes": {
                name: memory.allocated(lambda one=one, call=call: call(one))
                for name, one in eager.items()
            },
        }
        for (task, positions), call in tasks.items()
    ]
