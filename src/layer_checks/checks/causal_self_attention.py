"""The checks of `CausalSelfAttention`, against `torch.nn.functional`."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

import transformer_layers
from layer_checks.checks.conv1d import TransposedLinear
from layer_checks.evidence.evidence import Evidence, equivalent, holds, raises
from layer_checks.kit.candidates import (
    built,
    has_parameters,
    outputs_and_gradients,
    same,
    weights_of,
)
from layer_checks.kit.definitions import Candidate, Layer, Layout
from layer_checks.kit.dropping import (
    elements_dropped,
    independent,
    one_of,
    parts_dropped,
    seen_in_training,
)
from layer_checks.kit.initial import starts_as
from layer_checks.kit.oracles import (
    agreeing_gradients,
    future_changes_nothing,
    sequences,
    with_weights_of,
)
from layer_checks.kit.own_calls import in_own_steps
from layer_checks.kit.probes import DROPPED, Probing, Stepping, probe
from layer_checks.kit.weight_maps import same_names
from transformer_layers import KeyValueCache

# d_k = 5: a scale by the root of another axis would differ. 2 sequences of 4.
_D_MODEL, _NUM_HEADS = 15, 3
# As they are published.
WEIGHTS = ("c_attn.weight", "c_attn.bias", "c_proj.weight", "c_proj.bias")


class TorchCausalSelfAttention(nn.Module):
    """torch's linear layer and its attention kernel, on weights held as (in, out)."""

    def __init__(self, d_model: int, num_heads: int, std: float = 0.2) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.c_attn = TransposedLinear(d_model, 3 * d_model, std)
        self.c_proj = TransposedLinear(d_model, d_model, std)

    def forward(self, x: Tensor) -> Tensor:
        """Attends from each position to itself and those before it."""
        parts = self.c_attn(x).chunk(3, dim=-1)
        query, key, value = (
            each.unflatten(-1, (self.num_heads, -1)).transpose(-3, -2) for each in parts
        )
        heads = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.c_proj(heads.transpose(-3, -2).flatten(-2))


