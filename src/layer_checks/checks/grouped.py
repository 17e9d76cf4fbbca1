"""The checks of `GroupedQueryAttention`, against torch's kernel for grouped queries."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

import transformer_layers
from layer_checks.checks.rotary import ComplexRotation, nearest, rotations
from layer_checks.evidence.evidence import Evidence, equivalent, holds, raises
from layer_checks.evidence.randomness import seeded
from layer_checks.kit.arguments import CannotTakeError
from layer_checks.kit.candidates import (
    built,
    deep_copy,
    has_parameters,
    outputs_and_gradients,
    randomized,
    same,
    takes,
    weights_of,
)
from layer_checks.kit.definitions import Candidate, Layer
from layer_checks.kit.initial import starts_as
from layer_checks.kit.oracles import (
    agreeing_gradients,
    future_changes_nothing,
    sequences,
    with_weights_of,
)
from layer_checks.kit.own_calls import in_own_steps
from layer_checks.kit.probes import Case, Probing, Stepping, probe
from transformer_layers import KeyValueCache

# Heads of 4 features, which is not 16 / 6; two heads of keys, each for three of queries.
_D_MODEL, _HEADS, _KV_HEADS, _D_K = 16, 6, 2, 4
_SIZES = (_D_MODEL, _HEADS, _KV_HEADS)
# Heads of 16 / 4 features, for those that take no d_k.
_EVEN = (_D_MODEL, 4, _KV_HEADS)


class UnevenRMSNorm(nn.Module):
    """`rms_norm` with a gain for each feature that needs no loading: it is no parameter."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def forward(self, x: Tensor) -> Tensor:
        """Norms each row."""
        gain = torch.linspace(0.5, 2, self.size, dtype=x.dtype, device=x.device)
        return functional.rms_norm(x, (self.size,), gain, eps=1e-6)


class TorchGroupedQueryAttention(nn.Module):
    """`torch.nn.Linear` four times, and torch's kernel with `enable_gqa`."""

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        num_kv_heads: int,
        d_k: int,
        positions: Any = None,
        std: float = 0.3,
        norm: Callable[[int], nn.Module] = nn.Identity,
    ) -> None:
        super().__init__()
        self.norm = norm(d_k)
        self.d_k, self.positions = d_k, positions
        wide, narrow = num_heads * d_k, num_kv_heads * d_k
        shapes = [(d_model, wide), (d_model, narrow), (d_model, narrow), (wide, d_model)]
        layers = [randomized(nn.Linear(*each, bias=False), std).double() for each in shapes]
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = layers

    def forward(self, x: Tensor) -> Tensor:
        """Attends from each position to itself and those before it."""
        projections = (self.q_proj, self.k_proj, self.v_proj)
        query, key, value = (
            each(x).unflatten(-1, (-1, self.d_k)).transpose(-3, -2) for each in projections
        )
        query, key = self.norm(query), self.norm(key)
        if self.positions is not None:
            query, key = self.positions(query), self.positions(key)
        heads = functional.scaled_dot_product_attention(
            query, key, value, is_causal=True, enable_gqa=True
        )
        return self.o_proj(heads.transpose(-3, -2).flatten(-2))


def _turned_inside(ours: nn.Module, x: Tensor) -> bool:
    """Whether a layer turns queries and keys by positions that nobody gives it.

    If not, what comes last sees the same two tokens before it in either order.
    """
    last, other = (ours(each)[:, -1] for each in (x, x[:, [1, 0, 2]]))
    return not torch.allclose(last, other, rtol=0, atol=1e-9)


def _as_it_turns(
    candidate: Candidate, ours: nn.Module, theirs: TorchGroupedQueryAttention
) -> TorchGroupedQueryAttention:
    """The oracle with a rotation inside, where a layer that takes no positions has one."""
    if theirs.d_k % 2 or takes(candidate, "positions"):
        return theirs
    with torch.no_grad(), seeded(0):
        x = sequences(theirs.q_proj.in_features, seq=3)
        trial = deep_copy(ours)  # what a first call changes, the checks have to see
        if _turned_inside(trial, x):
            found = trial(x)

            def distance(rotation: ComplexRotation) -> float:
                theirs.positions = rotation
                return float((theirs(x) - found).abs().max())

            theirs.positions = nearest(rotations(theirs.d_k), distance)
    return theirs


def _pair(
    candidate: Candidate, std: float = 0.3, **options: Any
) -> tuple[nn.Module, TorchGroupedQueryAttention]:
    theirs = TorchGroupedQueryAttention(*_SIZES, _D_K, std=std)
    try:
        ours = with_weights_of(theirs, candidate, *_SIZES, d_k=_D_K, **options)
    except CannotTakeError as error:
        if error.argument != "d_k":
            raise
        theirs = TorchGroupedQueryAttention(*_EVEN, _D_K, std=std)
        ours = with_weights_of(theirs, candidate, *_EVEN, **options)
    return ours, _as_it_turns(candidate, ours, theirs)


