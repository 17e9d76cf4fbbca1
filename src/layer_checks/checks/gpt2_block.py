"""The checks of `GPT2Block`, against `torch.nn`."""

from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional

from layer_checks.candidates import (
    built,
    counterparts,
    load,
    outputs_and_gradients,
    randomized,
    same,
    weights_of,
)
from layer_checks.checks.causal_sequences import (
    cache_for,
    future_changes_nothing,
    sequences,
    steps_equal_the_whole,
)
from layer_checks.checks.transposed_linear import TransposedLinear
from layer_checks.definitions import Candidate, Check, Layer
from layer_checks.evidence import Evidence, equivalent, holds
from layer_checks.gradients import same_gradients
from layer_checks.randomness import seeded
from layer_checks.wrong.gpt2_block import WRONG_GPT2_BLOCKS

# d_k = 5: a scale by the root of another axis would differ. 2 sequences of 4.
_D_MODEL, _NUM_HEADS = 15, 3


class TorchBlock(nn.Module):
    """The same of torch's norms, linear layers and attention kernel, weights held as (in, out).

    Args:
        d_model: Size of the last axis.
        num_heads: Number of heads.
        eps: Added to the variance in both norms.
    """

    def __init__(self, d_model: int, num_heads: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.ln_1 = nn.LayerNorm(d_model, eps, dtype=torch.float64)
        self.attn = nn.ModuleDict(
            {
                "c_attn": TransposedLinear(d_model, 3 * d_model),
                "c_proj": TransposedLinear(d_model, d_model),
            }
        )
        self.ln_2 = nn.LayerNorm(d_model, eps, dtype=torch.float64)
        self.mlp = nn.ModuleDict(
            {
                "c_fc": TransposedLinear(d_model, 4 * d_model),
                "c_proj": TransposedLinear(4 * d_model, d_model),
            }
        )

    def forward(self, x: Tensor) -> Tensor:
        """Attends, then maps each position."""
        parts = self.attn["c_attn"](self.ln_1(x)).chunk(3, dim=-1)
        query, key, value = (
            each.unflatten(-1, (self.num_heads, -1)).transpose(-3, -2) for each in parts
        )
        heads = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.attn["c_proj"](heads.transpose(-3, -2).flatten(-2))
        inner = functional.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh")
        return x + self.mlp["c_proj"](inner)


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


def same_state(ours: nn.Module, theirs: nn.Module) -> Evidence:
    """Checks that two state dicts have the same names and shapes."""
    found = {name: tuple(each.shape) for name, each in ours.state_dict().items()}
    expected = {name: tuple(each.shape) for name, each in theirs.state_dict().items()}
    wrong = sorted({name for name, _ in found.items() ^ expected.items()})
    if wrong:
        raise AssertionError(f"not equal: missing, unknown or of another shape: {wrong}")
    return holds(True, f"{len(found)} weights of the published names and shapes")


@cache  # a module takes as long to build as to run
def _authority(eps: float = 1e-5) -> TorchBlock:
    with seeded(0):  # leaves the caller's draws as they are
        return TorchBlock(_D_MODEL, _NUM_HEADS, eps)


def _pair(
    candidate: Candidate, dropout: float = 0.0, eps: float | None = None
) -> tuple[nn.Module, TorchBlock]:
    theirs = randomized(_authority(eps or 1e-5))
    options = {} if eps is None else {"eps": eps}
    ours = built(candidate, _D_MODEL, _NUM_HEADS, dropout=dropout, **options).double()
    return load(ours, weights_of(theirs)), theirs


def _example(candidate: Candidate) -> object:
    return built(candidate, _D_MODEL, _NUM_HEADS), built(candidate, 6, 2, dropout=0.5)


def _probe(candidate: Candidate) -> list[Tensor]:
    ours, theirs = _pair(candidate)
    x = sequences(_D_MODEL)
    weights = weights_of(theirs)
    # Small inputs show what eps is.
    found = [*outputs_and_gradients(ours, weights, x), ours(1e-3 * x).detach()]
    cache = cache_for(_D_MODEL, _NUM_HEADS, max_seq=4)
    try:
        steps = [ours(part, cache=cache).detach() for part in x.split(2, dim=1)]
    except Exception:  # a layer without a cache is told by the rest
        return found
    return [*found, *steps]


def _output_shape(candidate: Candidate) -> Evidence:
    x = torch.randn(2, 5, _D_MODEL)
    return same(tuple(built(candidate, _D_MODEL, _NUM_HEADS)(x).shape), tuple(x.shape))


def _at_the_start(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    as_at_the_start(theirs)
    load(ours, weights_of(theirs))
    x = sequences(_D_MODEL)
    return equivalent(ours(x), theirs(x), atol=1e-2)


def _state(candidate: Candidate) -> Evidence:
    return same_state(built(candidate, _D_MODEL, _NUM_HEADS), _authority())


def _values(candidate: Candidate, size: float = 1.0, eps: float | None = None) -> Evidence:
    ours, theirs = _pair(candidate, eps=eps)
    x = size * sequences(_D_MODEL)
    return equivalent(ours(x), theirs(x), atol=1e-12)


def _gradients(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    names = counterparts(ours, weights_of(theirs))
    return same_gradients(ours, theirs, sequences(_D_MODEL), atol=1e-11, parameters=names)


def _future(candidate: Candidate) -> Evidence:
    ours, _ = _pair(candidate)
    return future_changes_nothing(ours, _D_MODEL, atol=1e-13)


def _with_cache(candidate: Candidate) -> Evidence:
    return steps_equal_the_whole(*_pair(candidate), _D_MODEL, _NUM_HEADS)


def _evaluation(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate, dropout=0.5)
    x = sequences(_D_MODEL)
    return equivalent(ours.eval()(x), theirs(x), atol=1e-12)


def _all_dropped(candidate: Candidate) -> Evidence:
    ours, _ = _pair(candidate, dropout=1.0)
    x = sequences(_D_MODEL)
    return equivalent(ours.train()(x), x, atol=0.0)


def _one_sequence(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    x = sequences(_D_MODEL)
    return equivalent(ours(x[0]), theirs(x)[0], atol=1e-12)


GPT2_BLOCK = Layer(
    name="GPT2Block",
    signature="GPT2Block(d_model, num_heads, dropout=0.1, eps=1e-5)",
    example=_example,
    probe=_probe,
    wrong_versions=WRONG_GPT2_BLOCKS,
    checks=(
        Check("output shape", "The output has the shape of the input.", _output_shape, weak=True),
        Check(
            "initial weights, atol 1e-2",
            "With weights of standard deviation 0.02 the values are torch's, up to 0.01.",
            _at_the_start,
            weak=True,
        ),
        Check(
            "state",
            "The state dict has ln_1, attn, ln_2 and mlp, as in the published weights.",
            _state,
        ),
        Check(
            "values",
            "With weights of standard deviation 0.2 the values in float64 are torch's.",
            _values,
        ),
        Check(
            "small inputs",
            "So they are for inputs of 0.001, where eps is larger than the variance.",
            lambda candidate: _values(candidate, size=1e-3),
        ),
        Check(
            "eps",
            "So they are with eps = 0.1.",
            lambda candidate: _values(candidate, eps=0.1),
        ),
        Check("gradients", "So are the gradients of the input and the weights.", _gradients),
        Check("future", "Changing positions 4 and 5 of 6 does not move 0 to 3.", _future),
        Check(
            "cache",
            "In steps of 3, 2 and 1 with a cache of keys and values, the values are the same.",
            _with_cache,
        ),
        Check("evaluation", "In evaluation nothing is dropped.", _evaluation),
        Check(
            "all dropped",
            "In training with dropout 1 the output is the input, the residual.",
            _all_dropped,
        ),
        Check("one sequence", "A sequence without a batch axis gives its own row.", _one_sequence),
    ),
)
