"""The checks of `CausalSelfAttention`, against `torch.nn.functional`."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from layer_checks.candidates import (
    built,
    counterparts,
    has_parameters,
    load,
    outputs_and_gradients,
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
from layer_checks.evidence import Evidence, equivalent, holds, raises
from layer_checks.gradients import same_gradients
from layer_checks.wrong.causal_self_attention import WRONG_CAUSAL_SELF_ATTENTIONS

# d_k = 5: a scale by the root of another axis would differ. 2 sequences of 4.
_D_MODEL, _NUM_HEADS = 15, 3


class _Authority(nn.Module):
    """The same by torch's linear layer and its attention kernel, on weights held as (in, out)."""

    def __init__(self, std: float) -> None:
        super().__init__()
        self.c_attn = TransposedLinear(_D_MODEL, 3 * _D_MODEL, std)
        self.c_proj = TransposedLinear(_D_MODEL, _D_MODEL, std)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.c_attn(x).chunk(3, dim=-1)
        query, key, value = (x.unflatten(-1, (_NUM_HEADS, -1)).transpose(-3, -2) for x in parts)
        output = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.c_proj(output.transpose(-3, -2).flatten(-2))


def _pair(
    candidate: Candidate, dropout: float = 0.0, std: float = 0.2
) -> tuple[nn.Module, _Authority]:
    theirs = _Authority(std)
    ours = built(candidate, _D_MODEL, _NUM_HEADS, dropout=dropout).double()
    return load(ours, weights_of(theirs)), theirs


def _example(candidate: Candidate) -> object:
    return built(candidate, _D_MODEL, _NUM_HEADS), built(candidate, 15, 3, dropout=0.5)


def _probe(candidate: Candidate) -> list[Tensor]:
    ours, theirs = _pair(candidate)
    x = sequences(_D_MODEL)
    found = [
        torch.tensor(len(ours.state_dict())),
        *outputs_and_gradients(ours, weights_of(theirs), x),
    ]
    cache = cache_for(_D_MODEL, _NUM_HEADS, max_seq=4)
    try:
        steps = [ours(part, cache=cache).detach() for part in x.split(2, dim=1)]
    except Exception:  # a layer without a cache is told by the rest
        return found
    return [*found, *steps]


def _output_shape(candidate: Candidate) -> Evidence:
    x = torch.randn(2, 5, _D_MODEL)
    return same(tuple(built(candidate, _D_MODEL, _NUM_HEADS)(x).shape), tuple(x.shape))


def _equal_values(candidate: Candidate) -> Evidence:
    theirs = _Authority(std=0.2)
    with torch.no_grad():
        theirs.c_attn.weight[:, -_D_MODEL:] = 0.0
    ours = built(candidate, _D_MODEL, _NUM_HEADS, dropout=0.0).double()
    output = load(ours, weights_of(theirs))(sequences(_D_MODEL))
    return equivalent(output, output[:, :1].expand_as(output), atol=1e-12)


def _small_weights(candidate: Candidate, atol: float) -> Evidence:
    ours, theirs = _pair(candidate, std=0.02)
    x = sequences(_D_MODEL)
    return equivalent(ours(x), theirs(x), atol=atol)


def _parameters(candidate: Candidate) -> Evidence:
    layer = built(candidate, _D_MODEL, _NUM_HEADS)
    same(list(layer.state_dict()), ["c_attn.weight", "c_attn.bias", "c_proj.weight", "c_proj.bias"])
    return has_parameters(
        layer,
        c_attn__weight=(_D_MODEL, 3 * _D_MODEL),
        c_attn__bias=(3 * _D_MODEL,),
        c_proj__weight=(_D_MODEL, _D_MODEL),
        c_proj__bias=(_D_MODEL,),
    )


