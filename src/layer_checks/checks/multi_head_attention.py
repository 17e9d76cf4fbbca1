"""The checks of `MultiHeadAttention`, against `torch.nn.MultiheadAttention`."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from layer_checks.candidates import (
    built,
    counterparts,
    has_parameters,
    load,
    outputs_and_gradients,
    randn64,
    randomized,
    refused,
    same,
)
from layer_checks.definitions import Candidate, Check, Layer
from layer_checks.evidence import Evidence, equivalent, holds, raises
from layer_checks.gradients import same_gradients
from layer_checks.weights import to_ours, to_theirs
from layer_checks.wrong.multi_head_attention import WRONG_MULTI_HEAD_ATTENTIONS

# d_k = 5: a scale by the root of another axis would differ. 2 sequences, 4 queries, 7 keys.
_D_MODEL, _NUM_HEADS = 15, 3


class _Authority(nn.Module):
    """`torch.nn.MultiheadAttention` with our meaning of a mask."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.attention = randomized(
            nn.MultiheadAttention(_D_MODEL, _NUM_HEADS, batch_first=True, **options)
        ).double()

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        blocked = None if mask is None else ~mask
        if blocked is not None and blocked.ndim == 3:
            shape = (query.shape[0], query.shape[1], key.shape[1])
            blocked = blocked.expand(shape).repeat_interleave(_NUM_HEADS, dim=0)
        return self.attention(query, key, value, attn_mask=blocked, need_weights=False)[0]


def _weights(theirs: _Authority) -> dict[str, Tensor]:
    parameters = {name: each.detach() for name, each in theirs.attention.named_parameters()}
    return to_ours("nn.MultiheadAttention", parameters)


def _pair(candidate: Candidate, **options: Any) -> tuple[nn.Module, _Authority]:
    theirs = _Authority(**options)
    ours = built(candidate, _D_MODEL, _NUM_HEADS, **options).double()
    return load(ours, _weights(theirs)), theirs


def _inputs(batch: int = 2, q_seq: int = 4, kv_seq: int = 7) -> tuple[Tensor, Tensor, Tensor]:
    return (
        randn64(batch, q_seq, _D_MODEL),
        randn64(batch, kv_seq, _D_MODEL),
        randn64(batch, kv_seq, _D_MODEL),
    )


def _mask(*shape: int) -> Tensor:
    """A random mask of which every row allows something and blocks something."""
    ranks = torch.rand(shape).argsort(dim=-1)
    return ranks < torch.randint(1, shape[-1], (*shape[:-1], 1))


def _compared(candidate: Candidate, inputs: tuple[Tensor, ...], mask: Tensor | None) -> Evidence:
    ours, theirs = _pair(candidate)
    return equivalent(ours(*inputs, mask), theirs(*inputs, mask), atol=1e-12)


def _example(candidate: Candidate) -> object:
    layer = built(candidate, _D_MODEL, _NUM_HEADS, dropout=0.1, bias=True)
    query, key, value = (x.float() for x in _inputs())
    return layer(query, key, value), layer(query, key, value, mask=_mask(4, 7))


def _probe(candidate: Candidate) -> list[Tensor]:
    inputs = _inputs()
    mask, dead = _mask(4, 7), _mask(4, 7)
    dead[1] = False
    ours, theirs = _pair(candidate)
    weights = _weights(theirs)
    return [
        *outputs_and_gradients(ours, weights, *inputs),
        *outputs_and_gradients(ours, weights, *inputs, mask),
        ours(*inputs, dead).detach(),
    ]


def _output_shape(candidate: Candidate) -> Evidence:
    x = torch.randn(2, 5, _D_MODEL)
    return same(tuple(built(candidate, _D_MODEL, _NUM_HEADS)(x, x, x).shape), tuple(x.shape))


def _equal_values(candidate: Candidate) -> Evidence:
    ours, _ = _pair(candidate)
    query, key, value = _inputs()
    output = ours(query, key, value[:, :1].expand_as(value))
    return equivalent(output, output[:, :1].expand_as(output), atol=1e-12)


