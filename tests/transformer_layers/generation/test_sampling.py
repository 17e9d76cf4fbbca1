"""The distribution of the next token and draws from it, by enumeration, laws and `transformers`."""

import math

import pytest
import torch
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.transformer_layers.models.gpt2.models import (
    VOCAB,
    assert_probable,
    seeded,
    seeds,
)
from transformer_layers.generation.sampling import (
    next_token,
    next_token_distribution,
    penalized,
    require_sampling,
)


def random_logits(*shape, seed=0, scale=3.0):
    return scale * torch.randn(*shape, dtype=torch.float64, generator=seeded(seed))


# The distribution, by hand


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [1 / 10, 4 / 10, 2 / 10, 3 / 10]),
        ({"temperature": 0.0}, [0, 1, 0, 0]),
        ({"top_k": 2}, [0, 4 / 7, 0, 3 / 7]),
        ({"top_p": 0.6}, [0, 4 / 7, 0, 3 / 7]),
        ({"top_k": 3, "top_p": 0.42}, [0, 1, 0, 0]),  # 4 of 9 that are left
        ({"temperature": 0.5, "top_k": 3, "top_p": 0.8}, [0, 16 / 25, 0, 9 / 25]),
        ({"min_p": 1.0}, [0, 1, 0, 0]),
        ({"min_p": 0.3, "temperature": 0.5}, [0, 16 / 25, 0, 9 / 25]),  # the ratio of squares
        ({"min_p": 0.6, "top_p": 0.85}, [0, 4 / 7, 0, 3 / 7]),
    ],
)
def test_the_distribution_by_hand(options, expected):
    logits = torch.tensor([1.0, 4.0, 2.0, 3.0], dtype=torch.float64).log() + 5
    expected = torch.tensor(expected, dtype=torch.float64)
    torch.testing.assert_close(
        next_token_distribution(logits, **{"temperature": 1.0} | options), expected
    )


def test_of_equally_likely_tokens_top_k_keeps_all_and_top_p_the_first():
    logits = torch.tensor([0.0, 1.0, 1.0, 1.0, 0.0])
    kept = next_token_distribution(logits, 1.0, top_k=2) > 0
    assert kept.tolist() == [False, True, True, True, False]
    kept = next_token_distribution(logits, 1.0, top_p=0.5) > 0
    assert kept.tolist() == [False, True, True, False, False]
    assert next_token_distribution(logits, temperature=0.0).tolist() == [0, 1, 0, 0, 0]


# The distribution, against transformers


def distribution_of_transformers(
    logits, temperature, top_k, top_p, min_p=None, text=None, penalty=1.0
):
    from transformers import (
        MinPLogitsWarper,
        RepetitionPenaltyLogitsProcessor,
        TemperatureLogitsWarper,
        TopKLogitsWarper,
        TopPLogitsWarper,
    )

    warpers = [] if text is None else [RepetitionPenaltyLogitsProcessor(penalty)]
    warpers += [TemperatureLogitsWarper(temperature)]
    warpers += [TopKLogitsWarper(top_k)] if top_k is not None else []
    warpers += [TopPLogitsWarper(top_p)] if top_p is not None else []
    warpers += [MinPLogitsWarper(min_p)] if min_p is not None else []
    for warper in warpers:
        logits = warper(text, logits)
    return logits.softmax(dim=-1)


@given(
    seeds,
    st.floats(0.1, 10),
    st.none() | st.integers(1, VOCAB + 2),
    st.none() | st.floats(0.01, 0.99),
    st.none() | st.floats(0, 1),
    st.floats(0.1, 10),
    st.integers(1, 2 * VOCAB),
)
@example(0, 0.7, 9, 0.9, 0.1, 1.2, 5)
def test_all_options_together_are_those_of_transformers_in_its_order(
    seed, temperature, top_k, top_p, min_p, penalty, seq
):
    logits = random_logits(4, VOCAB, seed=seed)
    text = torch.randint(VOCAB, (4, seq), generator=seeded(seed))
    options = text, penalty
    before = distribution_of_transformers(logits, temperature, top_k, None, None, *options)
    if top_p is not None:
        sums = before.sort(descending=True).values.cumsum(dim=-1)
        assume((sums - top_p).abs().min() > 1e-12)
    if min_p is not None:
        assume((before / before.amax(dim=-1, keepdim=True) - min_p).abs().min() > 1e-12)
    expected = distribution_of_transformers(logits, temperature, top_k, top_p, min_p, *options)
    found = penalized(logits, text, penalty)
    found = next_token_distribution(found, temperature, top_k, top_p, min_p=min_p)
    torch.testing.assert_close(found, expected)


# The penalty of repetition


