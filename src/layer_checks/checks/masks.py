"""The checks of `causal_mask` and `padding_mask`, written out for each query and key."""

import torch
from torch import Tensor
from torch.nn import functional

from layer_checks.candidates import randn64, same
from layer_checks.definitions import Candidate, Check, Layer
from layer_checks.evidence import Evidence, equivalent
from layer_checks.wrong.masks import WRONG_CAUSAL_MASKS, WRONG_PADDING_MASKS


def _expected_causal(seq: int, past: int) -> Tensor:
    rows = [[key <= query + past for key in range(past + seq)] for query in range(seq)]
    return torch.tensor(rows)


def _boolean(mask: Tensor) -> Evidence:
    return same(mask.dtype, torch.bool)


def _causal_probe(candidate: Candidate) -> list[Tensor]:
    return [candidate(4), candidate(3, past=2)]


def _causal_shape(candidate: Candidate) -> Evidence:
    return same(tuple(candidate(4).shape), (4, 4))


def _random_scores_masked(candidate: Candidate) -> Evidence:
    mask = candidate(4)
    weights = randn64(4, 4).masked_fill(mask == 0, -torch.inf).softmax(dim=-1)
    return equivalent(weights.nansum(dim=-1), torch.ones(4, dtype=torch.float64), atol=1e-12)


def _causal_values(candidate: Candidate, seq: int, past: int) -> Evidence:
    return equivalent(candidate(seq, past=past), _expected_causal(seq, past))


def _after_the_past(candidate: Candidate) -> Evidence:
    return equivalent(candidate(1, past=4), torch.ones(1, 5, dtype=torch.bool))


def _no_leak(candidate: Candidate) -> Evidence:
    query, key, value = (randn64(5, 3) for _ in range(3))
    changed = value.clone()
    changed[3] = randn64(3)
    mask = candidate(5)
    before = functional.scaled_dot_product_attention(query, key, value, mask)
    after = functional.scaled_dot_product_attention(query, key, changed, mask)
    moved = (before != after).any(dim=-1)
    return equivalent(moved, [False, False, False, True, True])


CAUSAL_MASK = Layer(
    name="causal_mask",
    signature="causal_mask(seq, past=0)",
    example=lambda candidate: (candidate(3), candidate(3, past=2)),
    probe=_causal_probe,
    wrong_versions=WRONG_CAUSAL_MASKS,
    checks=(
        Check(
            "shape",
            "Without a past the mask is square.",
            _causal_shape,
            weak=True,
        ),
        Check(
            "rows sum to 1",
            "After a softmax of masked scores the weights of each row sum to 1.",
            _random_scores_masked,
            weak=True,
        ),
        Check(
            "boolean",
            "The mask is of dtype bool.",
            lambda candidate: _boolean(candidate(4)),
        ),
        Check(
            "values",
            "Query i may attend to key j where j <= i.",
            lambda candidate: _causal_values(candidate, 5, 0),
        ),
        Check(
            "values with a past",
            "With a past, query i may attend to key j where j <= i + past.",
            lambda candidate: _causal_values(candidate, 3, 4),
        ),
        Check("one after a past", "A single query after a past sees all keys.", _after_the_past),
        Check(
            "no leak",
            "In torch's attention, changing value 3 of 5 moves the outputs 3 and 4 alone.",
            _no_leak,
        ),
    ),
)


def _lengths() -> Tensor:
    return torch.tensor([3, 5, 1, 0])


def _padding_shape(candidate: Candidate) -> Evidence:
    return same(tuple(candidate(_lengths(), 5).shape), (4, 1, 5))


def _counts(candidate: Candidate) -> Evidence:
    allowed = candidate(_lengths(), 5).flatten(1).bool().sum(dim=1)
    return equivalent(allowed, _lengths())


def _padding_values(candidate: Candidate, seq: int) -> Evidence:
    expected = [[[key < length for key in range(seq)]] for length in _lengths().tolist()]
    return equivalent(candidate(_lengths(), seq), torch.tensor(expected))


def _padding_ignored(candidate: Candidate) -> Evidence:
    lengths = torch.tensor([3, 5])
    query, key, value = randn64(2, 4, 6), randn64(2, 5, 6), randn64(2, 5, 6)
    padded = value.clone()
    padded[0, 3:] = 100.0
    mask = candidate(lengths, 5)
    return equivalent(
        functional.scaled_dot_product_attention(query, key, padded, mask),
        functional.scaled_dot_product_attention(query, key, value, mask),
        atol=0.0,
    )


PADDING_MASK = Layer(
    name="padding_mask",
    signature="padding_mask(lengths, seq)",
    example=lambda candidate: candidate(_lengths(), 5),
    probe=lambda candidate: [candidate(_lengths(), 6)],
    wrong_versions=WRONG_PADDING_MASKS,
    checks=(
        Check(
            "counts",
            "As many positions are allowed as a sequence is long.",
            _counts,
            weak=True,
        ),
        Check(
            "boolean",
            "The mask is of dtype bool.",
            lambda candidate: _boolean(candidate(_lengths(), 5)),
        ),
        Check("shape", "The mask has shape (batch, 1, seq).", _padding_shape),
        Check(
            "values",
            "Key j of sequence b is allowed where j < lengths[b].",
            lambda candidate: _padding_values(candidate, 5),
        ),
        Check(
            "values, all shorter",
            "So it is where no sequence fills the columns.",
            lambda candidate: _padding_values(candidate, 7),
        ),
        Check(
            "padding ignored",
            "In torch's attention, what the padding holds changes nothing.",
            _padding_ignored,
        ),
    ),
)
