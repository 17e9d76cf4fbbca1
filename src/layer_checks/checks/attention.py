"""The checks of `attention_weights` and `scaled_dot_product_attention`, against torch's kernel."""

import math
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

from layer_checks.candidates import outputs_and_gradients, randn64, refused, same
from layer_checks.definitions import Candidate, Check, Layer
from layer_checks.evidence import Evidence, equivalent, holds
from layer_checks.gradients import same_gradients
from layer_checks.wrong.attention import WRONG_ATTENTION_WEIGHTS, WRONG_ATTENTIONS

# The weights for a query, a key and a mask, whatever form the candidate has.
Call: TypeAlias = Callable[[Tensor, Tensor, Tensor | None], Tensor]
Adapter: TypeAlias = Callable[[Candidate], Call]


def _of_weights(candidate: Candidate) -> Call:
    return candidate


def _of_attention(candidate: Candidate) -> Call:
    # Attention over the rows of the identity shows the weights.
    return lambda query, key, mask: candidate(query, key, _identity(key), mask)


def _identity(key: Tensor) -> Tensor:
    return torch.eye(key.shape[-2], dtype=key.dtype).expand(*key.shape[:-1], key.shape[-2])


def _authority(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    return functional.scaled_dot_product_attention(query, key, _identity(key), mask)


def _inputs(scale: float = 1.5) -> tuple[Tensor, Tensor]:
    return scale * randn64(2, 3, 4, 6), scale * randn64(2, 3, 5, 6)


def _mask() -> Tensor:
    """A random mask of which every row allows something and blocks something."""
    ranks = torch.rand(4, 5).argsort(dim=-1)
    return ranks < torch.tensor([[1], [2], [3], [4]])


def _probe_weights(call: Call) -> list[Tensor]:
    query, key = _inputs()
    mask = _mask()
    dead = mask.clone()
    dead[1] = False
    return [
        *outputs_and_gradients(lambda q, k: call(q, k, None), {}, query, key),
        *outputs_and_gradients(lambda q, k: call(q, k, mask), {}, query, key),
        call(query, key, dead),
    ]


def _output_shape(call: Call) -> Evidence:
    query, key = _inputs()
    return same(tuple(call(query, key, None).shape), (2, 3, 4, 5))


def _rows_sum_to_one(call: Call) -> Evidence:
    query, key = _inputs()
    sums = call(query, key, None).sum(dim=-1)
    return equivalent(sums, torch.ones_like(sums), atol=1e-12)


def _small_inputs(call: Call) -> Evidence:
    query, key = _inputs(scale=0.02)
    return equivalent(call(query, key, None), _authority(query, key), atol=1e-3)


def _values(call: Call) -> Evidence:
    query, key = _inputs()
    return equivalent(call(query, key, None), _authority(query, key), atol=1e-12)


def _masked_values(call: Call) -> Evidence:
    query, key = _inputs()
    mask = _mask()
    return equivalent(call(query, key, mask), _authority(query, key, mask), atol=1e-12)


def _gradients(call: Call) -> Evidence:
    query, key = _inputs()
    mask = _mask()
    return same_gradients(
        lambda q, k: call(q, k, mask),
        lambda q, k: _authority(q, k, mask),
        query,
        key,
        atol=1e-12,
    )


def _large_scores(call: Call) -> Evidence:
    query, key = (x.abs() for x in _inputs())
    mask = _mask()
    blocked = call(100 + query, -100 - key, mask)[..., ~mask]  # all scores are below -24,000
    return equivalent(blocked, torch.zeros_like(blocked), atol=0.0)


def _nothing_allowed(call: Call) -> Evidence:
    query, key = (x.requires_grad_() for x in _inputs())
    mask = _mask()
    mask[1] = False
    weights = call(query, key, mask)
    gradients = torch.autograd.grad(weights.sin().sum(), (query, key))
    holds(all(bool(each.isfinite().all()) for each in gradients), "the gradients are finite")
    row = weights[..., 1, :]
    return equivalent(row, torch.zeros_like(row), atol=0.0)


def _half_precision(call: Call, masked: bool) -> Evidence:
    query = torch.full((1, 64), 40.0, dtype=torch.float16)
    mask = torch.tensor([[False, True, True]]) if masked else None
    weights = call(query, torch.cat([query, -query, query]), mask)
    expected = [[0.0, 0.0, 1.0]] if masked else [[0.5, 0.0, 0.5]]
    return equivalent(weights, torch.tensor(expected).half(), atol=1e-3)


def _numbers_refused(call: Call) -> Evidence:
    query, key = _inputs()
    added = torch.zeros(4, 5, dtype=torch.float64).masked_fill(~_mask(), -math.inf)
    return refused(call, [(query, key, mask) for mask in (added, _mask().long())])


def _checks(adapted: Adapter) -> tuple[Check, ...]:
    def check(name: str, law: str, run: Callable[[Call], Evidence], *, weak: bool = False) -> Check:
        return Check(name, law, lambda candidate: run(adapted(candidate)), weak)

    return (
        check("output shape", "The weights have shape (..., q, kv).", _output_shape, weak=True),
        check("rows sum to 1", "Without a mask each row sums to 1.", _rows_sum_to_one, weak=True),
        check(
            "small inputs, atol 1e-3",
            "For inputs of standard deviation 0.02 the weights are torch's, up to 0.001.",
            _small_inputs,
            weak=True,
        ),
        check(
            "weights",
            "For 4 queries and 5 keys with d_k = 6 the weights in float64 are torch's.",
            _values,
        ),
        check("weights under a mask", "So they are under a random mask.", _masked_values),
        check("gradients of the weights", "So are their gradients under a mask.", _gradients),
        check(
            "large scores",
            "A blocked key has weight 0, also where all scores are below -24,000.",
            _large_scores,
        ),
        check(
            "nothing allowed",
            "A query that may attend to nothing has weights 0, and all gradients are finite.",
            _nothing_allowed,
        ),
        check(
            "half precision",
            "In float16, queries and keys of 64 times ±40 give the right weights.",
            lambda call: _half_precision(call, masked=False),
        ),
        check(
            "half precision, masked",
            "So they do under a mask.",
            lambda call: _half_precision(call, masked=True),
        ),
        check("mask of numbers", "A mask that is not boolean is refused.", _numbers_refused),
    )


ATTENTION_WEIGHTS = Layer(
    name="attention_weights",
    signature="attention_weights(query, key, mask=None)",
    example=lambda candidate: candidate(*_inputs()),
    probe=lambda candidate: _probe_weights(_of_weights(candidate)),
    wrong_versions=WRONG_ATTENTION_WEIGHTS,
    checks=_checks(_of_weights),
)


def _example(candidate: Candidate) -> object:
    query, key = _inputs()
    return candidate(query, key, key), candidate(query, key, key, dropout_p=0.1)


def _probe(candidate: Candidate) -> list[Tensor]:
    query, key = _inputs()
    same_scores = torch.zeros(1, 1, 200, 6, dtype=torch.float64)
    dropped = candidate(same_scores, same_scores, same_scores[..., :1] + 1, dropout_p=0.5)
    return [
        *_probe_weights(_of_attention(candidate)),
        candidate(query, key, randn64(2, 3, 5, 6)),
        dropped.var().mul(100).round(),
        (dropped == 0).double().mean().mul(10).round(),
    ]


def _outputs(candidate: Candidate) -> Evidence:
    query, key = _inputs()
    value = randn64(2, 3, 5, 7)
    expected = functional.scaled_dot_product_attention(query, key, value)
    return equivalent(candidate(query, key, value), expected, atol=1e-12)


def _output_gradients(candidate: Candidate) -> Evidence:
    query, key = _inputs()
    mask = _mask()
    return same_gradients(
        lambda q, k, v: candidate(q, k, v, mask),
        lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, mask),
        query,
        key,
        randn64(2, 3, 5, 7),
        atol=1e-12,
    )


