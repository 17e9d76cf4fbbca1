"""The checks of `GPT2Block`, against `torch.nn`."""

from collections.abc import Iterator
from functools import cache

import torch
from torch import Tensor, nn

import transformer_layers
from layer_checks.checks import causal_self_attention, feed_forward
from layer_checks.checks.causal_self_attention import (
    TorchCausalSelfAttention,
    in_steps,
    stepping,
    steps_equal_the_whole,
)
from layer_checks.checks.feed_forward import TorchFeedForward
from layer_checks.evidence.evidence import Evidence, equivalent
from layer_checks.evidence.randomness import seeded
from layer_checks.kit.candidates import (
    built,
    load,
    outputs_and_gradients,
    randomized,
    same,
    weights_of,
)
from layer_checks.kit.definitions import Candidate, Layer, Layout
from layer_checks.kit.dropping import elements_dropped, one_of, seen_in_training
from layer_checks.kit.initial import starts_as
from layer_checks.kit.oracles import (
    agreeing_gradients,
    future_changes_nothing,
    same_state,
    sequences,
    set_eps,
    with_weights_of,
)
from layer_checks.kit.probes import DROPPED, Probing, probe
from layer_checks.kit.weight_maps import same_names

# d_k = 5: a scale by the root of another axis would differ. 2 sequences of 4.
_D_MODEL, _NUM_HEADS = 15, 3
# As they are published.
WEIGHTS = (
    *("ln_1.weight", "ln_1.bias"),
    *(f"attn.{name}" for name in causal_self_attention.WEIGHTS),
    *("ln_2.weight", "ln_2.bias"),
    *(f"mlp.{name}" for name in feed_forward.WEIGHTS),
)
# Of the block and of the model.
LAYOUT = Layout(
    in_out=frozenset({"c_attn", "c_fc", "c_proj"}), packed={"c_attn": ("query", "key", "value")}
)