def in_steps(ours: nn.Module, x: Tensor, num_heads: int, lengths: list[int]) -> list[Tensor]:
    """The outputs for parts of two sequences, one after the other, with a cache."""
    seq, d_model = x.shape[-2:]
    cache = KeyValueCache(2, num_heads, seq, d_model // num_heads, dtype=torch.float64)
    # Contiguous, as a single new position is in use.
    return [ours(part.contiguous(), cache=cache) for part in x.split(lengths, dim=1)]


def steps_equal_the_whole(
    ours: nn.Module, theirs: nn.Module, x: Tensor, num_heads: int
) -> Evidence:
    """Holds steps of 3, 2 and 1 positions with a cache against all six at once."""
    steps = in_steps(ours, x, num_heads, [3, 2, 1])
    return equivalent(torch.cat(steps, dim=1), theirs(x), atol=1e-12)


def _pair(
    candidate: Candidate, dropout: float = 0.0, std: float = 0.2
) -> tuple[nn.Module, TorchCausalSelfAttention]:
    theirs = TorchCausalSelfAttention(_D_MODEL, _NUM_HEADS, std)
    return with_weights_of(theirs, candidate, _D_MODEL, _NUM_HEADS, dropout=dropout), theirs


def _example(candidate: Candidate) -> object:
    return built(candidate, _D_MODEL, _NUM_HEADS), built(candidate, 15, 3, dropout=0.5)


def _probe(candidate: Candidate) -> Iterator[Tensor]:
    ours, theirs = _pair(candidate)
    x = sequences(_D_MODEL)
    yield torch.tensor(len(ours.state_dict()))
    yield from outputs_and_gradients(ours, weights_of(theirs), x)
    dropping, _ = _pair(candidate, dropout=0.3)
    yield from seen_in_training(dropping, sequences(_D_MODEL, batch=100))
    for step in in_steps(ours, x, _NUM_HEADS, [2, 2]):
        yield step.detach()


def _small_weights(candidate: Candidate, atol: float) -> Evidence:
    ours, theirs = _pair(candidate, std=0.02)
    x = sequences(_D_MODEL)
    return equivalent(ours(x), theirs(x), atol=atol)


causal_self_attention = Layer(
    "CausalSelfAttention",
    "CausalSelfAttention(d_model, num_heads, dropout=0.1)",
    example=_example,
    probe=_probe,
    layout=Layout(
        in_out=frozenset({"c_attn", "c_proj"}), packed={"c_attn": ("query", "key", "value")}
    ),
    weight_maps={"transformers.GPT2Attention": same_names(*WEIGHTS)},
)


@causal_self_attention.check("The output has the shape of the input.", weak=True)
def output_shape(candidate: Candidate) -> Evidence:
    x = torch.randn(2, 5, _D_MODEL)
    return same(tuple(built(candidate, _D_MODEL, _NUM_HEADS)(x).shape), tuple(x.shape))


@causal_self_attention.check(
    "Where all values are the same, all outputs are: the weights sum to 1.", weak=True
)
def equal_values(candidate: Candidate) -> Evidence:
    theirs = TorchCausalSelfAttention(_D_MODEL, _NUM_HEADS)
    with torch.no_grad():
        theirs.c_attn.weight[:, -_D_MODEL:] = 0.0
    ours = with_weights_of(theirs, candidate, _D_MODEL, _NUM_HEADS, dropout=0.0)
    output = ours(sequences(_D_MODEL))
    return equivalent(output, output[:, :1].expand_as(output), atol=1e-12)


@causal_self_attention.check(
    "With weights of standard deviation 0.02 the values are torch's, up to 0.001.",
    name="small weights, atol 1e-3",
    weak=True,
)
def small_weights_atol_1e_3(candidate: Candidate) -> Evidence:
    return _small_weights(candidate, 1e-3)


@causal_self_attention.check(
    "So they are up to 0.00001.", name="small weights, atol 1e-5", weak=True
)
def small_weights_atol_1e_5(candidate: Candidate) -> Evidence:
    return _small_weights(candidate, 1e-5)


@causal_self_attention.check(
    "The state dict has the weights and biases of c_attn and c_proj, and nothing else.",
    kind="contract",
)
def state(candidate: Candidate) -> Evidence:
    layer = built(candidate, _D_MODEL, _NUM_HEADS)
    same(list(layer.state_dict()), ["c_attn.weight", "c_attn.bias", "c_proj.weight", "c_proj.bias"])
    return has_parameters(
        layer,
        c_attn__weight=(_D_MODEL, 3 * _D_MODEL),
        c_attn__bias=(3 * _D_MODEL,),
        c_proj__weight=(_D_MODEL, _D_MODEL),
        c_proj__bias=(_D_MODEL,),
    )


@causal_self_attention.check(
    "With weights of standard deviation 0.2 the values in float64 are torch's."
)
def values(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    x = sequences(_D_MODEL)
    return equivalent(ours(x), theirs(x), atol=1e-12)


@causal_self_attention.check("So are the gradients of the input and the weights.")
def gradients(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    return agreeing_gradients(ours, theirs, sequences(_D_MODEL))


@causal_self_attention.check("Changing positions 4 and 5 of 6 does not move 0 to 3.")
def future(candidate: Candidate) -> Evidence:
    ours, _ = _pair(candidate)
    return future_changes_nothing(ours, _D_MODEL, atol=0.0)


@causal_self_attention.check(
    "The values are torch's where each position's score with itself is far below -10,000."
)
def large_scores(candidate: Candidate) -> Evidence:
    theirs = TorchCausalSelfAttention(_D_MODEL, _NUM_HEADS)
    with torch.no_grad():  # key = -query: each position's score with itself is far below -10,000
        query, key, _ = theirs.c_attn.weight.chunk(3, dim=-1)
        key.copy_(-query)
        theirs.c_attn.bias[: 2 * _D_MODEL] = 0.0
    ours = with_weights_of(theirs, candidate, _D_MODEL, _NUM_HEADS, dropout=0.0)
    x = 1000 * sequences(_D_MODEL)
    return equivalent(ours(x), theirs(x), rtol=1e-9)


@causal_self_attention.check("The first position gives what a sequence of one gives.")
def first_position(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    x = sequences(_D_MODEL)
    return equivalent(ours(x)[:, :1], theirs(x[:, :1]), atol=1e-12)


@causal_self_attention.check(
    "In steps of 3, 2 and 1 with a cache of keys and values, the values are the same.",
    kind="contract",
)
def cache(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    x = sequences(_D_MODEL, seq=6)
    return in_own_steps(ours, x, "cache") or steps_equal_the_whole(ours, theirs, x, _NUM_HEADS)


@causal_self_attention.check("In evaluation nothing is dropped.")
def evaluation(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate, dropout=0.5)
    x = sequences(_D_MODEL)
    return equivalent(ours.eval()(x), theirs(x), atol=1e-12)


# Where something is dropped is the contract's: others leave out the one or the other.
@causal_self_attention.check(
    "In training a share of the result is 0, each element by itself.", kind="contract"
)
def dropped_result(candidate: Candidate) -> Evidence:
    ours, _ = _pair(candidate, dropout=0.25)
    dropped = ours(sequences(_D_MODEL, batch=50, seq=4)) == 0
    independent(dropped, 0.25)
    return equivalent(dropped.double().mean(), 0.25, atol=0.05)  # six standard deviations


@causal_self_attention.check("In training weights are dropped too.", kind="contract")
def dropped_weights(candidate: Candidate) -> Evidence:
    # What survives the dropout of the result is divided by 0.75, and twice alike only if the
    # weights were not dropped.
    ours, _ = _pair(candidate, dropout=0.25)
    x = sequences(_D_MODEL, batch=5)
    first, second = ours(x), ours(x)
    both = (first != 0) & (second != 0)
    return holds(
        not torch.equal(first[both], second[both]), "what two calls both keep differs between them"
    )


@causal_self_attention.check("A width that the heads do not divide is refused.", kind="contract")
def uneven_heads(candidate: Candidate) -> Evidence:
    raises(ValueError, candidate, 10, 3)
    return holds(True, "d_model=10, num_heads=3 raises ValueError")


@causal_self_attention.check("A sequence without a batch axis gives its own row.", kind="contract")
def one_sequence(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    x = sequences(_D_MODEL)
    return equivalent(ours(x[0]), theirs(x)[0], atol=1e-12)


@causal_self_attention.check(
    "At a single position each head is dropped, and each element of the result: once, with "
    "probability 0.25, and divided by 0.75 where it is not.",
    kind="contract",
)
def dropped_once(candidate: Candidate) -> Evidence:
    theirs = TorchCausalSelfAttention(6, 2)
    ours = with_weights_of(theirs, candidate, 6, 2, dropout=0.25)
    x = sequences(6, batch=100, seq=1)
    heads = theirs.c_attn(x)[..., 12:].split(3, dim=-1)
    rows = theirs.c_proj.weight.split(3)
    parts = [head @ each for head, each in zip(heads, rows, strict=True)]
    results, dropped = parts_dropped(parts, theirs.c_proj.bias, p=0.25)
    possible, dropped_elements = elements_dropped(results, p=0.25)
    both = torch.cat(
        (
            dropped_elements.repeat_interleave(len(dropped), dim=0),
            dropped.repeat(len(dropped_elements), 1),
        ),
        dim=1,
    )
    return one_of(ours.train()(x), possible.flatten(0, 1), both, p=0.25)


@causal_self_attention.check(
    "Weights start with standard deviation 0.02, biases from zeros.", kind="start"
)
def initial_values(candidate: Candidate) -> Evidence:
    return starts_as(built(candidate, 64, 4), transformer_layers.CausalSelfAttention(64, 4))


def _drawn(candidate: Candidate) -> list[Tensor]:
    layer = built(candidate, _D_MODEL, _NUM_HEADS, dropout=0.5)
    return [*weights_of(layer).values(), layer(sequences(_D_MODEL).float())]


def stepping(ours: nn.Module, theirs: nn.Module, d_model: int, num_heads: int) -> Stepping:
    """How what takes one cache goes on."""
    return Stepping(
        step=lambda part, cache: ours(part, cache=cache),
        whole=theirs,
        cache=lambda seq: KeyValueCache(
            2, num_heads, seq, d_model // num_heads, dtype=torch.float64
        ),
        inputs=lambda seq: sequences(d_model, seq=seq),
    )


def _narrow(candidate: Candidate) -> tuple[nn.Module, nn.Module, tuple[Tensor]]:
    theirs = TorchCausalSelfAttention(1, 1)
    return with_weights_of(theirs, candidate, 1, 1, dropout=0.0), theirs, (sequences(1),)


probe(
    causal_self_attention,
    Probing(
        pair=_pair,
        inputs=lambda batch, seq: (sequences(_D_MODEL, batch, seq),),
        sizes=(_D_MODEL, _NUM_HEADS),
        defaults={"dropout": 0.1},
        narrow=_narrow,
        drawn=_drawn,
        dropping=lambda candidate: (_pair(candidate, DROPPED)[0], (sequences(_D_MODEL),)),
        stepping=lambda candidate, seq: stepping(*_pair(candidate), _D_MODEL, _NUM_HEADS),
        makes=lambda candidate: (
            built(candidate, _D_MODEL, _NUM_HEADS),
            (sequences(_D_MODEL).float(),),
        ),
    ),
)