def test_the_penalty_by_hand():
    logits = torch.tensor([[2.0, -1.0, 0.0, 4.0, -6.0], [2.0, -1.0, 0.0, 4.0, -6.0]])
    text = torch.tensor([[0, 1, 2, 0], [4, 4, 4, 4]])
    assert penalized(logits, text, 2.0).tolist() == [[1, -2, 0, 4, -6], [2, -1, 0, 4, -12]]
    assert penalized(logits, text.int(), 0.5).tolist() == [[4, -0.5, 0, 4, -6], [2, -1, 0, 4, -3]]
    assert logits.tolist() == [[2, -1, 0, 4, -6]] * 2


# The distribution, by its laws

options = st.tuples(
    st.floats(0, 1e300),
    st.none() | st.integers(1, VOCAB + 2),
    st.none() | st.floats(0, 1, exclude_min=True),
)


@given(seeds, options, st.sampled_from([(5,), (2, 3), (VOCAB,), (VOCAB, VOCAB), (0,), (4, 0)]))
@example(0, (1.0, 2, None), (VOCAB,))
@settings(max_examples=40)
def test_each_row_is_chosen_from_by_itself(seed, options, leading):
    # As many rows as tokens: there a threshold of shape (batch,) would broadcast along the tokens.
    logits = random_logits(*leading, VOCAB, seed=seed)
    together = next_token_distribution(logits, *options)
    assert together.shape == logits.shape
    alone = [next_token_distribution(row, *options) for row in logits.reshape(-1, VOCAB)]
    if alone:
        assert torch.equal(together.reshape(-1, VOCAB), torch.stack(alone))
    assert next_token(logits, *options).shape == leading


@pytest.mark.parametrize(("temperature", "dtype"), [(1e39, torch.float16), (1e300, torch.float64)])
def test_an_infinite_temperature_makes_all_equal_that_are_possible(temperature, dtype):
    logits = random_logits(5, VOCAB).to(dtype)
    logits[:, 3:7] = -math.inf
    probabilities = next_token_distribution(logits, temperature)
    assert (probabilities[:, 3:7] == 0).all()
    expected = (logits > -math.inf) / (VOCAB - 4)
    torch.testing.assert_close(probabilities, expected.to(probabilities.dtype))


@pytest.mark.parametrize(
    ("temperature", "dtype"), [(5e-324, torch.float64), (1e-39, torch.float16)]
)
def test_no_temperature_at_all_is_drawn_from_the_highest(temperature, dtype):
    logits = torch.tensor([1.0, 2.0, -math.inf, 2.0]).to(dtype)
    assert next_token_distribution(logits, temperature).tolist() == [0, 0.5, 0, 0.5]


def test_gradients_pass_through_the_distribution():
    logits = random_logits(3, 7).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: next_token_distribution(x, 0.7, 5, 0.9), [logits])


# Draws


@pytest.mark.parametrize(
    "options",
    [(0.6,), (1.5, 5, 0.9)],
)
def test_draws_have_the_frequencies_of_the_distribution(options):
    logits = random_logits(8, scale=1.0)
    tokens = next_token(logits.expand(40000, 8), *options, generator=seeded(1))
    probabilities = next_token_distribution(logits, *options)
    assert_probable(torch.bincount(tokens, minlength=8), probabilities)


def test_draws_are_decided_by_the_generator_or_else_by_the_global_one():
    logits = random_logits(30, 8, scale=0.5)
    drawn = [next_token(logits, 1.0, generator=seeded(seed)) for seed in (3, 3, 4)]
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])
    for seed, expected in zip((3, 4), drawn[1:], strict=True):
        torch.manual_seed(seed)
        assert torch.equal(next_token(logits, 1.0), expected)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ((-0.1,), ValueError, "temperature must be 0 or a finite number above, got -0.1"),
        ((1.0, 0), ValueError, "top_k must be at least 1, got 0"),
        ((1.0, 2.0), TypeError, "top_k must be an int, got 2.0 of type float"),
        ((1.0, None, 0.0), ValueError, "top_p must be above 0 and at most 1, got 0.0"),
    ],
)
def test_errors_of_options(options, error, message):
    for call in (
        lambda: next_token_distribution(torch.zeros(3), *options),
        lambda: next_token(torch.zeros(3), *options),
        lambda: require_sampling(*options, *[None] * (3 - len(options))),
    ):
        with pytest.raises(error, match=message):
            call()


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("logits", "error", "message"),
    [
        (torch.zeros(3, dtype=torch.int64), TypeError, "logits must be a floating-point tensor"),
        (torch.zeros(2, 0), ValueError, r"last axis of one token or more, got shape \(2, 0\)"),
        (
            torch.tensor([[0.0, math.nan], [1.0, 0.0], [math.nan, math.inf]]),
            ValueError,
            "the highest logit of each row must be finite, got nan in 2 of 3 rows; no token can be "
            "chosen",
        ),
    ],
)
def test_errors_of_logits(logits, error, message):
    for function in (next_token_distribution, next_token):
        with pytest.raises(error, match=message):
            function(logits, 1.0)