def _in_steps(
    ours: nn.Module, x: Tensor, lengths: list[int], padding: Tensor | None = None
) -> Tensor:
    sizes = (x.shape[0], _KV_HEADS, x.shape[1], _D_K)
    cache = KeyValueCache(*sizes, padding=padding, dtype=torch.float64)
    return torch.cat([ours(part.contiguous(), cache=cache) for part in x.split(lengths, 1)], 1)


def _probe(candidate: Candidate) -> Iterator[Tensor]:
    ours, theirs = _pair(candidate)
    x = sequences(_D_MODEL, seq=5)
    yield torch.tensor(len(ours.state_dict()))
    yield from outputs_and_gradients(ours, weights_of(theirs), x)
    windowed, _ = _pair(candidate, window=2)
    yield windowed(x).detach()
    turned, _ = _pair(candidate, positions=transformer_layers.RotaryPositions(_D_K))
    yield turned(x).detach()
    yield _in_steps(ours, x, [3, 2]).detach()
    yield _in_steps(turned, x, [3, 2]).detach()
    even = built(candidate, 12, 6, 2)
    yield torch.tensor([each.numel() for each in even.parameters()])


grouped_query_attention = Layer(
    "GroupedQueryAttention",
    "GroupedQueryAttention(d_model, num_heads, num_kv_heads, d_k=None, positions=None, "
    "window=None)",
    example=lambda candidate: built(candidate, 12, 6, 2)(torch.randn(2, 3, 12)),
    probe=_probe,
    synonyms={
        "num_kv_heads": (
            *("n_kv_heads", "num_key_value_heads", "n_kv_head", "num_kv_groups"),
            *("n_kv_groups", "n_query_groups", "kv_heads"),
        ),
        "d_k": ("head_dim",),
        "window": ("sliding_window", "window_size"),
    },
    not_mistakes={"padding of caches ignored"},  # "padding in the cache seen" is the same
)


@grouped_query_attention.check("The output has the shape of the input.", weak=True)
def output_shape(candidate: Candidate) -> Evidence:
    x = torch.randn(2, 5, 12)
    return same(tuple(built(candidate, 12, 6, 2)(x).shape), tuple(x.shape))


@grouped_query_attention.check(
    "With as many heads of keys as of queries the values are torch's.", weak=True
)
def as_many_heads(candidate: Candidate) -> Evidence:
    theirs = TorchGroupedQueryAttention(12, 3, 3, 4)
    ours = with_weights_of(theirs, candidate, 12, 3, 3)
    theirs = _as_it_turns(candidate, ours, theirs)
    x = sequences(12, seq=5)
    return equivalent(ours(x), theirs(x), atol=1e-12)


@grouped_query_attention.check(
    "There are four weights, those of keys and values of their own heads, and no bias.",
    kind="contract",
)
def parameters(candidate: Candidate) -> Evidence:
    return has_parameters(
        built(candidate, *_SIZES, d_k=_D_K),
        q_proj__weight=(_HEADS * _D_K, _D_MODEL),
        k_proj__weight=(_KV_HEADS * _D_K, _D_MODEL),
        v_proj__weight=(_KV_HEADS * _D_K, _D_MODEL),
        o_proj__weight=(_D_MODEL, _HEADS * _D_K),
    )


