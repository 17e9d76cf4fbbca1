"""The checks of `Llama`, against `torch.nn`, torch's kernel and rotations of complex numbers."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from layer_checks.checks.gated import TorchGatedFeedForward
from layer_checks.checks.grouped import TorchGroupedQueryAttention
from layer_checks.checks.rotary import ComplexRotation, nearest, rotations
from layer_checks.evidence.evidence import Evidence, equivalent, holds, raises
from layer_checks.evidence.randomness import seeded
from layer_checks.kit.candidates import (
    built,
    deep_copy,
    outputs_and_gradients,
    randomized,
    same,
    weights_of,
)
from layer_checks.kit.definitions import Candidate, Layer, Layout
from layer_checks.kit.oracles import (
    absent_now,
    agreeing_gradients,
    held_to_what_it_reads,
    require_read,
    same_state,
    set_eps,
    with_weights_of,
)
from layer_checks.kit.own_calls import in_own_steps, padded, under_padding
from layer_checks.kit.probes import Probing, Stepping, probe
from layer_checks.kit.stages import equal_in_steps
from transformer_layers import KeyValueCache, LlamaConfig

# Heads of 4 features, two of queries for each of keys; a base and an eps that are no defaults.
_VOCAB_SIZE, _HIDDEN, _FF, _LAYERS, _HEADS, _KV_HEADS, _D_K = 11, 16, 10, 2, 4, 2, 4
_POSITIONS, _EPS, _BASE = 16, 1e-2, 100.0
_HEAD = "lm_head.weight"
_ATOL = 1e-5  # angles are float32 in many right models, whatever the weights are


class TorchLlamaBlock(nn.Module):
    """Torch's norms around attention and feed-forward layer."""

    def __init__(
        self, attention: nn.Module, feed_forward: nn.Module, size: int, eps: float
    ) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(size, eps, dtype=torch.float64)
        self.self_attn = attention
        self.post_attention_layernorm = nn.RMSNorm(size, eps, dtype=torch.float64)
        self.mlp = feed_forward

    def forward(self, x: Tensor) -> Tensor:
        """Attends, then maps each position."""
        x = x + self.self_attn(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


def _block_of(config: LlamaConfig) -> TorchLlamaBlock:
    size = config.hidden_size
    heads = config.num_attention_heads, config.kv_heads, config.d_k
    rotation = ComplexRotation(config.d_k, config.rope_theta)
    attention = TorchGroupedQueryAttention(size, *heads, rotation)
    feed_forward = TorchGatedFeedForward(size, config.intermediate_size, std=0.3)
    return TorchLlamaBlock(attention, feed_forward, size, config.rms_norm_eps)


class _Stack(nn.Module):
    """Embedding, blocks and last norm, under the published names."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        size, eps = config.hidden_size, config.rms_norm_eps
        self.embed_tokens = nn.Embedding(config.vocab_size, size, dtype=torch.float64)
        blocks = [_block_of(config) for _ in range(config.num_hidden_layers)]
        self.layers = nn.Sequential(*blocks)
        self.norm = nn.RMSNorm(size, eps, dtype=torch.float64)

    def forward(self, ids: Tensor) -> Tensor:
        """What the last norm gives."""
        return self.norm(self.layers(self.embed_tokens(ids)))


class TorchLlama(nn.Module):
    """Torch's embedding, norms, linear layers and attention kernel."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.model = _Stack(config)
        self.lm_head: nn.Linear | None = None
        if not config.tie_word_embeddings:
            sizes = config.hidden_size, config.vocab_size
            self.lm_head = nn.Linear(*sizes, bias=False, dtype=torch.float64)

    def forward(self, ids: Tensor) -> Tensor:
        """The logits of what follows each position."""
        head = self.model.embed_tokens if self.lm_head is None else self.lm_head
        return functional.linear(self.model(ids), head.weight)

    def loss(self, ids: Tensor) -> Tensor:
        """The cross-entropy of each next token."""
        logits = self(ids)[..., :-1, :]
        return functional.cross_entropy(logits.flatten(0, -2), ids[..., 1:].flatten())


@torch.no_grad()
def turn_as(ours: nn.Module, theirs: nn.Module, x: Tensor, d_k: int, base: float) -> bool:
    """Gives an oracle the rotation that a candidate has, in its precision and layout.

    Args:
        ours: The candidate.
        theirs: The oracle, with the same weights.
        x: An input of both.
        d_k: Features of a head.
        base: Of the frequencies.

    Returns:
        Whether the candidate gives what can be compared.
    """
    attentions = [each for each in theirs.modules() if isinstance(each, TorchGroupedQueryAttention)]
    found = deep_copy(ours)(x)  # what a first call changes, the checks have to see
    if not isinstance(found, Tensor) or found.shape != theirs(x).shape:
        return False

    def turn(rotation: ComplexRotation) -> None:
        for each in attentions:
            each.positions = rotation

    def distance(rotation: ComplexRotation) -> float:
        turn(rotation)
        return float((theirs(x) - found).abs().max())

    published = any(name.endswith("q_proj.weight") for name in ours.state_dict())
    layouts = (False,) if published else (False, True)  # Meta's weights turn neighbours
    turn(nearest(rotations(d_k, base, layouts), distance))
    return True


def _config(**changed: Any) -> LlamaConfig:
    options = {
        "vocab_size": _VOCAB_SIZE,
        "hidden_size": _HIDDEN,
        "intermediate_size": _FF,
        "num_hidden_layers": _LAYERS,
        "num_attention_heads": _HEADS,
        "num_key_value_heads": _KV_HEADS,
        "max_position_embeddings": _POSITIONS,
        "rms_norm_eps": _EPS,
        "rope_theta": _BASE,
    }
    return LlamaConfig(**options | changed)


@cache  # a module takes as long to build as to run
def _oracle() -> TorchLlama:
    with seeded(0):  # leaves the caller's draws as they are
        return TorchLlama(_config())


def _pair(candidate: Candidate, **changed: Any) -> tuple[Any, TorchLlama]:
    """A candidate, and an oracle whose angles have its precision."""
    tied = _HEAD in absent_now()
    changed |= {"tie_word_embeddings": True} if tied else {}
    config = _config(**changed)
    theirs = randomized(TorchLlama(config) if changed else _oracle())
    set_eps(theirs, config.rms_norm_eps)  # the oracle is that of another candidate, too
    ours = with_weights_of(theirs, candidate, config)
    if config.tie_word_embeddings and not tied:
        require_read(ours, "tie_word_embeddings")
    with torch.no_grad(), seeded(0):
        ids = _ids(1, 4)
        if turn_as(ours, theirs, ids, config.d_k, config.rope_theta):
            held_to_what_it_reads(ours, theirs, ids)
    return ours, theirs


def _ids(batch: int = 2, seq: int = 5) -> Tensor:
    return torch.randint(_VOCAB_SIZE, (batch, seq))


def _caches(seq: int = _POSITIONS, blocks: int = _LAYERS) -> list[KeyValueCache]:
    return [KeyValueCache(2, _KV_HEADS, seq, _D_K, dtype=torch.float64) for _ in range(blocks)]


def _of_one_block(candidate: Candidate, positions: int) -> tuple[Any, TorchLlama]:
    """For more positions than the others."""
    return _pair(candidate, num_hidden_layers=1, max_position_embeddings=positions)


def _stepping(candidate: Candidate, seq: int) -> Stepping:
    ours, theirs = _of_one_block(candidate, seq)
    return Stepping(
        step=lambda part, cache: ours(part, caches=cache),
        whole=theirs,
        cache=lambda seq: _caches(seq, blocks=1),
        inputs=lambda seq: _ids(seq=seq),
    )


def _probe(candidate: Candidate) -> Iterator[Tensor]:
    ours, theirs = _pair(candidate)
    ids = _ids()
    yield torch.tensor(len(ours.state_dict()))
    yield from outputs_and_gradients(ours, weights_of(theirs), ids)
    yield from padded(ours, ids)
    yield ours.loss(ids).detach()
    caches = _caches()
    for part in ids.split([3, 2], dim=1):
        yield ours(part, caches=caches).detach()
    tied, _ = _pair(candidate, tie_word_embeddings=True)
    yield tied(ids).detach()


llama = Layer(
    "Llama",
    "Llama(config)(ids), with .loss(ids)",
    example=lambda candidate: built(candidate, _config())(_ids()),
    probe=_probe,
    leading=None,  # its inputs are tokens
    by_name={"caches"},  # others' are of other classes
    layout=Layout(optional=frozenset({_HEAD})),
    words={
        "embed_tokens": ("tok", "token", "wte", "emb", "embed", "embedding", "embeddings"),
        "post_attention_layernorm": ("ffn", "mlp", "ff", "post", "feedforward", "2"),
        "input_layernorm": ("attn", "attention", "input", "pre", "1"),
        "gate_proj": ("gate", "w1"),
        "up_proj": ("up", "w3"),
        "down_proj": ("down", "w2"),
        "lm_head": ("head", "lm", "unembed"),
    },
)


@llama.check("The logits have the shape of the ids and an axis for the vocabulary.", weak=True)
def output_shape(candidate: Candidate) -> Evidence:
    ids = _ids()
    return same(tuple(built(candidate, _config())(ids).shape), (*ids.shape, _VOCAB_SIZE))


@llama.check("There are as many parameters as the sizes ask for.", weak=True)
def number_of_parameters(candidate: Candidate) -> Evidence:
    count = sum(each.numel() for each in built(candidate, _config()).parameters())
    return same(count, sum(each.numel() for each in _oracle().parameters()))


@llama.check(
    "The state dict has the names and shapes of the published weights, and no tables of angles.",
    kind="contract",
)
def state(candidate: Candidate) -> Evidence:
    return same_state(built(candidate, _config()), _oracle())


@llama.check(
    "With rope_theta = 100, rms_norm_eps = 0.01 and random weights the logits in float64 are "
    "torch's, up to the rounding of angles in float32."
)
def values(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    ids = _ids()
    return equivalent(ours(ids), theirs(ids), atol=_ATOL)


@llama.check("So are the gradients of all weights.")
def gradients(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    return agreeing_gradients(ours, theirs, _ids(), atol=10 * _ATOL)


@llama.check("So are the logits where the head is the token embedding.")
def tied_head(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate, tie_word_embeddings=True)
    ids = _ids()
    return equivalent(ours(ids), theirs(ids), atol=_ATOL)


@llama.check("So are they with as many heads of keys as of queries.")
def as_many_heads(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate, num_key_value_heads=_HEADS)
    ids = _ids()
    return equivalent(ours(ids), theirs(ids), atol=_ATOL)


@llama.check("The loss is that of each next token.")
def loss(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    ids = _ids()
    return equivalent(ours.loss(ids), theirs.loss(ids), atol=_ATOL)


@llama.check("Changing tokens 4 and 5 of 6 does not move the logits at 0 to 3.")
def future(candidate: Candidate) -> Evidence:
    ours, _ = _pair(candidate)
    ids = _ids(seq=6)
    changed = ids.clone()
    changed[:, 4:] = (ids[:, 4:] + 3) % _VOCAB_SIZE
    return equivalent(ours(changed)[:, :4], ours(ids)[:, :4], atol=1e-13)


@llama.check(
    "In steps of 3, 2 and 1 with caches of keys and values, the logits are the same.",
    kind="contract",
)
def caches(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    ids = _ids(seq=6)
    if (own := in_own_steps(ours, ids, "caches", atol=_ATOL)) is not None:
        return own
    caches, sizes = _caches(), (3, 2, 1)
    steps = torch.cat([ours(part, caches=caches) for part in ids.split(sizes, dim=1)], dim=1)
    return equal_in_steps(steps, theirs(ids), sizes, atol=_ATOL)


@llama.check(
    "A mask that hides nothing changes nothing; where it hides two tokens at an end of a text, the "
    "logits of the others are those of that text alone.",
    kind="contract",
)
def padding(candidate: Candidate) -> Evidence:
    ours, _ = _pair(candidate)
    return under_padding(ours, _ids(), _ATOL)


@llama.check("An id that is not in the vocabulary is refused.", kind="contract")
def unknown_ids(candidate: Candidate) -> Evidence:
    model = built(candidate, _config())
    for wrong in (_VOCAB_SIZE, -1):
        raises((ValueError, IndexError), model, torch.tensor([[0, wrong]]))
    return holds(True, f"{_VOCAB_SIZE} or -1 among the ids raises an error")


@llama.check("Matrices start with standard deviation 0.02, gains from ones.", kind="start")
def initial_values(candidate: Candidate) -> Evidence:
    found = weights_of(built(candidate, LlamaConfig(90, 32, 48, 2, 4, 2)))
    matrices = {name: each for name, each in found.items() if each.ndim == 2}
    # The fewest numbers are 512: a deviation that is off by six standard errors.
    wrong = [name for name, each in matrices.items() if abs(each.std() / 0.02 - 1) > 0.19]
    wrong += [name for name, each in found.items() if each.ndim == 1 and bool((each != 1).any())]
    if wrong or not matrices:
        raise AssertionError(f"not equal: {', '.join(wrong) or 'no matrices'} against 0.02 and 1")
    return holds(True, f"{len(matrices)} matrices of standard deviation 0.02, gains of ones")


probe(
    llama,
    Probing(
        pair=_pair,
        inputs=lambda batch, seq: (_ids(batch, seq),),
        sizes=(_config(),),
        large=lambda candidate, seq: [(*_of_one_block(candidate, seq), (_ids(1, seq),))],
        drawn=lambda candidate: list(weights_of(built(candidate, _config())).values()),
        stepping=_stepping,
        makes=lambda candidate: (built(candidate, _config()), (_ids(),)),
        scales=(),
        rounding=2e-7,
    ),
)
