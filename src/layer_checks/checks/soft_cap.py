"""The checks of `soft_capped_attention`, against torch's kernel, to which scores are added."""

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

_CAP = 2.5


def _oracle(
    query: Tensor, key: Tensor, value: Tensor, cap: float, mask: Tensor | None = None
) -> Tensor:
    """Attention of zeros, to whose scores the capped ones are added; tanh as a sigmoid."""
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    bias = 2 * cap * torch.sigmoid(2 * scores / cap) - cap
    if mask is not None:
        bias = bias.masked_fill(~mask, -math.inf)
    with sdpa_kernel(SDPBackend.MATH):  # the fused kernels have no second derivative
        return functional.scaled_dot_product_attention(0 * query, 0 * key, value, attn_mask=bias)


def _inputs(scale: float = 1.5) -> tuple[Tensor, Tensor, Tensor]:
    return scale * randn64(2, 3, 4, 6), scale * randn64(2, 3, 5, 6), randn64(2, 3, 5, 7)


def _mask() -> Tensor:
    """A random mask of which every row allows something and blocks something."""
    return torch.rand(4, 5).argsort(dim=-1) < torch.tensor([[1], [2], [3], [4]])


def _probe(candidate: Candidate) -> list[Tensor]:
    inputs, mask = _inputs(), _mask()
    found = outputs_and_gradients(lambda *x: candidate(*x, _CAP, mask), {}, *inputs)
    mask[1] = False
    return [*found, candidate(*inputs, _CAP), candidate(*inputs, _CAP, mask)]


soft_capped_attention = Layer(
    "soft_capped_attention",
    "soft_capped_attention(query, key, value, cap, mask=None)",
    example=lambda candidate: candidate(*_inputs(), _CAP),
    probe=_probe,
    synonyms={"cap": {"softcap", "soft_cap", "logits_soft_cap", "softcapping"}},
)


@soft_capped_attention.check("The output has shape (..., q, d_v).", weak=True)
def output_shape(candidate: Candidate) -> Evidence:
    return same(tuple(candidate(*_inputs(), _CAP).shape), (2, 3, 4, 7))


@soft_capped_attention.check("Each row of weights sums to 1.", name="rows sum to 1", weak=True)
def rows_sum_to_one(candidate: Candidate) -> Evidence:
    query, key, value = _inputs()
    sums = candidate(query, key, torch.ones_like(value), _CAP)
    return equivalent(sums, torch.ones_like(sums), atol=1e-12)


@soft_capped_attention.check("With a cap of a million it is attention.", weak=True)
def cap_far_above(candidate: Candidate) -> Evidence:
    inputs = _inputs()
    expected = functional.scaled_dot_product_attention(*inputs)
    return equivalent(candidate(*inputs, 1e6), expected, atol=1e-6)


@soft_capped_attention.check("With a cap of 2.5 the values in float64 are those of the formula.")
def values(candidate: Candidate) -> Evidence:
    inputs = _inputs()
    return equivalent(candidate(*inputs, _CAP), _oracle(*inputs, _CAP), atol=1e-12)


@soft_capped_attention.check("So they are under a random mask.")
def values_under_a_mask(candidate: Candidate) -> Evidence:
    inputs, mask = _inputs(), _mask()
    return equivalent(candidate(*inputs, _CAP, mask), _oracle(*inputs, _CAP, mask), atol=1e-12)


@soft_capped_attention.check("So are the gradients of query, key and value under a mask.")
def gradients(candidate: Candidate) -> Evidence:
    mask = _mask()
    return same_gradients(
        lambda *x: candidate(*x, _CAP, mask),
        lambda q, k, v: _oracle(q, k, v, _CAP, mask),
        *_inputs(),
        atol=1e-12,
    )


@soft_capped_attention.check("So are the values where scores are near 100, far above the cap.")
def large_scores(candidate: Candidate) -> Evidence:
    inputs = _inputs(scale=8.0)
    return equivalent(candidate(*inputs, _CAP), _oracle(*inputs, _CAP), atol=1e-11)


@soft_capped_attention.check(
    "A query that may attend to nothing gives 0, and all gradients are finite.", kind="contract"
)
def nothing_allowed(candidate: Candidate) -> Evidence:
    mask = _mask()
    mask[1] = False
    found = outputs_and_gradients(lambda *x: candidate(*x, _CAP, mask), {}, *_inputs())
    holds(all(bool(each.isfinite().all()) for each in found[1:]), "the gradients are finite")
    return equivalent(found[0][..., 1, :], torch.zeros(2, 3, 7).double(), atol=0.0)


@soft_capped_attention.check(
    "In bfloat16 it is computed in float32, and rounded once.", kind="contract"
)
def bfloat16(candidate: Candidate) -> Evidence:
    query, key, value = (x.bfloat16() for x in _inputs())
    mask = _mask()
    exact = _oracle(query.double(), key.double(), value.double(), _CAP, mask)
    return rounded_once(candidate(query, key, value, _CAP, mask), exact, atol=1e-5)


@soft_capped_attention.check("A mask that is not boolean is refused.", kind="contract")
def mask_of_numbers(candidate: Candidate) -> Evidence:
    added = torch.zeros(4, 5, dtype=torch.float64).masked_fill(~_mask(), -math.inf)
    return refused(candidate, [(*_inputs(), _CAP, mask) for mask in (added, _mask().long())])


@soft_capped_attention.check("A cap of 0, or below, is refused.", kind="contract")
def cap_above_zero(candidate: Candidate) -> Evidence:
    raises((TypeError, ValueError), candidate, *_inputs(), -1.0)
    return raises((TypeError, ValueError), candidate, *_inputs(), 0.0)


def _call(function: Function) -> Function:
    """Of query, key, value and mask, with the same cap each time."""
    return lambda query, key, value, mask=None: function(query, key, value, _CAP, mask)


probe(soft_capped_attention, probing_of_heads(lambda candidate: (_call(candidate), _call(_oracle))))
