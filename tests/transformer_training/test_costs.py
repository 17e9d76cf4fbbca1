"""What a step costs on paper, held against what ranks really hold and send.

The ranks are forked from a process of their own, which has loaded torch.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.device_mesh import init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode

from transformer_layers import GPT2, GPT2Config
from transformer_training import TrainingConfig, costs, estimate
from transformer_training.measured import LocalRanks, _bytes
from transformer_training.plans import PLANS
from transformer_training.plans.gpt2 import activation_bytes, flops_of_token
from transformer_training.ranks import Ranks

# What is derived leaves out the numbers of the tokens, 16 bytes each; and of what is sent gloo's
# headers, some 50 bytes for each part of a message, and single numbers such as the gradient's
# length: some 10 KB here.
TOLERANCE = 0.02
TOLERANCE_SENT = 0.05

pytestmark = pytest.mark.xdist_group("costs")  # one process forks the ranks


EVEN = {"vocab_size": 500, "seq": 32, "n_embd": 64, "n_layer": 2, "n_head": 4, "batch_size": 8}
# Rows that four ranks cannot share evenly: of 301, 17 and 30, the first has 76, 5 and 8.
ODD = {"vocab_size": 301, "seq": 17, "n_embd": 30, "n_layer": 3, "n_head": 6, "batch_size": 12}
WAYS: list[tuple[int, dict[str, Any]]] = [
    (1, {**EVEN, "precision": "bfloat16"}),
    (2, {**EVEN, "parallel": "ddp", "micro_batch": 2}),
    (2, {**EVEN, "parallel": "fsdp", "micro_batch": 1, "precision": "bfloat16"}),
    (2, {**EVEN, "parallel": "tp"}),
    (4, {**ODD, "parallel": "fsdp+tp"}),
]


@pytest.fixture(scope="module")
def local() -> Iterator[LocalRanks]:
    with LocalRanks() as ranks:
        yield ranks


@pytest.fixture(scope="module")
def gloo(local: LocalRanks) -> dict[int, list[dict[str, float]]]:
    return {ranks: local.collectives(ranks) for ranks in (2, 4)}


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way[1].get("parallel", "none"))
def test_ranks_hold_and_send_what_is_derived(way, local, gloo):
    ranks, options = way
    options = dict(options)
    vocab_size = options.pop("vocab_size")
    config = TrainingConfig(("-",), "-", device="cpu", **options)
    model = config.model(vocab_size)
    found = local.measure(ranks, config, vocab_size)
    axis = {"none": 1, "tp": 1, "fsdp+tp": ranks // 2}.get(config.parallel, ranks)
    derived = costs(
        model,
        config.batch_size,
        None,
        config.precision,
        config.parallel,
        ranks,
        config.tensor_ranks,
        micro_batches=config.batch_size // axis // config.micro_batch if config.micro_batch else 1,
    )
    first = found[0]
    assert first.parameters == max(each.parameters for each in found) == derived.parameters
    assert first.gradients == derived.gradients
    assert first.optimizer == derived.optimizer
    assert first.activations == pytest.approx(derived.activations, rel=TOLERANCE)
    # PyTorch's gloo sums for all where a part is wanted, and sends what that takes.
    extra = 0.0
    if axis > 1:
        extra = gloo[axis][0]["reduce_scatter"] * axis / (axis - 1) - 1
    sent = derived.sent + extra * derived.reduce_scattered
    for each in found:
        assert each.sent == pytest.approx(sent, rel=TOLERANCE_SENT)
    assert first.flops == derived.flops


@pytest.mark.parametrize(("parallel", "data", "tensor"), [("fsdp", 1000, 1), ("fsdp+tp", 400, 5)])
def test_ranks_that_nobody_has_here(parallel, data, tensor):
    """Torch's own sharding, told that it is the first of so many ranks, on weights without data."""
    config, ranks = GPT2Config(n_embd=1600, n_head=25), data * tensor
    few = dataclasses.replace(config, n_layer=2)
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=ranks)
    try:
        names = ("data", "tensor")
        mesh = init_device_mesh("cpu", (data, tensor), mesh_dim_names=names)
        axes = [mesh[name] if mesh[name].size() > 1 else None for name in names]
        shared = Ranks(0, ranks, torch.device("cpu"), parallel, *axes)
        with torch.device("meta"):
            module = GPT2(few)
        shared.wrap(PLANS["gpt2"], module, compile=False)
        held = _bytes(module.parameters())
    finally:
        dist.destroy_process_group()
    derived = costs(few, ranks, 8, "float32", parallel, ranks, tensor)
    assert held == derived.parameters


