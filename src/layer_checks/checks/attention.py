"""The checks of `attention_weights` and `scaled_dot_product_attention`, against torch's kernel."""

import math
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from layer_checks.evidence.comparison import is_compared_in_single
from layer_checks.evidence.evidence import Evidence, equivalent, holds
from layer_checks.evidence.gradients import same_gradients
from layer_checks.kit.arguments import SYNONYMS, CannotTakeError, taken_by
from layer_checks.kit.candidates import outputs_and_gradients, randn64, refused, rounded_once, same
from layer_checks.kit.definitions import Candidate, Family, Form, Layer
from layer_checks.kit.dropping import independent
from layer_checks.kit.probes import DROPPED, Probing, probe

# The weights for a query, a key and a mask, whatever form the candidate has.
Call: TypeAlias = Callable[[Tensor, Tensor, Tensor | None], Tensor]


def _identity(key: Tensor) -> Tensor:
    return torch.eye(key.shape[-2], dtype=key.dtype).expand(*key.shape[:-1], key.shape[-2])


def _oracle(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    return functional.scaled_dot_product_attention(query, key, _identity(key), mask)


def _inputs(scale: float = 1.5) -> tuple[Tensor, Tensor]:
    return scale * randn64(2, 3, 4, 6), scale * randn64(2, 3, 5, 6)


def _mask() -> Tensor:
    """A random mask of which every row allows something and blocks something."""
    ranks = torch.rand(4, 5).argsort(dim=-1)
    return ranks < torch.tensor([[1], [2], [3], [4]])


def _probe_weights(call: Call) -> Iterator[Tensor]:
    query, key = _inputs()
    mask = _mask()
    dead = mask.clone()
    dead[1] = False
    yield from outputs_and_gradients(lambda q, k: call(q, k, None), {}, query, key)
    yield from outputs_and_gradients(lambda q, k: call(q, k, mask), {}, query, key)
    yield call(query, key, dead)


def _half_precision(call: Call, masked: bool) -> Evidence:
    query = torch.full((1, 64), 40.0, dtype=torch.float16)
    mask = torch.tensor([[False, True, True]]) if masked else None
    weights = call(query, torch.cat([query, -query, query]), mask)
    expected = [[0.0, 0.0, 1.0]] if masked else [[0.5, 0.0, 0.5]]
    return equivalent(weights, torch.tensor(expected).half(), atol=1e-3)


def _example(candidate: Candidate) -> object:
    query, key = _inputs()
    return candidate(query, key, key), candidate(query, key, key, dropout_p=0.1)


def _of_attention(candidate: Candidate) -> Call:
    # Attention over the rows of the identity shows the weights.
    return lambda query, key, mask: candidate(query, key, _identity(key), mask)


def _probe(candidate: Candidate) -> Iterator[Tensor]:
    query, key = _inputs()
    rows = torch.zeros(1, 1, 3000, 6, dtype=torch.float64)
    columns = rows[..., :6, :]
    dropped = candidate(rows, columns, columns[..., :1] + 1, dropout_p=0.5)
    yield from _probe_weights(_of_attention(candidate))
    yield candidate(query, key, randn64(2, 3, 5, 6))
    yield dropped.std().mul(10).round()  # 4, and no other draw makes it 3 or 5
    yield (dropped == 0).double().mean().mul(10).round()


def _otherwise(taken: Collection[str], behind: bool) -> Callable[..., Tensor]:
    """Calls attention whose dropout is a module, or whose heads stand behind the positions."""
    masks, drops = (SYNONYMS[name] | {name} for name in ("mask", "dropout"))
    mask_name = next((name for name in taken if name in masks | {"bias"}), "")
    drop_name = next((name for name in taken if name in drops), "")

    def call(
        function: Candidate,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        dropout_p: float = 0.0,
    ) -> Tensor:
        axes = query.ndim
        inputs = [_of_heads(x) if behind else x for x in (query, key, value)]
        given: dict[str, Any] = {}
        if mask is not None:
            if not mask_name:
                raise CannotTakeError("its call takes no mask")
            added = torch.zeros(mask.shape, dtype=query.dtype).masked_fill(~mask, -math.inf)
            given[mask_name] = added if mask_name in ("bias", "attn_bias") else mask
        if dropout_p:
            if not drop_name:
                raise CannotTakeError("its call takes no dropout_p")
            given[drop_name] = nn.Dropout(dropout_p)
        found = function(*inputs, **given)
        output: Tensor = found[0] if isinstance(found, tuple | list) else found
        return output.transpose(1, 2).flatten(0, max(0, 3 - axes)) if behind else output

    return call


def _of_heads(x: Tensor) -> Tensor:
    """With the axis of heads behind that of positions."""
    while x.ndim < 4:  # batch, heads, positions, features
        x = x[None]
    return x.transpose(1, 2)


def _forms(candidate: Candidate) -> Iterator[Form]:
    taken = taken_by(candidate)
    yield Form("its dropout is a module", _otherwise(taken, behind=False), contract=True)
    words = "the axis of heads stands behind that of positions"
    yield Form(words, _otherwise(taken, behind=True), contract=True)


attention_weights = Layer(
    "attention_weights",
    "attention_weights(query, key, mask=None)",
    example=lambda candidate: candidate(*_inputs()),
    probe=_probe_weights,
    not_mistakes={"small values flushed to zero"},  # such values are all one to a softmax
)
scaled_dot_product_attention = Layer(
    "scaled_dot_product_attention",
    "scaled_dot_product_attention(query, key, value, mask=None, dropout_p=0.0)",
    example=_example,
    probe=_probe,
    synonyms={"dropout_p": {"dropout"} | SYNONYMS["dropout"]},
    forms=_forms,
)
both = Family(
    {
        attention_weights: lambda candidate: candidate,
        scaled_dot_product_attention: _of_attention,
    }
)


@both.check("The weights have shape (..., q, kv).", weak=True)
def output_shape(call: Call) -> Evidence:
    query, key = _inputs()
    return same(tuple(call(query, key, None).shape), (2, 3, 4, 5))


@both.check("Without a mask each row sums to 1.", name="rows sum to 1", weak=True)
def rows_sum_to_one(call: Call) -> Evidence:
    query, key = _inputs()
    sums = call(query, key, None).sum(dim=-1)
    return equivalent(sums, torch.ones_like(sums), atol=1e-12)


@both.check(
    "For inputs of standard deviation 0.02 the weights are torch's, up to 0.001.",
    name="small inputs, atol 1e-3",
    weak=True,
)
def small_inputs(call: Call) -> Evidence:
    query, key = _inputs(scale=0.02)
    return equivalent(call(query, key, None), _oracle(query, key), atol=1e-3)


@both.check("For 4 queries and 5 keys with d_k = 6 the weights in float64 are torch's.")
def weights(call: Call) -> Evidence:
    query, key = _inputs()
    return equivalent(call(query, key, None), _oracle(query, key), atol=1e-12)


@both.check("So they are under a random mask.")
def weights_under_a_mask(call: Call) -> Evidence:
    query, key = _inputs()
    mask = _mask()
    return equivalent(call(query, key, mask), _oracle(query, key, mask), atol=1e-12)


@both.check("So are their gradients under a mask.")
def gradients_of_the_weights(call: Call) -> Evidence:
    query, key = _inputs()
    mask = _mask()
    return same_gradients(
        lambda q, k: call(q, k, mask),
        lambda q, k: _oracle(q, k, mask),
        query,
        key,
        atol=1e-12,
    )


@both.check(
    "Under a mask the weights are torch's, also where all scores are below -30, or below -24,000."
)
def large_scores(call: Call) -> Evidence:
    query, key = (x.abs() for x in _inputs())
    mask = _mask()
    found = []
    for offset, in_single in ((3.6, 1e-9), (100, 1e-2)):  # a score of -24,000 is known to 0.002
        inputs = offset + query, -offset - key, mask
        weights = call(*inputs)
        equivalent(weights[..., ~mask], torch.zeros_like(weights[..., ~mask]), atol=0.0)
        atol = in_single if is_compared_in_single() else 1e-9
        found.append(equivalent(weights, _oracle(*inputs), atol=atol))
    return found[-1]


@both.check(
    "A query that may attend to nothing has weights 0, and all gradients are finite.",
    kind="contract",
)
def nothing_allowed(call: Call) -> Evidence:
    query, key = _inputs()
    mask = _mask()
    mask[1] = False
    weights, *gradients = outputs_and_gradients(lambda q, k: call(q, k, mask), {}, query, key)
    holds(all(bool(each.isfinite().all()) for each in gradients), "the gradients are finite")
    row = weights[..., 1, :]
    return equivalent(row, torch.zeros_like(row), atol=0.0)


@both.check("In float16, queries and keys of 64 times ±40 give the right weights.", kind="contract")
def half_precision(call: Call) -> Evidence:
    return _half_precision(call, masked=False)


@both.check("So they do under a mask.", name="half precision, masked", kind="contract")
def half_precision_masked(call: Call) -> Evidence:
    return _half_precision(call, masked=True)


@both.check("In bfloat16 the weights are computed in float32, and rounded once.", kind="contract")
def bfloat16(call: Call) -> Evidence:
    query, key = (x.bfloat16() for x in _inputs())
    mask = _mask()
    exact = _oracle(query.double(), key.double(), mask)
    return rounded_once(call(query, key, mask), exact, atol=1e-6)


@both.check("A mask that is not boolean is refused.", kind="contract")
def mask_of_numbers(call: Call) -> Evidence:
    query, key = _inputs()
    added = torch.zeros(4, 5, dtype=torch.float64).masked_fill(~_mask(), -math.inf)
    return refused(call, [(query, key, mask) for mask in (added, _mask().long())])


@scaled_dot_product_attention.check("With values of width 7 the outputs are torch's.")
def values(candidate: Candidate) -> Evidence:
    query, key = _inputs()
    value = randn64(2, 3, 5, 7)
    expected = functional.scaled_dot_product_attention(query, key, value)
    return equivalent(candidate(query, key, value), expected, atol=1e-12)


@scaled_dot_product_attention.check("So are the gradients of query, key and value under a mask.")
def gradients(candidate: Candidate) -> Evidence:
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


@scaled_dot_product_attention.check(
    "With dropout_p = 0.25 each weight is 0 by itself, with probability 0.25, or divided by 0.75."
)
def dropout(candidate: Candidate) -> Evidence:
    query = torch.zeros(8, 5, 50, 6)
    weights = candidate(query, query, _identity(query), dropout_p=0.25)
    kept = (weights != 0).double()
    # The share of 100,000 draws is known to 0.0014, that of one row of 50 to 0.06.
    equivalent(kept.mean(), 0.75, atol=0.007)
    equivalent(kept.mean(dim=-1).var(), 0.25 * 0.75 / 50, atol=1e-3)
    independent(weights == 0, 0.25)
    return equivalent(weights[weights != 0], 0.02 / 0.75, atol=1e-7)


@scaled_dot_product_attention.check(
    "What is dropped are weights: two equal columns of values give two equal columns."
)
def columns_alike(candidate: Candidate) -> Evidence:
    query, key = _inputs()
    columns = candidate(query, key, randn64(2, 3, 5, 1).expand(-1, -1, -1, 2), dropout_p=0.5)
    return equivalent(columns[..., 0], columns[..., 1], atol=1e-12)


def _weight_inputs(batch: int, seq: int) -> tuple[Tensor, Tensor, Tensor]:
    keys = 5 if seq > 1 else 1
    mask = torch.rand(seq, keys).argsort(dim=-1) < 3
    return randn64(batch, 3, seq, 6), randn64(batch, 3, keys, 6), mask


def _many(seq: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Many queries; and many keys, of which the last 20 are padding."""
    yield _weight_inputs(1, seq)
    mask = torch.arange(seq).expand(4, -1) < seq - 20
    yield randn64(1, 3, 4, 6), randn64(1, 3, seq, 6), mask


def _with_values(query: Tensor, key: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
    return query, key, randn64(*key.shape[:-1], 3), mask


def _wide_inputs(d_k: int) -> tuple[Tensor, Tensor]:
    return randn64(1, 3, 4, d_k), randn64(1, 3, 5, d_k)


def _masked_weight_inputs(batch: int, seq: int, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A mask of three axes is one for each sequence, shared by its heads."""
    by_head = mask if mask.ndim == 2 else mask[:, None]
    return randn64(batch, 3, seq, 6), randn64(batch, 3, seq, 6), by_head


def _attention_inputs(batch: int, seq: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    query, key, mask = _weight_inputs(batch, seq)
    return query, key, randn64(batch, 3, key.shape[-2], 7), mask


def _masked_attention_inputs(batch: int, seq: int, mask: Tensor) -> tuple[Tensor, ...]:
    query, key, by_head = _masked_weight_inputs(batch, seq, mask)
    return query, key, randn64(batch, 3, seq, 7), by_head


def _dropping(candidate: Candidate) -> tuple[Call, tuple[Tensor, ...]]:
    return partial(candidate, dropout_p=DROPPED), _attention_inputs(2, 4)


def _narrow_inputs() -> tuple[Tensor, Tensor]:
    return randn64(2, 3, 4, 1), randn64(2, 3, 5, 1)


probe(
    attention_weights,
    Probing(
        pair=lambda candidate: (candidate, _oracle),
        inputs=_weight_inputs,
        narrow=lambda candidate: (candidate, _oracle, _narrow_inputs()),
        wide=lambda candidate, size: (candidate, _oracle, _wide_inputs(size)),
        large=lambda candidate, seq: ((candidate, _oracle, each) for each in _many(seq)),
        masked=_masked_weight_inputs,
    ),
)
probe(
    scaled_dot_product_attention,
    Probing(
        pair=lambda candidate: (candidate, functional.scaled_dot_product_attention),
        inputs=_attention_inputs,
        narrow=lambda candidate: (
            candidate,
            functional.scaled_dot_product_attention,
            (*_narrow_inputs(), randn64(2, 3, 5, 1)),
        ),
        drawn=lambda candidate: [
            candidate(*(x.float() for x in _attention_inputs(2, 4)[:3]), dropout_p=0.5)
        ],
        wide=lambda candidate, size: (
            candidate,
            functional.scaled_dot_product_attention,
            (*_wide_inputs(size), randn64(1, 3, 5, size)),
        ),
        large=lambda candidate, seq: (
            (candidate, functional.scaled_dot_product_attention, _with_values(*each))
            for each in _many(seq)
        ),
        masked=_masked_attention_inputs,
        dropping=_dropping,
        defaults={"dropout_p": 0.0},
        bare=lambda: _attention_inputs(2, 4)[:3],
    ),
)