@grouped_query_attention.check(
    "With six heads of queries, two of keys and random weights the values in float64 are torch's."
)
def values(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    x = sequences(_D_MODEL, seq=5)
    return equivalent(ours(x), theirs(x), atol=1e-12)


@grouped_query_attention.check("So are the gradients of the input and the weights.")
def gradients(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    return agreeing_gradients(ours, theirs, sequences(_D_MODEL, seq=5))


@grouped_query_attention.check("With one head of keys the values are torch's.")
def one_head_of_keys(candidate: Candidate) -> Evidence:
    theirs = TorchGroupedQueryAttention(12, 3, 1, 4)
    ours = with_weights_of(theirs, candidate, 12, 3, 1)
    theirs = _as_it_turns(candidate, ours, theirs)
    x = sequences(12, seq=5)
    return equivalent(ours(x), theirs(x), atol=1e-12)


@grouped_query_attention.check("Changing positions 4 and 5 of 6 does not move 0 to 3.")
def future(candidate: Candidate) -> Evidence:
    ours, _ = _pair(candidate)
    return future_changes_nothing(ours, _D_MODEL, atol=0.0)


@grouped_query_attention.check("Queries and keys are given their positions, values are not.")
def positions(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate, positions=transformer_layers.RotaryPositions(_D_K))
    theirs.positions = ComplexRotation(_D_K)
    x = sequences(_D_MODEL, seq=5)
    return equivalent(ours(x), theirs(x), atol=1e-12)


@grouped_query_attention.check("A window of 2 lets each position see itself and the one before.")
def window(candidate: Candidate) -> Evidence:
    ours, _ = _pair(candidate, window=2)
    x = sequences(_D_MODEL, seq=6)
    parts = [ours(x[:, i : i + 2])[:, 1:] for i in range(5)]
    return equivalent(ours(x)[:, 1:], torch.cat(parts, dim=1), atol=1e-12)


@grouped_query_attention.check(
    "In steps of 3, 2 and 1 with a cache of keys and values, the values are the same.",
    kind="contract",
)
def cache(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    x = sequences(_D_MODEL, seq=6)
    own = in_own_steps(ours, x, "cache")
    return own or equivalent(_in_steps(ours, x, [3, 2, 1]), theirs(x), atol=1e-12)


@grouped_query_attention.check("So they are with positions.", kind="contract")
def cache_with_positions(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate, positions=transformer_layers.RotaryPositions(_D_K))
    theirs.positions = ComplexRotation(_D_K)
    x = sequences(_D_MODEL, seq=6)
    return equivalent(_in_steps(ours, x, [3, 2, 1]), theirs(x), atol=1e-12)


@grouped_query_attention.check(
    "So they are in a window, and where the beginning of a sequence is padding.", kind="contract"
)
def cache_with_window_and_padding(candidate: Candidate) -> Evidence:
    positions = transformer_layers.RotaryPositions(_D_K)
    x = sequences(_D_MODEL, 2, 6)
    windowed, _ = _pair(candidate, positions=positions, window=3)
    equivalent(_in_steps(windowed, x, [4, 1, 1]), windowed(x), atol=1e-12)
    ours, theirs = _pair(candidate, positions=positions)
    theirs.positions = ComplexRotation(_D_K)
    padded = _in_steps(ours, x, [4, 1, 1], padding=torch.tensor([0, 2]))
    equivalent(padded[0], theirs(x[:1])[0], atol=1e-12)
    return equivalent(padded[1, 2:], theirs(x[1:, 2:])[0], atol=1e-12)


@grouped_query_attention.check(
    "Where it takes a `head_norm`, each head of queries and keys is normed, and then turned."
)
def norms_of_heads(candidate: Candidate) -> Evidence:
    if not takes(candidate, "head_norm"):
        return holds(True, "it takes no head_norm")
    theirs = TorchGroupedQueryAttention(*_SIZES, _D_K, ComplexRotation(_D_K), norm=UnevenRMSNorm)
    positions = transformer_layers.RotaryPositions(_D_K)
    options: dict[str, Any] = {"d_k": _D_K, "positions": positions, "head_norm": UnevenRMSNorm}
    ours = with_weights_of(theirs, candidate, *_SIZES, **options)
    x = sequences(_D_MODEL, seq=5)
    return equivalent(ours(x), theirs(x), atol=1e-12)


@grouped_query_attention.check(
    "Heads of keys that do not divide those of queries are refused.", kind="contract"
)
def uneven_heads(candidate: Candidate) -> Evidence:
    raises(ValueError, candidate, 12, 6, 4)
    return holds(True, "num_heads=6, num_kv_heads=4 raises ValueError")


@grouped_query_attention.check("The weights start as those of `torch.nn.Linear`.", kind="start")
def initial_values(candidate: Candidate) -> Evidence:
    expected = transformer_layers.GroupedQueryAttention(64, 4, 2)
    return starts_as(built(candidate, 64, 4, 2), expected)


def _stepping(candidate: Candidate, seq: int) -> Stepping:
    ours, theirs = _pair(candidate, positions=transformer_layers.RotaryPositions(_D_K))
    theirs.positions = ComplexRotation(_D_K)
    return Stepping(
        step=lambda part, cache: ours(part, cache=cache),
        whole=theirs,
        cache=lambda seq: KeyValueCache(2, _KV_HEADS, seq, _D_K, dtype=torch.float64),
        inputs=lambda seq: sequences(_D_MODEL, seq=seq),
    )


def _wide(candidate: Candidate, d_model: int) -> Case:
    inputs, std = (sequences(d_model),), d_model**-0.5  # scores of size 1: no weight is all
    theirs = TorchGroupedQueryAttention(d_model, 2, 1, 4, std=std)
    try:
        ours = with_weights_of(theirs, candidate, d_model, 2, 1, d_k=4)
    except CannotTakeError as error:
        if error.argument != "d_k":
            raise
        theirs = TorchGroupedQueryAttention(d_model, 2, 1, d_model // 2, std=std)
        ours = with_weights_of(theirs, candidate, d_model, 2, 1)
    return ours, _as_it_turns(candidate, ours, theirs), inputs


def _narrow(candidate: Candidate) -> tuple[nn.Module, nn.Module, tuple[Tensor]]:
    _, other = _pair(candidate)
    d_k = 1 if other.positions is None else 2  # an angle is one of two features
    theirs = TorchGroupedQueryAttention(d_k, 1, 1, d_k)
    ours = with_weights_of(theirs, candidate, d_k, 1, 1)
    return ours, _as_it_turns(candidate, ours, theirs), (sequences(d_k),)


probe(
    grouped_query_attention,
    Probing(
        pair=_pair,
        inputs=lambda batch, seq: (sequences(_D_MODEL, batch, seq),),
        sizes=(12, 6, 2),
        narrow=_narrow,
        wide=_wide,
        stepping=_stepping,
        drawn=lambda candidate: list(weights_of(built(candidate, 12, 6, 2)).values()),
        scales=(1e-6, 1.0, 80.0),
        makes=lambda candidate: (built(candidate, 12, 6, 2), (sequences(12).float(),)),
    ),
)