def _values(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    x = sequences(_D_MODEL)
    return equivalent(ours(x), theirs(x), atol=1e-12)


def _gradients(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    names = counterparts(ours, weights_of(theirs))
    return same_gradients(ours, theirs, sequences(_D_MODEL), atol=1e-11, parameters=names)


def _future(candidate: Candidate) -> Evidence:
    ours, _ = _pair(candidate)
    return future_changes_nothing(ours, _D_MODEL, atol=0.0)


def _large_scores(candidate: Candidate) -> Evidence:
    theirs = _Authority(std=0.2)
    with torch.no_grad():  # key = -query: each position's score with itself is far below -10,000
        query, key, _ = theirs.c_attn.weight.chunk(3, dim=-1)
        key.copy_(-query)
        theirs.c_attn.bias[: 2 * _D_MODEL] = 0.0
    ours = built(candidate, _D_MODEL, _NUM_HEADS, dropout=0.0).double()
    load(ours, weights_of(theirs))
    x = 1000 * sequences(_D_MODEL)
    return equivalent(ours(x), theirs(x), rtol=1e-9)


def _first_position(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    x = sequences(_D_MODEL)
    return equivalent(ours(x)[:, :1], theirs(x[:, :1]), atol=1e-12)


def _with_cache(candidate: Candidate) -> Evidence:
    return steps_equal_the_whole(*_pair(candidate), _D_MODEL, _NUM_HEADS)


def _evaluation(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate, dropout=0.5)
    x = sequences(_D_MODEL)
    return equivalent(ours.eval()(x), theirs(x), atol=1e-12)


def _dropped_result(candidate: Candidate) -> Evidence:
    ours, _ = _pair(candidate, dropout=0.25)
    dropped = (ours(sequences(_D_MODEL, batch=50, seq=4)) == 0).double().mean()
    return equivalent(dropped, 0.25, atol=0.05)  # six standard deviations


def _dropped_weights(candidate: Candidate) -> Evidence:
    # What survives the dropout of the result is divided by 0.75, and twice alike only if the
    # weights were not dropped.
    ours, _ = _pair(candidate, dropout=0.25)
    x = sequences(_D_MODEL, batch=5)
    first, second = ours(x), ours(x)
    both = (first != 0) & (second != 0)
    return holds(
        not torch.equal(first[both], second[both]), "what two calls both keep differs between them"
    )


def _uneven_heads(candidate: Candidate) -> Evidence:
    raises(ValueError, candidate, 10, 3)
    return holds(True, "d_model=10, num_heads=3 raises ValueError")


def _one_sequence(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    x = sequences(_D_MODEL)
    return equivalent(ours(x[0]), theirs(x)[0], atol=1e-12)


CAUSAL_SELF_ATTENTION = Layer(
    name="CausalSelfAttention",
    signature="CausalSelfAttention(d_model, num_heads, dropout=0.1)",
    example=_example,
    probe=_probe,
    wrong_versions=WRONG_CAUSAL_SELF_ATTENTIONS,
    checks=(
        Check("output shape", "The output has the shape of the input.", _output_shape, weak=True),
        Check(
            "equal values",
            "Where all values are the same, all outputs are: the weights sum to 1.",
            _equal_values,
            weak=True,
        ),
        Check(
            "small weights, atol 1e-3",
            "With weights of standard deviation 0.02 the values are torch's, up to 0.001.",
            lambda candidate: _small_weights(candidate, 1e-3),
            weak=True,
        ),
        Check(
            "small weights, atol 1e-5",
            "So they are up to 0.00001.",
            lambda candidate: _small_weights(candidate, 1e-5),
            weak=True,
        ),
        Check(
            "state",
            "The state dict has the weights and biases of c_attn and c_proj, and nothing else.",
            _parameters,
        ),
        Check(
            "values",
            "With weights of standard deviation 0.2 the values in float64 are torch's.",
            _values,
        ),
        Check("gradients", "So are the gradients of the input and the weights.", _gradients),
        Check("future", "Changing positions 4 and 5 of 6 does not move 0 to 3.", _future),
        Check(
            "large scores",
            "The values are torch's where each position's score with itself is far below -10,000.",
            _large_scores,
        ),
        Check(
            "first position",
            "The first position gives what a sequence of one gives.",
            _first_position,
        ),
        Check(
            "cache",
            "In steps of 3, 2 and 1 with a cache of keys and values, the values are the same.",
            _with_cache,
        ),
        Check("evaluation", "In evaluation nothing is dropped.", _evaluation),
        Check("dropped result", "In training a share of the result is 0.", _dropped_result),
        Check("dropped weights", "In training weights are dropped too.", _dropped_weights),
        Check("uneven heads", "A width that the heads do not divide is refused.", _uneven_heads),
        Check("one sequence", "A sequence without a batch axis gives its own row.", _one_sequence),
    ),
)