class TorchGPT2Block(nn.Module):
    """torch's norms around the two."""

    def __init__(self, d_model: int, num_heads: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(d_model, eps, dtype=torch.float64)
        self.attn = TorchCausalSelfAttention(d_model, num_heads)
        self.ln_2 = nn.LayerNorm(d_model, eps, dtype=torch.float64)
        self.mlp = TorchFeedForward(d_model, 4 * d_model)

    def forward(self, x: Tensor) -> Tensor:
        """Attends, then maps each position."""
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


def as_at_the_start(module: nn.Module) -> None:
    """Gives weights the deviation 0.02, gains ones and biases zeros."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()
            elif ".ln_" in f".{name}":
                parameter.fill_(1.0)
            else:
                parameter.normal_(std=0.02)


@cache  # a module takes as long to build as to run
def _oracle(eps: float = 1e-5) -> TorchGPT2Block:
    with seeded(0):  # leaves the caller's draws as they are
        return TorchGPT2Block(_D_MODEL, _NUM_HEADS, eps)


def _pair(
    candidate: Candidate, dropout: float = 0.0, eps: float | None = None
) -> tuple[nn.Module, TorchGPT2Block]:
    theirs = randomized(_oracle(eps or 1e-5))
    set_eps(theirs, eps or 1e-5)  # the oracle is that of another candidate, too
    options = {} if eps is None else {"eps": eps}
    sizes = _D_MODEL, _NUM_HEADS, dropout
    return with_weights_of(theirs, candidate, *sizes, **options), theirs


def _example(candidate: Candidate) -> object:
    return built(candidate, _D_MODEL, _NUM_HEADS), built(candidate, 6, 2, dropout=0.5)


def _probe(candidate: Candidate) -> Iterator[Tensor]:
    ours, theirs = _pair(candidate)
    x = sequences(_D_MODEL)
    weights = weights_of(theirs)
    # Small inputs show what eps is.
    yield from outputs_and_gradients(ours, weights, x)
    yield ours(1e-3 * x).detach()
    dropping, _ = _pair(candidate, dropout=0.3)
    yield from seen_in_training(dropping, sequences(_D_MODEL, batch=100))
    for step in in_steps(ours, x, _NUM_HEADS, [2, 2]):
        yield step.detach()


gpt2_block = Layer(
    "GPT2Block",
    "GPT2Block(d_model, num_heads, dropout=0.1, eps=1e-5)",
    example=_example,
    probe=_probe,
    attributes=("eps",),
    layout=LAYOUT,
    weight_maps={"transformers.GPT2Block": same_names(*WEIGHTS)},
)


@gpt2_block.check("The output has the shape of the input.", weak=True)
def output_shape(candidate: Candidate) -> Evidence:
    x = torch.randn(2, 5, _D_MODEL)
    return same(tuple(built(candidate, _D_MODEL, _NUM_HEADS)(x).shape), tuple(x.shape))


@gpt2_block.check(
    "With weights of standard deviation 0.02 the values are torch's, up to 0.01.",
    name="initial weights, atol 1e-2",
    weak=True,
)
def at_the_start(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    as_at_the_start(theirs)
    load(ours, weights_of(theirs))
    x = sequences(_D_MODEL)
    return equivalent(ours(x), theirs(x), atol=1e-2)


@gpt2_block.check(
    "The state dict has ln_1, attn, ln_2 and mlp, as in the published weights.", kind="contract"
)
def state(candidate: Candidate) -> Evidence:
    return same_state(built(candidate, _D_MODEL, _NUM_HEADS), _oracle())


@gpt2_block.check("With weights of standard deviation 0.2 the values in float64 are torch's.")
def values(candidate: Candidate, size: float = 1.0, eps: float | None = None) -> Evidence:
    ours, theirs = _pair(candidate, eps=eps)
    x = size * sequences(_D_MODEL)
    return equivalent(ours(x), theirs(x), atol=1e-12)


@gpt2_block.check("So they are for inputs of 0.001, where eps is larger than the variance.")
def small_inputs(candidate: Candidate) -> Evidence:
    return values(candidate, size=1e-3)


@gpt2_block.check("So they are with eps = 0.1.")
def eps(candidate: Candidate) -> Evidence:
    return values(candidate, eps=0.1)


@gpt2_block.check("So are the gradients of the input and the weights.")
def gradients(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    return agreeing_gradients(ours, theirs, sequences(_D_MODEL))


@gpt2_block.check("Changing positions 4 and 5 of 6 does not move 0 to 3.")
def future(candidate: Candidate) -> Evidence:
    ours, _ = _pair(candidate)
    return future_changes_nothing(ours, _D_MODEL, atol=1e-13)


@gpt2_block.check(
    "In steps of 3, 2 and 1 with a cache of keys and values, the values are the same.",
    name="cache",
    kind="contract",
)
def with_cache(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    return steps_equal_the_whole(ours, theirs, sequences(_D_MODEL, seq=6), _NUM_HEADS)


@gpt2_block.check("In evaluation nothing is dropped.")
def evaluation(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate, dropout=0.5)
    x = sequences(_D_MODEL)
    return equivalent(ours.eval()(x), theirs(x), atol=1e-12)


@gpt2_block.check(
    "In training with dropout 1 the output is the input, the residual.", kind="contract"
)
def all_dropped(candidate: Candidate) -> Evidence:
    ours, _ = _pair(candidate, dropout=1.0)
    x = sequences(_D_MODEL)
    return equivalent(ours.train()(x), x, atol=0.0)


@gpt2_block.check("A sequence without a batch axis gives its own row.", kind="contract")
def one_sequence(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    x = sequences(_D_MODEL)
    return equivalent(ours(x[0]), theirs(x)[0], atol=1e-12)


@gpt2_block.check(
    "In training what each sub-layer gives is dropped once: with probability 0.25, and divided by "
    "0.75 where it is not. Nothing else is.",
    kind="contract",
)
def dropped_sub_layers(candidate: Candidate) -> Evidence:
    x = sequences(6, batch=50, seq=2)
    for of_attention in (True, False):
        theirs = TorchGPT2Block(6, 2)
        last, other = theirs.attn.c_proj, theirs.mlp.c_proj
        last, other = (last, other) if of_attention else (other, last)
        with torch.no_grad():  # one sub-layer gives its last bias, the other zeros
            for each in (last.weight, other.weight, other.bias):
                each.zero_()
        ours = with_weights_of(theirs, candidate, 6, 2, dropout=0.25)
        given, dropped = elements_dropped(last.bias.expand_as(x), p=0.25)
        evidence = one_of(ours.train()(x), x + given, dropped, p=0.25)
    return evidence


@gpt2_block.check(
    "Gains start from ones, weights with standard deviation 0.02, biases from zeros.", kind="start"
)
def initial_values(candidate: Candidate) -> Evidence:
    return starts_as(built(candidate, 64, 4), transformer_layers.GPT2Block(64, 4))


def _drawn(candidate: Candidate) -> list[Tensor]:
    layer = built(candidate, _D_MODEL, _NUM_HEADS, dropout=0.5)
    return [*weights_of(layer).values(), layer(sequences(_D_MODEL).float())]


probe(
    gpt2_block,
    Probing(
        pair=_pair,
        inputs=lambda batch, seq: (sequences(_D_MODEL, batch, seq),),
        sizes=(_D_MODEL, _NUM_HEADS),
        defaults={"dropout": 0.1, "eps": 1e-5},
        drawn=_drawn,
        dropping=lambda candidate: (_pair(candidate, DROPPED)[0], (sequences(_D_MODEL),)),
        stepping=lambda candidate, seq: stepping(*_pair(candidate), _D_MODEL, _NUM_HEADS),
        makes=lambda candidate: (
            built(candidate, _D_MODEL, _NUM_HEADS),
            (sequences(_D_MODEL).float(),),
        ),
    ),
)