def _fresh(candidate: Candidate, atol: float) -> Evidence:
    ours, theirs = built(candidate, _D_MODEL, _NUM_HEADS), _Authority()
    for parameter in ours.parameters():  # as GPT-2's projections start
        nn.init.normal_(parameter, std=0.02)
    theirs.attention.float()
    packed = {name: each.detach() for name, each in ours.named_parameters()}
    theirs.attention.load_state_dict(to_theirs("nn.MultiheadAttention", packed))
    x = torch.randn(2, 5, _D_MODEL)
    return equivalent(ours(x, x, x), theirs(x, x, x), atol=atol)


def _parameters(candidate: Candidate) -> Evidence:
    names = ("query_proj", "key_proj", "value_proj", "output_proj")
    weights = {f"{name}__weight": (_D_MODEL, _D_MODEL) for name in names}
    has_parameters(built(candidate, _D_MODEL, _NUM_HEADS, bias=False), **weights)
    shapes: dict[str, tuple[int, ...]] = {}
    for name in names:
        shapes |= {f"{name}__weight": (_D_MODEL, _D_MODEL), f"{name}__bias": (_D_MODEL,)}
    return has_parameters(built(candidate, _D_MODEL, _NUM_HEADS), **shapes)


def _without_bias(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate, bias=False)
    inputs = _inputs()
    return equivalent(ours(*inputs), theirs(*inputs), atol=1e-12)


