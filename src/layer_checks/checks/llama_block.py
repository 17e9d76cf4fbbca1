"""The checks of a block of Llama, against torch's norms, kernel and complex rotations."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

import transformer_layers
from layer_checks.checks.gated import TorchGatedFeedForward
from layer_checks.checks.grouped import TorchGroupedQueryAttention
from layer_checks.checks.llama import TorchLlamaBlock, llama, turn_as
from layer_checks.checks.rotary import ComplexRotation
from layer_checks.evidence.evidence import Evidence, equivalent
from layer_checks.evidence.randomness import seeded
from layer_checks.kit.candidates import built, outputs_and_gradients, randomized, same, weights_of
from layer_checks.kit.definitions import Candidate, Layer
from layer_checks.kit.initial import starts_as
from layer_checks.kit.oracles import (
    agreeing_gradients,
    future_changes_nothing,
    same_state,
    sequences,
    with_weights_of,
)
from layer_checks.kit.probes import Probing, Stepping, probe
from transformer_layers import KeyValueCache
from transformer_layers.models.rotary_decoder import LlamaBlock

# Heads of 4 features; 48 is also what Meta's files make of 16, in multiples of 48.
_D_MODEL, _HEADS, _KV_HEADS, _D_FF, _D_K = 16, 4, 2, 48, 4
_SIZES = (_D_MODEL, _HEADS, _KV_HEADS, _D_FF)
_EPS = 1e-2
_ATOL = 1e-5  # angles are float32 in many right layers, whatever the weights are


class BlockOfSizes(LlamaBlock):
    """A block of Llama by its sizes, which turns queries and keys itself.

    Args:
        d_model: Features of a position.
        num_heads: Heads of queries.
        num_kv_heads: Heads of keys and values.
        d_ff: Features in between of the feed-forward layer.
        eps: What both norms add.
        base: Of the frequencies of the rotation.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        num_kv_heads: int,
        d_ff: int,
        eps: float = 1e-5,
        base: float = 10_000.0,
    ) -> None:
        positions = transformer_layers.RotaryPositions(d_model // num_heads, base)
        attention = transformer_layers.GroupedQueryAttention(
            d_model, num_heads, num_kv_heads, positions=positions
        )
        feed_forward = transformer_layers.GatedFeedForward(d_model, d_ff)
        super().__init__(
            attention, feed_forward, lambda size: transformer_layers.LlamaRMSNorm(size, eps)
        )


def _oracle(kv_heads: int = _KV_HEADS, eps: float = _EPS, base: float = 10_000.0) -> nn.Module:
    attention = TorchGroupedQueryAttention(
        _D_MODEL, _HEADS, kv_heads, _D_K, ComplexRotation(_D_K, base)
    )
    feed_forward = TorchGatedFeedForward(_D_MODEL, _D_FF, std=0.3)
    return randomized(TorchLlamaBlock(attention, feed_forward, _D_MODEL, eps), std=0.3)


def _pair(
    candidate: Candidate, kv_heads: int = _KV_HEADS, eps: float = _EPS, **options: Any
) -> tuple[nn.Module, Any]:
    theirs: Any = _oracle(kv_heads, eps, **options)
    sizes = (_D_MODEL, _HEADS, kv_heads, _D_FF)
    ours = with_weights_of(theirs, candidate, *sizes, eps=eps, **options)
    with seeded(0):
        turn_as(ours, theirs, sequences(_D_MODEL, seq=4), _D_K, options.get("base", 10_000.0))
    return ours, theirs


def _probe(candidate: Candidate) -> Iterator[Tensor]:
    ours, theirs = _pair(candidate)
    x = sequences(_D_MODEL, seq=5)
    yield torch.tensor(len(ours.state_dict()))
    yield from outputs_and_gradients(ours, weights_of(theirs), x)
    yield ours(1e-3 * x).detach()
    other, _ = _pair(candidate, base=100.0)
    yield other(x).detach()
    cache = _cache(5)
    yield from (ours(part.contiguous(), cache=cache).detach() for part in x.split([3, 2], dim=1))


def _cache(seq: int) -> KeyValueCache:
    return KeyValueCache(2, _KV_HEADS, seq, _D_K, dtype=torch.float64)


def _in_steps(ours: nn.Module, x: Tensor) -> Tensor:
    cache = _cache(x.shape[1])
    steps = [ours(part.contiguous(), cache=cache) for part in x.split([3, 2, 1], dim=1)]
    return torch.cat(steps, dim=1)


llama_block = Layer(
    "LlamaBlock",
    "LlamaBlock(d_model, num_heads, num_kv_heads, d_ff, eps=1e-5, base=10000.0)(x)",
    example=lambda candidate: built(candidate, *_SIZES)(torch.randn(2, 3, _D_MODEL)),
    probe=_probe,
    right=BlockOfSizes,
    synonyms={
        "num_kv_heads": (
            *("n_kv_heads", "num_key_value_heads", "n_kv_head", "num_kv_groups"),
            *("n_kv_groups", "n_query_groups", "kv_heads"),
        ),
        "base": ("theta", "rope_theta", "rope_base"),
    },
    attributes=("eps",),
    words=llama.words,
)


@llama_block.check("The output has the shape of the input.", weak=True)
def output_shape(candidate: Candidate) -> Evidence:
    x = torch.randn(2, 5, _D_MODEL)
    return same(tuple(built(candidate, *_SIZES)(x).shape), tuple(x.shape))


@llama_block.check(
    "The state dict has two norms, attention and feed-forward layer as in the published weights.",
    kind="contract",
)
def state(candidate: Candidate) -> Evidence:
    return same_state(built(candidate, *_SIZES), _oracle())


@llama_block.check(
    "With random weights the values in float64 are torch's, up to the rounding of angles in "
    "float32."
)
def values(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    x = sequences(_D_MODEL, seq=5)
    return equivalent(ours(x), theirs(x), atol=_ATOL)


@llama_block.check("So they are for inputs of 0.001, where eps is larger than the mean square.")
def small_inputs(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    x = 1e-3 * sequences(_D_MODEL, seq=5)
    return equivalent(ours(x), theirs(x), atol=1e-8)


@llama_block.check("So are the gradients of the input and the weights.")
def gradients(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    return agreeing_gradients(ours, theirs, sequences(_D_MODEL, seq=5), atol=10 * _ATOL)


@llama_block.check("So are the values with as many heads of keys as of queries.")
def as_many_heads(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate, kv_heads=_HEADS)
    x = sequences(_D_MODEL, seq=5)
    return equivalent(ours(x), theirs(x), atol=_ATOL)


@llama_block.check("So are they where the frequencies have the base 100.")
def base(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate, base=100.0)
    x = sequences(_D_MODEL, seq=5)
    return equivalent(ours(x), theirs(x), atol=_ATOL)


@llama_block.check("Changing positions 4 and 5 of 6 does not move 0 to 3.")
def future(candidate: Candidate) -> Evidence:
    ours, _ = _pair(candidate)
    return future_changes_nothing(ours, _D_MODEL, atol=1e-13)


@llama_block.check(
    "In steps of 3, 2 and 1 with a cache of keys and values, the values are the same.",
    name="cache",
    kind="contract",
)
def with_cache(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    x = sequences(_D_MODEL, seq=6)
    return equivalent(_in_steps(ours, x), theirs(x), atol=_ATOL)


@llama_block.check("Gains start from ones, weights as those of `torch.nn.Linear`.", kind="start")
def initial_values(candidate: Candidate) -> Evidence:
    return starts_as(built(candidate, 64, 4, 2, 48), BlockOfSizes(64, 4, 2, 48))


def _stepping(candidate: Candidate, seq: int) -> Stepping:
    ours, theirs = _pair(candidate)
    return Stepping(
        step=lambda part, cache: ours(part, cache=cache),
        whole=theirs,
        cache=_cache,
        inputs=lambda seq: sequences(_D_MODEL, seq=seq),
    )


probe(
    llama_block,
    Probing(
        pair=_pair,
        inputs=lambda batch, seq: (sequences(_D_MODEL, batch, seq),),
        sizes=_SIZES,
        defaults={"eps": 1e-5, "base": 10_000.0},
        drawn=lambda candidate: list(weights_of(built(candidate, *_SIZES)).values()),
        stepping=_stepping,
        makes=lambda candidate: (built(candidate, *_SIZES), (sequences(_D_MODEL).float(),)),
        rounding=2e-7,
    ),
)