def _dropout(candidate: Candidate) -> Evidence:
    query = torch.zeros(40, 50, 6)
    weights = candidate(query, query, _identity(query), dropout_p=0.25)
    kept = (weights != 0).double()
    # The share of 100,000 draws is known to 0.0014, that of one row of 50 to 0.06.
    equivalent(kept.mean(), 0.75, atol=0.007)
    equivalent(kept.mean(dim=-1).var(), 0.25 * 0.75 / 50, atol=1e-3)
    return equivalent(weights[weights != 0], 0.02 / 0.75, atol=1e-7)


SCALED_DOT_PRODUCT_ATTENTION = Layer(
    name="scaled_dot_product_attention",
    signature="scaled_dot_product_attention(query, key, value, mask=None, dropout_p=0.0)",
    example=_example,
    probe=_probe,
    wrong_versions=WRONG_ATTENTIONS,
    checks=(
        *_checks(_of_attention),
        Check(
            "values",
            "With values of width 7 the outputs are torch's.",
            _outputs,
        ),
        Check(
            "gradients",
            "So are the gradients of query, key and value under a mask.",
            _output_gradients,
        ),
        Check(
            "dropout",
            "With dropout_p = 0.25 each weight is 0 with probability 0.25, or divided by 0.75.",
            _dropout,
        ),
    ),
)