def _gradients(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    names = counterparts(ours, _weights(theirs))

    def packed(gradients: Mapping[str, Tensor]) -> dict[str, Tensor]:
        known = {names[name]: gradient for name, gradient in gradients.items() if name in names}
        theirs_by_name = to_theirs("nn.MultiheadAttention", known)
        return {f"attention.{name}": gradient for name, gradient in theirs_by_name.items()}

    return same_gradients(ours, theirs, *_inputs(), _mask(4, 7), atol=1e-11, parameters=packed)


def _blocked_keys(candidate: Candidate) -> Evidence:
    ours, _ = _pair(candidate)
    query, key, value = _inputs()
    mask = _mask(4, 7)
    mask[:, 2] = False
    mask[:, 3] = True
    before = ours(query, key, value, mask)
    key[:, 2] *= -3
    value[:, 2] *= -3
    return equivalent(ours(query, key, value, mask), before, atol=0.0)


def _large_scores(candidate: Candidate) -> Evidence:
    theirs = _Authority()
    with torch.no_grad():  # key = -query: each position's score with itself is far below -10,000
        query, key, _ = theirs.attention.in_proj_weight.chunk(3)
        key.copy_(-query)
        theirs.attention.in_proj_bias.zero_()
    ours = load(built(candidate, _D_MODEL, _NUM_HEADS).double(), _weights(theirs))
    x = 1000 * _inputs()[0]
    itself = torch.eye(4, dtype=torch.bool)
    return equivalent(ours(x, x, x, itself), theirs(x, x, x, itself), rtol=1e-9)


def _nothing_allowed(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    query, key, value = (x.requires_grad_() for x in _inputs())
    mask = _mask(2, 1, 7)
    mask[1] = False
    output = ours(query, key, value, mask)
    gradients = torch.autograd.grad(output.sin().sum(), (query, key, value))
    holds(all(bool(each.isfinite().all()) for each in gradients), "the gradients are finite")
    return equivalent(output[1], theirs.attention.out_proj.bias.expand(4, -1), atol=1e-12)


def _uneven_heads(candidate: Candidate) -> Evidence:
    raises(ValueError, candidate, 10, 3)
    return holds(True, "d_model=10, num_heads=3 raises ValueError")


def _numbers_refused(candidate: Candidate) -> Evidence:
    ours, _ = _pair(candidate)
    inputs = _inputs()
    added = torch.zeros(4, 7, dtype=torch.float64).masked_fill(~_mask(4, 7), -torch.inf)
    return refused(ours, [(*inputs, mask) for mask in (added, _mask(4, 7).long())])


def _evaluation(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate, dropout=0.5)
    inputs = _inputs()
    return equivalent(ours.eval()(*inputs), theirs.eval()(*inputs), atol=1e-12)


def _training(candidate: Candidate) -> Evidence:
    # Without any weight, what is left is the last bias: it is not the result that is dropped.
    ours, theirs = _pair(candidate, dropout=1.0)
    inputs = _inputs()
    bias = theirs.attention.out_proj.bias
    equivalent(ours(*inputs), bias.expand(inputs[0].shape), atol=1e-12)
    ours, _ = _pair(candidate, dropout=0.5)
    return holds(not torch.equal(ours(*inputs), ours(*inputs)), "two calls drop other weights")


def _one_sequence(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    query, key, value = _inputs()
    expected = theirs(query, key, value)[0]
    return equivalent(ours(query[0], key[0], value[0]), expected, atol=1e-12)


def _empty_batch(candidate: Candidate) -> Evidence:
    ours, _ = _pair(candidate)
    query, key, value = _inputs(batch=0)
    return same(tuple(ours(query, key, value).shape), (0, 4, _D_MODEL))


MULTI_HEAD_ATTENTION = Layer(
    name="MultiHeadAttention",
    signature="MultiHeadAttention(d_model, num_heads, dropout=0.0, bias=True)"
    "(query, key, value, mask=None)",
    example=_example,
    probe=_probe,
    wrong_versions=WRONG_MULTI_HEAD_ATTENTIONS,
    checks=(
        Check("output shape", "The output has the shape of the query.", _output_shape, weak=True),
        Check(
            "equal values",
            "Where all values are the same, all outputs are: the weights sum to 1.",
            _equal_values,
            weak=True,
        ),
        Check(
            "small weights, atol 1e-5",
            "With weights of standard deviation 0.02 the values are torch's, up to 0.00001.",
            lambda candidate: _fresh(candidate, 1e-5),
            weak=True,
        ),
        Check("parameters", "There are four projections, with biases or without.", _parameters),
        Check(
            "values",
            "With other keys than values and random weights the values in float64 are torch's.",
            lambda candidate: _compared(candidate, _inputs(), None),
        ),
        Check("values without biases", "So they are with bias=False.", _without_bias),
        Check(
            "mask of queries and keys",
            "So they are under a mask of shape (q, kv).",
            lambda candidate: _compared(candidate, _inputs(), _mask(4, 7)),
        ),
        Check(
            "mask of a batch",
            "So they are under a mask of shape (batch, q, kv).",
            lambda candidate: _compared(candidate, _inputs(), _mask(2, 4, 7)),
        ),
        Check(
            "padding mask",
            "So they are under a mask of shape (batch, 1, kv).",
            lambda candidate: _compared(candidate, _inputs(), _mask(2, 1, 7)),
        ),
        Check(
            "as many sequences as queries",
            "A mask of two axes is (q, kv), also where the batch has as many sequences as queries.",
            lambda candidate: _compared(candidate, _inputs(batch=4), _mask(4, 7)),
        ),
        Check(
            "as many sequences as heads",
            "A mask of three axes is (batch, q, kv), also where there are as many heads.",
            lambda candidate: _compared(candidate, _inputs(batch=3), _mask(3, 4, 7)),
        ),
        Check("gradients", "The gradients of inputs and weights are torch's.", _gradients),
        Check(
            "blocked keys",
            "Changing a key that is blocked for all queries, and its value, changes nothing.",
            _blocked_keys,
        ),
        Check(
            "large scores",
            "Blocked keys do not matter where the score of the only allowed one is far below "
            "-10,000.",
            _large_scores,
        ),
        Check(
            "nothing allowed",
            "A query that may attend to nothing gives the bias of output_proj, and all gradients "
            "are finite.",
            _nothing_allowed,
        ),
        Check("mask of numbers", "A mask that is not boolean is refused.", _numbers_refused),
        Check("uneven heads", "A width that the heads do not divide is refused.", _uneven_heads),
        Check("evaluation", "In evaluation nothing is dropped.", _evaluation),
        Check("training", "In training weights are dropped.", _training),
        Check("empty batch", "An empty batch gives an empty batch.", _empty_batch),
        Check("one sequence", "A sequence without a batch axis gives its own row.", _one_sequence),
    ),
)
