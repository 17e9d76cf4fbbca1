"""The checks of `MultiHeadLatentAttention`, against keys and values that are made for all heads."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

import transformer_layers
from layer_checks.checks.rotary import ComplexRotation, nearest, rotations
from layer_checks.evidence.evidence import Evidence, equivalent, holds, raises
from layer_checks.evidence.randomness import seeded
from layer_checks.kit.arguments import CannotTakeError
from layer_checks.kit.candidates import (
    built,
    current_match,
    deep_copy,
    has_parameters,
    load,
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
from layer_checks.kit.probes import Case, Probing, Stepping, probe
from transformer_layers import LatentCache

# No two of them are alike, nor is 10 / 3 any of them.
_D_MODEL, _HEADS, _KV_RANK, _D_NOPE, _D_ROPE, _D_V, _Q_RANK = 10, 3, 8, 4, 6, 7, 5
_SIZES = (_D_MODEL, _HEADS, _KV_RANK, _D_NOPE, _D_ROPE, _D_V, _Q_RANK)
_SMALL = (12, 2, 5, 3, 4, 3)


class TorchLatentAttention(nn.Module):
    """Keys and values of all heads, whole, and one softmax over all the scores."""

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        kv_rank: int,
        d_nope: int,
        d_rope: int,
        d_v: int,
        q_rank: int | None = None,
        *,
        std: float = 0.5,
    ) -> None:
        super().__init__()
        self.num_heads, self.sizes = num_heads, (kv_rank, d_nope, d_rope, d_v)
        self.scale = (d_nope + d_rope) ** -0.5
        self.rotation = ComplexRotation(d_rope, neighbours=True)

        def linear(d_in: int, d_out: int) -> nn.Linear:
            return randomized(nn.Linear(d_in, d_out, bias=False), std).double()

        def norm(size: int) -> nn.RMSNorm:
            made = nn.RMSNorm(size, eps=1e-6).double()
            nn.init.uniform_(made.weight, 0.5, 1.5)
            return made

        wide = num_heads * (d_nope + d_rope)
        if q_rank is None:
            self.q_proj = linear(d_model, wide)
        else:
            self.q_a_proj, self.q_a_layernorm = linear(d_model, q_rank), norm(q_rank)
            self.q_b_proj = linear(q_rank, wide)
        self.kv_a_proj_with_mqa = linear(d_model, kv_rank + d_rope)
        self.kv_a_layernorm = norm(kv_rank)
        self.kv_b_proj = linear(kv_rank, num_heads * (d_nope + d_v))
        self.o_proj = linear(num_heads * d_v, d_model)

    def forward(self, x: Tensor) -> Tensor:
        """Attends from each position to itself and those before it."""
        kv_rank, d_nope, d_rope, d_v = self.sizes
        if hasattr(self, "q_proj"):
            query = self.q_proj(x)
        else:
            query = self.q_b_proj(self.q_a_layernorm(self.q_a_proj(x)))
        query = query.unflatten(-1, (self.num_heads, d_nope + d_rope)).transpose(-3, -2)
        latent, turned = self.kv_a_proj_with_mqa(x).split([kv_rank, d_rope], dim=-1)
        made = self.kv_b_proj(self.kv_a_layernorm(latent))
        made = made.unflatten(-1, (self.num_heads, d_nope + d_v)).transpose(-3, -2)
        scores = query[..., :d_nope] @ made[..., :d_nope].mT
        turned = self.rotation(turned).to(x.dtype)[..., None, :, :]
        scores = scores + self.rotation(query[..., d_nope:]).to(x.dtype) @ turned.mT
        later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        weights = (self.scale * scores).masked_fill(later, -torch.inf).softmax(dim=-1)
        return self.o_proj((weights @ made[..., d_nope:]).transpose(-3, -2).flatten(-2))


def _as_it_turns(
    ours: nn.Module, theirs: TorchLatentAttention, candidate: Candidate
) -> TorchLatentAttention:
    """The oracle with the pairs, and the rounding of angles, of a layer that takes no positions."""
    if takes(candidate, "positions"):
        return theirs
    with torch.no_grad(), seeded(0):
        x = sequences(theirs.o_proj.out_features, seq=3)
        found = deep_copy(ours)(x)

        def distance(rotation: ComplexRotation) -> float:
            theirs.rotation = rotation
            return float((theirs(x) - found).abs().max())

        theirs.rotation = nearest(rotations(theirs.sizes[2]), distance)
    return theirs


def _pair(
    candidate: Candidate, *sizes: int, std: float = 0.5, **options: Any
) -> tuple[nn.Module, TorchLatentAttention]:
    sizes = sizes or _SIZES
    theirs = TorchLatentAttention(*sizes, std=std)
    try:
        ours = with_weights_of(theirs, candidate, *sizes, **options)
    except CannotTakeError as error:
        if error.argument != "q_rank":
            raise
        theirs = TorchLatentAttention(*sizes[:6], std=std)
        ours = with_weights_of(theirs, candidate, *sizes[:6], **options)
    return ours, _as_it_turns(ours, theirs, candidate)


def _small(candidate: Candidate) -> nn.Module:
    """Built without a rank of queries; with one, where each layer of a class has it."""
    try:
        return built(candidate, *_SMALL)
    except TypeError as error:
        try:
            return built(candidate, *_SMALL, 6)
        except Exception:
            raise error from None


def _in_steps(
    ours: nn.Module, x: Tensor, lengths: list[int], padding: Tensor | None = None
) -> Tensor:
    sizes = (x.shape[0], x.shape[1], _KV_RANK, _D_ROPE)
    cache = LatentCache(*sizes, padding=padding, dtype=torch.float64)
    return torch.cat([ours(part.contiguous(), cache=cache) for part in x.split(lengths, 1)], 1)


def _probe(candidate: Candidate) -> Iterator[Tensor]:
    ours, theirs = _pair(candidate)
    x = sequences(_D_MODEL, seq=5)
    yield torch.tensor([each.numel() for each in ours.parameters()])
    yield from outputs_and_gradients(ours, weights_of(theirs), x)
    yield _in_steps(ours, x, [3, 2]).detach()
    yield _in_steps(ours, x, [1, 1, 1, 1, 1]).detach()
    direct, _ = _pair(candidate, *_SIZES[:-1])
    yield direct(x).detach()
    scaled, _ = _pair(candidate, scale=0.7)
    yield scaled(x).detach()
    rotary = transformer_layers.RotaryPositions(_D_ROPE, base=30.0)
    yield _pair(candidate, positions=rotary)[0](x).detach()
    yield torch.tensor([each.numel() for each in built(candidate, *_SMALL[:-1]).parameters()])
    yield built(candidate, 12, 2, 5, 3, 3, 4)(torch.ones(1, 2, 12)).detach()


multi_head_latent_attention = Layer(
    "MultiHeadLatentAttention",
    "MultiHeadLatentAttention(d_model, num_heads, kv_rank, d_nope, d_rope, d_v=None, "
    "q_rank=None, positions=None)",
    example=lambda candidate: _small(candidate)(torch.randn(2, 3, 12)),
    probe=_probe,
    synonyms={
        "kv_rank": ("kv_lora_rank", "kv_latent_dim", "d_c", "latent_dim", "kv_latent_rank"),
        "q_rank": ("q_lora_rank", "q_latent_dim", "d_c_q", "q_latent_rank"),
        "d_nope": ("qk_nope_head_dim", "nope_head_dim", "head_dim", "d_head_nope"),
        "d_rope": ("qk_rope_head_dim", "rope_head_dim", "rope_dim", "d_head_rope"),
        "d_v": ("v_head_dim", "value_head_dim"),
        "scale": ("scaling", "softmax_scale"),
    },
    words={
        "q_a_proj": ("wq_a", "q_down", "q_down_proj", "w_dq", "linear_q_down_proj"),
        "q_a_layernorm": ("q_norm", "q_a_norm"),
        "q_b_proj": ("wq_b", "q_up", "q_up_proj", "w_uq", "linear_q_up_proj"),
        "kv_a_proj_with_mqa": ("wkv_a", "kv_down", "kv_down_proj", "kv_a_proj", "w_dkv"),
        "kv_a_layernorm": ("kv_norm", "kv_a_norm"),
        "kv_b_proj": ("wkv_b", "kv_up", "kv_up_proj", "w_ukv"),
    },
)


@multi_head_latent_attention.check("The output has the shape of the input.", weak=True)
def output_shape(candidate: Candidate) -> Evidence:
    x = torch.randn(2, 5, 12)
    return same(tuple(_small(candidate)(x).shape), tuple(x.shape))


@multi_head_latent_attention.check(
    "A single position gets its own value, whatever the scores are.", weak=True
)
def single_position(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    x = sequences(_D_MODEL, seq=1)
    return equivalent(ours(x), theirs(x), atol=1e-12)


@multi_head_latent_attention.check(
    "There are five weights of matrices and two of norms, one turned key for all heads, and no "
    "bias.",
    kind="contract",
)
def parameters(candidate: Candidate) -> Evidence:
    return has_parameters(
        built(candidate, *_SIZES),
        q_a_proj__weight=(_Q_RANK, _D_MODEL),
        q_a_layernorm__weight=(_Q_RANK,),
        q_b_proj__weight=(_HEADS * (_D_NOPE + _D_ROPE), _Q_RANK),
        kv_a_proj_with_mqa__weight=(_KV_RANK + _D_ROPE, _D_MODEL),
        kv_a_layernorm__weight=(_KV_RANK,),
        kv_b_proj__weight=(_HEADS * (_D_NOPE + _D_V), _KV_RANK),
        o_proj__weight=(_D_MODEL, _HEADS * _D_V),
    )


@multi_head_latent_attention.check(
    "With random weights and all sizes unlike the values in float64 are those of keys and values "
    "that are made for all heads."
)
def values(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    x = sequences(_D_MODEL, seq=5)
    return equivalent(ours(x), theirs(x), atol=1e-12)


@multi_head_latent_attention.check("So are the gradients of the input and the weights.")
def gradients(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    return agreeing_gradients(ours, theirs, sequences(_D_MODEL, seq=5))


@multi_head_latent_attention.check(
    "Without a rank of queries they are made of the input, and the values are the same."
)
def queries_of_the_input(candidate: Candidate) -> Evidence:
    if current_match() is not None and not hasattr(_pair(candidate)[1], "q_proj"):
        raise CannotTakeError("its weights are known by other names, with a q_rank", "q_rank")
    ours, theirs = _pair(candidate, *_SIZES[:-1])
    x = sequences(_D_MODEL, seq=5)
    return equivalent(ours(x), theirs(x), atol=1e-12)


@multi_head_latent_attention.check(
    "Latents have no size: with maps to them that are a thousand times as large the values are the "
    "same, up to what eps makes of it."
)
def latents_are_normed(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    x = sequences(_D_MODEL, seq=5)
    expected = ours(x).detach()
    with torch.no_grad():
        theirs.kv_a_proj_with_mqa.weight[:_KV_RANK].mul_(1e3)
        if hasattr(theirs, "q_a_proj"):
            theirs.q_a_proj.weight.mul_(1e3)
    return equivalent(load(ours, weights_of(theirs))(x), expected, atol=1e-4)


@multi_head_latent_attention.check("Changing positions 4 and 5 of 6 does not move 0 to 3.")
def future(candidate: Candidate) -> Evidence:
    ours, _ = _pair(candidate)
    return future_changes_nothing(ours, _D_MODEL, atol=0.0)


@multi_head_latent_attention.check(
    "Positions that are given turn the last part of queries and the key of all heads, and nothing "
    "else."
)
def positions(candidate: Candidate) -> Evidence:
    rotary = transformer_layers.RotaryPositions(_D_ROPE, base=30.0)
    ours, theirs = _pair(candidate, positions=rotary)
    theirs.rotation = ComplexRotation(_D_ROPE, base=30.0)
    x = sequences(_D_MODEL, seq=5)
    return equivalent(ours(x), theirs(x), atol=1e-12)


@multi_head_latent_attention.check(
    "Where it takes a `scale`, that is the factor of scores, in steps with a cache too."
)
def given_scale(candidate: Candidate) -> Evidence:
    if not takes(candidate, "scale"):
        return holds(True, "it takes no scale")
    ours, theirs = _pair(candidate, scale=0.7)
    theirs.scale = 0.7
    x = sequences(_D_MODEL, seq=6)
    equivalent(ours(x), theirs(x), atol=1e-12)
    return equivalent(_in_steps(ours, x, [4, 1, 1]), theirs(x), atol=1e-12)


@multi_head_latent_attention.check(
    "In steps of 3, 2 and 1 with a cache of latents, the values are the same.", kind="contract"
)
def cache(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    x = sequences(_D_MODEL, seq=6)
    return equivalent(_in_steps(ours, x, [3, 2, 1]), theirs(x), atol=1e-12)


@multi_head_latent_attention.check(
    "So they are one by one, where 64 positions are held before.", kind="contract"
)
def one_by_one(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    x = sequences(_D_MODEL, seq=67)
    with torch.no_grad():
        return equivalent(_in_steps(ours, x, [64, 1, 1, 1]), theirs(x), atol=1e-12)


@multi_head_latent_attention.check(
    "A value has as many features as the plain part of a key, unless it is told.", kind="start"
)
def width_of_values(candidate: Candidate) -> Evidence:
    d_model, heads, _, d_nope, *_ = _SMALL
    ours = built(candidate, *_SMALL[:-1])
    shapes = [tuple(each.shape) for each in ours.parameters()]
    return same((d_model, heads * d_nope) in shapes, True)


@multi_head_latent_attention.check(
    "An odd number of features that are to be turned is refused.", kind="contract"
)
def odd_width(candidate: Candidate) -> Evidence:
    raises(ValueError, candidate, 12, 2, 5, 3, 3, 4)
    return holds(True, "d_rope=3 raises ValueError")


@multi_head_latent_attention.check(
    "The weights start as those of `torch.nn.Linear`, and the gains of norms as 1.", kind="start"
)
def initial_values(candidate: Candidate) -> Evidence:
    sizes = (64, 4, 24, 16, 8, 20, 32)
    expected = transformer_layers.MultiHeadLatentAttention(*sizes)
    return starts_as(built(candidate, *sizes), expected)


def _stepping(candidate: Candidate, seq: int) -> Stepping:
    ours, theirs = _pair(candidate)
    return Stepping(
        step=lambda part, cache: ours(part, cache=cache),
        whole=theirs,
        cache=lambda seq: LatentCache(2, seq, _KV_RANK, _D_ROPE, dtype=torch.float64),
        inputs=lambda seq: sequences(_D_MODEL, seq=seq),
    )


def _wide(candidate: Candidate, d_model: int) -> Case:
    # Latents are normed, whatever they are made of; the turned keys are not.
    ours, theirs = _pair(candidate, d_model, 2, 5, 3, 2, 4, 3, std=d_model**-0.5)
    return ours, theirs, (sequences(d_model),)


probe(
    multi_head_latent_attention,
    Probing(
        pair=_pair,
        inputs=lambda batch, seq: (sequences(_D_MODEL, batch, seq),),
        sizes=_SIZES,
        narrow=lambda candidate: (*_pair(candidate, 1, 1, 1, 1, 2, 1, 1), (sequences(1),)),
        wide=_wide,
        stepping=_stepping,
        drawn=lambda candidate: list(weights_of(built(candidate, *_SIZES)).values()),
        scales=(1e-6, 1.0, 80.0),
        rounding=2 * torch.finfo(torch.float32).eps,  # angles that are computed in float32
        makes=lambda candidate: (_small(candidate), (sequences(12).float(),)),
    ),
)
