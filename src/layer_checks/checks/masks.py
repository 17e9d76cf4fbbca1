"""The checks of the masks, written out for each query and key."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from layer_checks.evidence.evidence import Evidence, equivalent
from layer_checks.kit.arguments import taken_by
from layer_checks.kit.candidates import randn64, same
from layer_checks.kit.definitions import Candidate, Form, Layer
from layer_checks.kit.probes import Probing, probe

_AXES = 2  # of a mask: queries and keys
# What others call the number of keys.
_KEYS = frozenset(
    "kv_len k_len key_len kv_seq kv_seq_len key_length kv_length src_len klen total_len".split()
)
_BLOCKED = -1e4  # what is added to scores that are not to count, or less


def _expected_causal(seq: int, past: int) -> Tensor:
    rows = [[key <= query + past for key in range(past + seq)] for query in range(seq)]
    return torch.tensor(rows)


def _boolean(mask: Tensor, axes: int) -> Evidence:
    same(mask.ndim, axes)
    return same(mask.dtype, torch.bool)


def _allowed(mask: Tensor) -> Tensor:
    """A boolean mask in the place of one of 0 and -inf, or very negative numbers."""
    added = mask.is_floating_point() and bool(((mask == 0) | (mask <= _BLOCKED)).all())
    return mask == 0 if added else mask


def _as_rule(mask: Tensor) -> Tensor:
    """Which key each query may attend to, also where 0 and -inf are added, or more axes are there.

    Dtype and axes are the contract's.
    """
    mask = _allowed(mask)
    while mask.ndim > _AXES and mask.shape[0] == 1:
        mask = mask[0]
    return mask


def _causal_probe(candidate: Candidate) -> list[Tensor]:
    return [candidate(4), candidate(3, past=2)]


def _causal_values(candidate: Candidate, seq: int, past: int) -> Evidence:
    return equivalent(_as_rule(candidate(seq, past=past)), _expected_causal(seq, past))


causal_mask = Layer(
    "causal_mask",
    "causal_mask(seq, past=0)",
    example=lambda candidate: (candidate(3), candidate(3, past=2)),
    probe=_causal_probe,
    not_mistakes={"adds the last call"},  # nothing is added to a mask
)


@causal_mask.check("Without a past the mask is square.", weak=True)
def shape(candidate: Candidate) -> Evidence:
    return same(tuple(candidate(4).shape), (4, 4))


@causal_mask.check(
    "After a softmax of masked scores the weights of each row sum to 1.",
    name="rows sum to 1",
    weak=True,
)
def random_scores_masked(candidate: Candidate) -> Evidence:
    mask = candidate(4)
    weights = randn64(4, 4).masked_fill(mask == 0, -torch.inf).softmax(dim=-1)
    return equivalent(weights.nansum(dim=-1), torch.ones(4, dtype=torch.float64), atol=1e-12)


@causal_mask.check("The mask is of dtype bool, and has two axes.", kind="contract")
def boolean(candidate: Candidate) -> Evidence:
    return _boolean(candidate(4), _AXES)


@causal_mask.check("Query i may attend to key j where j <= i.")
def values(candidate: Candidate) -> Evidence:
    return _causal_values(candidate, 5, 0)


@causal_mask.check("With a past, query i may attend to key j where j <= i + past.")
def values_with_a_past(candidate: Candidate) -> Evidence:
    return _causal_values(candidate, 3, 4)


@causal_mask.check("A single query after a past sees all keys.")
def one_after_a_past(candidate: Candidate) -> Evidence:
    return equivalent(_as_rule(candidate(1, past=4)), torch.ones(1, 5, dtype=torch.bool))


@causal_mask.check("In torch's attention, changing value 3 of 5 moves the outputs 3 and 4 alone.")
def no_leak(candidate: Candidate) -> Evidence:
    query, key, value = (randn64(5, 3) for _ in range(3))
    changed = value.clone()
    changed[3] = randn64(3)
    mask = _as_rule(candidate(5))
    before = functional.scaled_dot_product_attention(query, key, value, mask)
    after = functional.scaled_dot_product_attention(query, key, changed, mask)
    moved = (before != after).any(dim=-1)
    return equivalent(moved, [False, False, False, True, True])


def _expected_window(seq: int, window: int, past: int = 0) -> Tensor:
    places = range(past, past + seq)
    rows = [[place - window < key <= place for key in range(past + seq)] for place in places]
    return torch.tensor(rows)


def _window_values(candidate: Candidate, seq: int, window: int, past: int) -> Evidence:
    mask = _as_rule(candidate(seq, window, past=past))
    return equivalent(mask, _expected_window(seq, window, past))


sliding_window_mask = Layer(
    "sliding_window_mask",
    "sliding_window_mask(seq, window, past=0)",
    example=lambda candidate: (candidate(3, 2), candidate(3, 2, past=2)),
    probe=lambda candidate: [candidate(6, 3), candidate(3, 2, past=4), candidate(4, 1)],
    synonyms={"window": ("window_size", "sliding_window")},
    not_mistakes={"adds the last call"},  # nothing is added to a mask
)


@sliding_window_mask.check("Without a past the mask is square.", name="shape", weak=True)
def window_shape(candidate: Candidate) -> Evidence:
    return same(tuple(candidate(4, 2).shape), (4, 4))


@sliding_window_mask.check("A window as long as the sequence hides what follows.", weak=True)
def long_window(candidate: Candidate) -> Evidence:
    return equivalent(candidate(4, 4).bool(), _expected_causal(4, 0))


@sliding_window_mask.check(
    "The mask is of dtype bool, and has two axes.", name="boolean", kind="contract"
)
def window_boolean(candidate: Candidate) -> Evidence:
    return _boolean(candidate(4, 2), _AXES)


@sliding_window_mask.check(
    "Query i may attend to key j where i - window < j <= i: to `window` keys, itself among them.",
    name="values",
)
def window_values(candidate: Candidate) -> Evidence:
    return _window_values(candidate, 6, 3, 0)


@sliding_window_mask.check("With a past, i counts from it.", name="values with a past")
def window_with_a_past(candidate: Candidate) -> Evidence:
    return _window_values(candidate, 3, 2, 4)


@sliding_window_mask.check("With a window of 1 each position sees itself alone.")
def window_of_one(candidate: Candidate) -> Evidence:
    return equivalent(_as_rule(candidate(4, 1)), torch.eye(4, dtype=torch.bool))


def _lengths() -> Tensor:
    return torch.tensor([3, 5, 1, 0])


def _of_sequences(mask: Tensor) -> Tensor:
    """The mask as (batch, 1, seq), also where it lacks the middle axis, or has one for heads."""
    mask = _allowed(mask)
    if mask.ndim == _AXES:
        return mask[:, None]
    return mask.squeeze(1) if mask.ndim > _AXES + 1 and mask.shape[1] == 1 else mask


def _padding_values(candidate: Candidate, seq: int) -> Evidence:
    expected = [[[key < length for key in range(seq)]] for length in _lengths().tolist()]
    return equivalent(_of_sequences(candidate(_lengths(), seq)), torch.tensor(expected))


padding_mask = Layer(
    "padding_mask",
    "padding_mask(lengths, seq)",
    example=lambda candidate: candidate(_lengths(), 5),
    probe=lambda candidate: [candidate(_lengths(), 6)],
)


@padding_mask.check("As many positions are allowed as a sequence is long.", weak=True)
def counts(candidate: Candidate) -> Evidence:
    allowed = candidate(_lengths(), 5).flatten(1).bool().sum(dim=1)
    return equivalent(allowed, _lengths())


@padding_mask.check("The mask is of dtype bool.", name="boolean", kind="contract")
def boolean_check(candidate: Candidate) -> Evidence:
    return same(candidate(_lengths(), 5).dtype, torch.bool)


@padding_mask.check("The mask has shape (batch, 1, seq).", name="shape", kind="contract")
def padding_shape(candidate: Candidate) -> Evidence:
    return same(tuple(candidate(_lengths(), 5).shape), (4, 1, 5))


@padding_mask.check("Key j of sequence b is allowed where j < lengths[b].", name="values")
def values_check(candidate: Candidate) -> Evidence:
    return _padding_values(candidate, 5)


@padding_mask.check("So it is where no sequence fills the columns.", name="values, all shorter")
def values_all_shorter(candidate: Candidate) -> Evidence:
    return _padding_values(candidate, 7)


@padding_mask.check(
    "Lengths in int8, uint8 and int32 give the mask of the same ones in int64, also where the "
    "sequence is longer than int8 and uint8 count.",
    kind="contract",
)
def small_integers(candidate: Candidate) -> Evidence:
    for dtype, seq in ((torch.int8, 200), (torch.uint8, 300), (torch.int32, 5)):
        lengths = torch.tensor([3, 5, 0])
        mask = _of_sequences(candidate(lengths.to(dtype), seq))
        evidence = equivalent(mask, _expected_padding(lengths, seq))
    return evidence


@padding_mask.check("In torch's attention, what the padding holds changes nothing.")
def padding_ignored(candidate: Candidate) -> Evidence:
    lengths = torch.tensor([3, 5])
    query, key, value = randn64(2, 4, 6), randn64(2, 5, 6), randn64(2, 5, 6)
    padded = value.clone()
    padded[0, 3:] = 100.0
    mask = _of_sequences(candidate(lengths, 5))
    return equivalent(
        functional.scaled_dot_product_attention(query, key, padded, mask),
        functional.scaled_dot_product_attention(query, key, value, mask),
        atol=0.0,
    )


def _expected_long(seq: int, past: int) -> Tensor:
    return torch.arange(past + seq) <= torch.arange(past, past + seq)[:, None]


def _expected_long_window(seq: int, window: int, past: int) -> Tensor:
    distances = torch.arange(past, past + seq)[:, None] - torch.arange(past + seq)
    return (distances >= 0) & (distances < window)


def _expected_padding(lengths: Tensor, seq: int) -> Tensor:
    return torch.arange(seq) < lengths[:, None, None]


def _ruled(candidate: Candidate, rule: Callable[[Tensor], Tensor] = _as_rule) -> Candidate:
    """A candidate whose mask is held against the rule."""
    return lambda *args, **kwargs: rule(candidate(*args, **kwargs))


def _by_numbers(function: Candidate, seq: int, past: int = 0) -> Any:
    return function(seq, past + seq)


def _forms(candidate: Candidate) -> Iterator[Form]:
    """Those of a function of two numbers, of queries and of keys."""
    taken = list(taken_by(candidate))
    if len(taken) > 1 and taken[1] in _KEYS:
        yield Form("it is given the numbers of queries and of keys", _by_numbers, contract=True)


causal_mask.forms = _forms
probe(
    causal_mask,
    Probing(
        pair=lambda candidate: (_ruled(candidate), _expected_causal),
        inputs=lambda batch, seq: (seq, batch),
        defaults={"past": 0},
        bare=lambda: (4,),
        large=lambda candidate, seq: [(_ruled(candidate), _expected_long, (seq, 7))],
        makes=lambda candidate: (candidate, (4,)),
        scales=(),
        half=False,
        batched=False,
    ),
)
probe(
    sliding_window_mask,
    Probing(
        pair=lambda candidate: (_ruled(candidate), _expected_window),
        inputs=lambda batch, seq: (seq, batch),
        defaults={"past": 0},
        bare=lambda: (4, 2),
        large=lambda candidate, seq: [(_ruled(candidate), _expected_long_window, (seq, 65, 7))],
        makes=lambda candidate: (candidate, (4, 2)),
        scales=(),
        half=False,
        batched=False,
    ),
)
probe(
    padding_mask,
    Probing(
        pair=lambda candidate: (_ruled(candidate, _of_sequences), _expected_padding),
        inputs=lambda batch, seq: (torch.randint(seq + 1, (batch,)), seq),
        large=lambda candidate, seq: [
            (
                _ruled(candidate, _of_sequences),
                _expected_padding,
                (torch.tensor([seq - 20, seq, 0, 64]), seq),
            )
        ],
        makes=lambda candidate: (candidate, (_lengths(), 5)),
        scales=(),
        half=False,
    ),
)
