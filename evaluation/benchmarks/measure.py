"""All measurements, in one run."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

from evaluation.benchmarks import limits, machine, memory
from evaluation.benchmarks.contestants import (
    LLAMA,
    OURS,
    READY,
    THEIRS,
    TRANSLATOR,
    Contestant,
    Translator,
    from_files,
    new_llama,
    new_model,
    new_translator,
    ready_models,
    with_transformers,
)
from evaluation.benchmarks.profiled import parts
from evaluation.benchmarks.timing import interleaved, ratio
from transformer_layers import (
    GPT2Config,
    LlamaConfig,
    TransformerConfig,
    ready_for_inference,
)


@dataclass(frozen=True)
class Plan:
    """What is measured.

    Attributes:
        config: Sizes of GPT-2.
        llama: Sizes of the Llama.
        translator: Sizes of the translator.
        beams: Number of beams of a translation.
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
    llama: LlamaConfig
    translator: TransformerConfig
    beams: int
    forward: tuple[int, ...]
    backward: int
    prompt: int
    new: int
    rounds: int
    growth: tuple[int, ...]
    matrix_size: int
    elements: int


MARIAN: dict[str, Any] = {"activation": "silu", "sines_first": True, "logits_bias": True}
FULL = Plan(
    # Without dropout torch's kernel computes attention, with gradients too: in both models.
    config=GPT2Config(dropout=0.0),
    llama=LlamaConfig(
        vocab_size=32_000,
        hidden_size=768,
        intermediate_size=2048,
        num_hidden_layers=12,
        num_attention_heads=12,
        num_key_value_heads=4,
        tie_word_embeddings=True,
    ),
    # Those of Marian's models between two languages of Europe.
    translator=TransformerConfig(
        vocab_size=58_101,
        max_seq=512,
        start_token=58_100,
        end_token=0,
        padding_token=58_100,
        **MARIAN,
    ),
    beams=4,
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
    llama=LlamaConfig(101, 24, 40, 2, 4, 2, max_position_embeddings=48),
    translator=TransformerConfig(
        101, 24, 2, 3, 40, max_seq=48, start_token=100, padding_token=100, **MARIAN
    ),
    beams=3,
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
    timings = _forwards_and_generation(everyone, ids, plan)
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
        "model": _sizes(model, plan.config),
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
        "profile": measure_profile(plan),
        "peak_memory": _peaks(eager, ids, plan),
        "attention_memory": memory.growth_of_attention(plan.config, list(plan.growth)),
        "llama": _llama(plan),
        "translator": _translator(plan),
    }


def _llama(plan: Plan) -> dict[str, object]:
    model = new_llama(plan.llama)
    [exact, *_] = READY
    everyone = {
        THEIRS: Contestant(from_files(model)),
        LLAMA: Contestant(model),
        exact: Contestant(ready_for_inference(model)),
    }
    ids = torch.randint(plan.llama.vocab_size, (1, max(plan.forward)))
    return {
        "model": _sizes(model, plan.llama),
        "timings": _forwards_and_generation(everyone, ids, plan),
    }


def _translator(plan: Plan) -> dict[str, object]:
    model = new_translator(plan.translator)
    everyone = {THEIRS: Translator(from_files(model)), TRANSLATOR: Translator(model)}
    source = torch.randint(plan.translator.vocab_size - 1, (1, plan.prompt))
    [forward, *_] = plan.forward
    target = torch.randint(plan.translator.vocab_size - 1, (1, forward))
    return {
        "model": _sizes(model, plan.translator),
        "beams": plan.beams,
        "timings": [
            _timing(
                "forward", forward, everyone, plan.rounds, lambda one: one.forward(source, target)
            ),
            _timing(
                "translate",
                plan.new,
                everyone,
                plan.rounds,
                lambda one: one.translate(source, plan.new, plan.beams),
            ),
        ],
    }


def _sizes(model: nn.Module, config: Any) -> dict[str, object]:
    count = sum(parameter.numel() for parameter in model.parameters())
    return {"parameters": count, **asdict(config)}


def _calls(ids: Tensor, plan: Plan) -> dict[tuple[str, int], Callable[[Contestant], object]]:
    """The forwards and the generation, by task and number of positions."""
    calls: dict[tuple[str, int], Callable[[Contestant], object]] = {
        ("forward", seq): lambda one, seq=seq: one.forward(ids[:, :seq]) for seq in plan.forward
    }
    prompt = ids[:, : plan.prompt]
    return calls | {("generate", plan.new): lambda one: one.generate(prompt, plan.new)}


def _forwards_and_generation(
    contestants: dict[str, Contestant], ids: Tensor, plan: Plan
) -> list[dict[str, object]]:
    return [
        _timing(*title, contestants, plan.rounds, call) for title, call in _calls(ids, plan).items()
    ]


def measure_profile(plan: Plan) -> dict[str, object]:
    """Where the time of a forward and of generation goes, in a GPT-2 and in a Llama.

    Args:
        plan: What is measured.

    Returns:
        The "machine", and "rows" of both models.
    """
    gpt2, llama = new_model(plan.config), new_llama(plan.llama)
    ids = torch.randint(min(plan.config.vocab_size, plan.llama.vocab_size), (1, max(plan.forward)))
    pairs = (
        {THEIRS: Contestant(with_transformers(gpt2)), OURS: Contestant(gpt2)},
        {THEIRS: Contestant(from_files(llama)), LLAMA: Contestant(llama)},
    )
    return {
        "machine": machine.description(),
        "rows": [row for pair in pairs for row in _profile(pair, ids, plan)],
    }


def _profile(
    contestants: dict[str, Contestant], ids: Tensor, plan: Plan
) -> list[dict[str, object]]:
    return [
        {
            "task": task,
            "positions": positions,
            "seconds": {
                name: asdict(parts(lambda one=one, call=call: call(one)))
                for name, one in contestants.items()
            },
        }
        for (task, positions), call in _calls(ids, plan).items()
    ]


def _timing(
    task: str,
    positions: int,
    contestants: dict[str, Any],
    rounds: int,
    call: Callable[[Any], object],
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