def test_a_published_size_in_closed_form():
    config = GPT2Config(n_layer=48, n_embd=1600, n_head=25)
    n_layer, d, tokens, s = config.n_layer, config.n_embd, config.vocab_size, config.n_positions
    weights = tokens * d + s * d + n_layer * (12 * d**2 + 13 * d) + 2 * d
    alone = costs(config, 1)
    assert (alone.parameters, alone.state, alone.sent) == (4 * weights, 16 * weights, 0)
    # Korthikanti et al. 2022, appendix A: operations of the model, without any done again.
    assert alone.flops == pytest.approx(
        72 * s * n_layer * d**2 * (1 + s / (6 * d) + tokens / (12 * n_layer * d))
    )
    shared = costs(config, 2048, parallel="ddp", ranks=2048)
    assert shared.sent == 2 * (2047 * 4 * weights // 2048)
    # ZeRO, section 7.2.2: half as much again, where the rows can be shared evenly.
    each = costs(config, 16, parallel="fsdp", ranks=16)
    assert each.sent / costs(config, 16, parallel="ddp", ranks=16).sent == pytest.approx(1.5, 1e-3)


def test_numbers_by_hand():
    """One block of two features and a head, 3 tokens in the vocabulary, 4 positions."""
    config = GPT2Config(vocab_size=3, n_positions=4, n_embd=2, n_layer=1, n_head=1)
    found = costs(config, 6, parallel="ddp", ranks=3)
    weights = 3 * 2 + 4 * 2 + (12 * 4 + 13 * 2) + 2 * 2
    assert found.parameters == found.gradients == 4 * weights
    assert found.sent == found.all_reduced == 2 * (2 * 4 * weights // 3)
    norm = 4 * (2 + 2) + 4 * 2
    token = 2 * norm + 4 * (12 * 2 + 1) + norm + 4 * 3
    assert activation_bytes(config) == token
    assert found.activations == 2 * 4 * token
    assert flops_of_token(config, 4) == 6 * (12 * 4 + 3 * 2) + 12 * 2 * 4
    assert found.flops == 2 * 4 * flops_of_token(config, 4)


def test_the_speed_is_that_of_the_device(monkeypatch):
    """The products of the estimate are made on a GPU that torch pretends to have, to their end."""
    happened: list[str] = []
    ticks = iter(range(10))

    class Recorder(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func is torch.ops.aten.mm.default:
                happened.append(" x ".join(each.device.type for each in args))
            return func(*args, **(kwargs or {}))

    def clock() -> float:
        happened.append("clock")
        return 0.02 * next(ticks)

    def wait(device: torch.device) -> None:
        happened.append(f"wait for {device.type}")

    monkeypatch.setattr("time.perf_counter", clock)
    monkeypatch.setattr("torch.accelerator.synchronize", wait)
    config = TrainingConfig(("-",), "-", seq=8, n_layer=1, n_embd=16)
    costs(config.model(50), 1)  # its shapes are remembered; they cannot be had of fakes
    with FakeTensorMode(), Recorder():
        found = estimate(config, 50, device=torch.device("cuda"))
        product = ["cuda x cuda", "wait for cuda"]
        assert happened == [*product, "clock", "clock", *product, "clock", *product, "clock"]
        happened.clear()
        estimate(config, 50, device=torch.device("cpu"))
        assert happened == ["cpu x cpu", "clock", "clock", *2 * ["cpu x cpu", "clock"]]
    assert found.seconds == pytest.approx(found.flops / (2 * 8 * 128 * 16**2 / 0.06))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"ranks": 2}, "2 ranks need a way to share the work, got parallel='none'"),
        (
            {"parallel": "ddp", "ranks": 2, "micro_batches": 3},
            "micro_batches must divide 4, the sequences of a rank, got 3",
        ),
        ({"seq": 1025}, "seq must be at most 1024, the model.s positions, got 1025"),
        (
            {"parallel": "tp", "ranks": 8},
            "the ranks that share matrices must divide the heads, got 8 for 12",
        ),
        (
            {"parallel": "ddp", "ranks": 16, "batch_size": 24},
            "the ranks that learn from different sequences must divide batch_size, got 16 for 24",
        ),
    ],
)
def test_what_cannot_be_shared(asked, said):
    with pytest.raises(ValueError, match=said):
        costs(GPT2Config(), **{"batch_size": 8, **asked})


@pytest.mark.parametrize(("parallel", "ranks"), [("none", 1), ("fsdp", 2)])
def test_the_estimate_of_a_run_is_that_of_each_process(parallel, ranks):
    options = {**EVEN, "parallel": parallel, "steps": 3, "micro_batch": 2}
    vocab_size = options.pop("vocab_size")
    config = TrainingConfig(("-",), "-", **options)
    model = config.model(vocab_size)
    found = estimate(config, vocab_size, ranks)
    at_once = 4 if parallel == "fsdp" else 2  # two sequences on each rank that has its own
    each = costs(model, at_once, parallel=parallel, ranks=ranks)
    assert (found.state, found.activations) == (each.state, each.activations)
    assert found.parameters == 134_144
    assert found.flops == 3 * 8 * 32 * flops_of_token(model, 32)
    assert found.seconds > 0
