"""Beam search on small tables, where every sequence can be ranked; and against exhaustion."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer_layers import PlainLengthPenalty
from transformer_layers.generation.beam_search import as_length_penalty, beam_search
from transformer_layers.generation.greedy import greedy_search

END, PADDING, START = 2, 0, 1


class Table:
    """A model whose next token depends on the last two, which it keeps for each row."""

    def __init__(self, logits, rows):
        self.logits = logits
        self.past = torch.full((rows,), START)

    def read(self, last):
        scores = self.logits[self.past, last[:, 0]]
        self.past = last[:, 0]
        return scores.clone()

    def reorder(self, rows):
        # what was read at this step goes with the row that it belongs to
        self.past = self.past[rows]


def random_table(vocab_size, seed, std=2.0):
    generator = torch.Generator().manual_seed(seed)
    shape = (vocab_size,) * 3
    return std * torch.randn(shape, generator=generator, dtype=torch.float64)


def search(logits, beams, most, penalty=0.0, batch=1, **options):
    table = Table(logits, batch * beams)
    first = torch.full((batch,), START)
    return beam_search(
        table.read, table.reorder, first, beams, most, END, PADDING, penalty, **options
    )


def score(logits, tokens):
    """The log-probability of a sequence."""
    past, last, total = START, START, 0.0
    for token in tokens:
        total += logits[past, last].log_softmax(-1)[token].item()
        past, last = last, token
    return total


def without_padding(row):
    tokens = row.tolist()
    return tokens[: tokens.index(END) + 1] if END in tokens else tokens


def best_of_all(logits, most, penalty):
    vocab_size = logits.shape[0]
    others = [token for token in range(vocab_size) if token != END]
    ended = [(*body, END) for n in range(most) for body in itertools.product(others, repeat=n)]
    cut = list(itertools.product(others, repeat=most))
    return max(ended + cut, key=lambda tokens: score(logits, tokens) / penalty(len(tokens)))


@pytest.mark.parametrize("alpha", [-0.5, 0.6])
@given(st.integers(0, 2**16))
def test_with_enough_beams_the_best_of_all_is_found(alpha, seed):
    logits, most = random_table(4, seed), 3
    penalty = PlainLengthPenalty(alpha)
    found = search(logits, 4**most, most, alpha, exhaustive=True)[0]
    best = best_of_all(logits, most, penalty)
    value = score(logits, without_padding(found)) / penalty(len(without_padding(found)))
    assert value == pytest.approx(score(logits, best) / penalty(len(best)), abs=1e-9)


def test_greedy_is_wrong_where_a_likely_word_leads_nowhere():
    # After the start: a with 0.6, b with 0.4. After a, all is open; after b the end is sure.
    a, b = 3, 4
    logits = torch.full((5, 5, 5), -30.0)
    logits[START, START, a], logits[START, START, b] = math.log(0.6), math.log(0.4)
    logits[START, a] = 0.0
    logits[START, b, END] = 0.0
    table = Table(logits, 1)
    greedy = greedy_search(table.read, torch.tensor([START]), 4, END, PADDING)
    assert greedy[0, 0] == a
    assert search(logits, 2, 4)[0].tolist() == [b, END]


def test_a_cut_sequence_ends_with_the_forced_token_or_is_left():
    logits = torch.full((4, 4, 4), -30.0)
    logits[..., 3] = 0.0
    assert search(logits, 2, 3, forced=END).tolist() == [[3, 3, END]]
    assert search(logits, 2, 3).tolist() == [[3, 3, 3]]
    table = Table(logits, 1)
    start = torch.tensor([START])
    assert greedy_search(table.read, start, 3, END, PADDING, forced=END).tolist() == [[3, 3, END]]


def test_banned_tokens_are_not_chosen_and_leave_other_probabilities_alone():
    logits = torch.zeros(4, 4, 4, dtype=torch.float64)
    logits[..., 3] = 5.0
    assert 3 not in search(logits, 3, 4, banned=(3,))[0].tolist()
    assert search(logits, 3, 0).shape == (1, 0)


def test_the_exhaustive_search_keeps_what_the_quick_one_loses():
    differ = 0
    for seed in range(60):
        logits, penalty = random_table(5, seed), PlainLengthPenalty(2.0)
        rows = [search(logits, 2, 8, 2.0, exhaustive=each)[0] for each in (False, True)]
        values = [
            score(logits, without_padding(row)) / penalty(len(without_padding(row))) for row in rows
        ]
        assert values[1] >= values[0] - 1e-9
        differ += values[1] > values[0] + 1e-9
    assert differ > 0


@pytest.mark.usefixtures("as_users_run_it")
def test_errors():
    with pytest.raises(ValueError, match=r"^beams must be at least 1, got 0"):
        search(torch.zeros(4, 4, 4), 0, 3)
    with pytest.raises(TypeError, match=r"^length_penalty must be a number, .* got '0.6' of type"):
        as_length_penalty("0.6")
    with pytest.raises(ValueError, match=r"^the exponent of a length penalty must be finite"):
        as_length_penalty(float("nan"))
