"""The checks of `sink_attention`, against torch's kernel with one more key in the sink's place."""

import math

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from layer_checks.evidence.evidence import Evidence, equivalent, holds, raises
from layer_checks.evidence.gradients import same_gradients
from layer_checks.kit.candidates import outputs_and_gradients, randn64, refused, rounded_once, same
from layer_checks.kit.definitions import Candidate, Layer
from layer_checks.kit.of_heads import probing_of_heads
from layer_checks.kit.probes import Function, probe

_SINKS = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)


def _oracle(
    query: Tensor, key: Tensor, value: Tensor, sinks: Tensor, mask: Tensor | None = None
) -> Tensor:
    """One more key and value, both of zeros; the sink is added to its score, which is 0."""
    scores = query.shape[:-1]
    added = query.new_zeros(query.shape[-2], key.shape[-2])
    if mask is not None:
        added = torch.zeros(mask.shape, dtype=query.dtype).masked_fill(~mask, -math.inf)
    bias = torch.cat([added.expand(*scores, -1), sinks[:, None, None].expand(*scores, 1)], dim=-1)
    key, value = (functional.pad(x, (0, 0, 0, 1)) for x in (key, value))
    with sdpa_kernel(SDPBackend.MATH):  # the fused kernels have no second derivative
        return functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)


def _inputs(width: int = 7) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    query, key = 1.5 * randn64(2, 3, 4, 6), 1.5 * randn64(2, 3, 5, 6)
    return query, key, randn64(2, 3, 5, width), _SINKS.clone()


def _mask() -> Tensor:
    """A random mask of which every row allows something and blocks something."""
    return torch.rand(4, 5).argsort(dim=-1) < torch.tensor([[1], [2], [3], [4]])


def _of_ones(inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """With values of 1, by which attention gives the sums of its weights."""
    return *inputs[:2], torch.ones_like(inputs[2][..., :1]), inputs[3]


def _probe(candidate: Candidate) -> list[Tensor]:
    mask = _mask()
    inputs = _inputs()
    found = outputs_and_gradients(lambda *x: candidate(*x, mask), {}, *inputs)
    mask[1] = False
    return [*found, candidate(*inputs), candidate(*inputs, mask)]


sink_attention = Layer(
    "sink_attention",
    "sink_attention(query, key, value, sinks, mask=None)",
    example=lambda candidate: candidate(*_inputs()),
    probe=_probe,
)


@sink_attention.check("The output has shape (..., q, d_v).", weak=True)
def output_shape(candidate: Candidate) -> Evidence:
    return same(tuple(candidate(*_inputs()).shape), (2, 3, 4, 7))


@sink_attention.check("With sinks of -1000 it is attention without them.", weak=True)
def sinks_far_below(candidate: Candidate) -> Evidence:
    query, key, value, sinks = _inputs()
    expected = functional.scaled_dot_product_attention(query, key, value)
    return equivalent(candidate(query, key, value, sinks - 1000), expected, atol=1e-6)


@sink_attention.check("Each row of weights sums to less than 1.", weak=True)
def rows_sum_to_less(candidate: Candidate) -> Evidence:
    sums = candidate(*_of_ones(_inputs()))
    return holds(bool((sums < 1).all()), f"sums up to {sums.max():.2f}")


@sink_attention.check("The values in float64 are torch's with one more key for the sink.")
def values(candidate: Candidate) -> Evidence:
    inputs = _inputs()
    return equivalent(candidate(*inputs), _oracle(*inputs), atol=1e-12)


@sink_attention.check("So they are under a random mask.")
def values_under_a_mask(candidate: Candidate) -> Evidence:
    inputs, mask = _inputs(), _mask()
    return equivalent(candidate(*inputs, mask), _oracle(*inputs, mask), atol=1e-12)


@sink_attention.check("So are the gradients of query, key, value and sinks under a mask.")
def gradients(candidate: Candidate) -> Evidence:
    mask = _mask()
    return same_gradients(
        lambda *x: candidate(*x, mask),
        lambda q, k, v, s: _oracle(q, k, v, s, mask),
        *_inputs(),
        atol=1e-12,
    )


@sink_attention.check("So are the values where scores and sinks are near 800, or near -800.")
def large_scores(candidate: Candidate) -> Evidence:
    for sign in (1, -1):
        query, key, value, sinks = _inputs()
        # The last of 7 features makes all scores larger or smaller by 800.
        query = torch.cat([query, torch.full_like(query[..., :1], 7**0.5)], dim=-1)
        key = torch.cat([key, torch.full_like(key[..., :1], 800.0 * sign)], dim=-1)
        inputs = query, key, value, sinks + 800 * sign
        found = equivalent(candidate(*inputs), _oracle(*inputs), atol=1e-9)
    return found


@sink_attention.check(
    "A query that may attend to nothing gives 0, and all gradients are finite.", kind="contract"
)
def nothing_allowed(candidate: Candidate) -> Evidence:
    mask = _mask()
    mask[1] = False
    found = outputs_and_gradients(lambda *x: candidate(*x, mask), {}, *_inputs())
    holds(all(bool(each.isfinite().all()) for each in found[1:]), "the gradients are finite")
    return equivalent(found[0][..., 1, :], torch.zeros(2, 3, 7).double(), atol=0.0)


@sink_attention.check("In bfloat16 it is computed in float32, and rounded once.", kind="contract")
def bfloat16(candidate: Candidate) -> Evidence:
    query, key, value, sinks = (x.bfloat16() for x in _inputs())
    mask = _mask()
    exact = _oracle(query.double(), key.double(), value.double(), sinks.double(), mask)
    return rounded_once(candidate(query, key, value, sinks, mask), exact, atol=1e-5)


@sink_attention.check("A mask that is not boolean is refused.", kind="contract")
def mask_of_numbers(candidate: Candidate) -> Evidence:
    added = torch.zeros(4, 5, dtype=torch.float64).masked_fill(~_mask(), -math.inf)
    return refused(candidate, [(*_inputs(), mask) for mask in (added, _mask().long())])


@sink_attention.check("Sinks that are not one for each head are refused.", kind="contract")
def one_for_each_head(candidate: Candidate) -> Evidence:
    query, key, value, sinks = _inputs()
    raises((TypeError, ValueError), candidate, query, key, value, sinks[:2])
    return raises((TypeError, ValueError), candidate, query, key, value, sinks[:1])


def _call(function: Function) -> Function:
    """Of query, key, value and mask, with the same sinks for three heads each time."""
    return lambda query, key, value, mask=None: function(
        query, key, value, _SINKS.to(query.dtype), mask
    )


probe(sink_attention, probing_of_heads(lambda candidate: (_call(candidate), _call(_oracle))))
