"""The next token, and GPT-2's `generate`, against `transformers`, by enumeration and by laws."""

import copy
import inspect
import math
import threading
from fractions import Fraction

import pytest
import torch
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from tests.transformer_layers.comparisons import with_random_weights
from transformer_layers import GPT2, GPT2Config, KeyValueCache, ready_for_inference
from transformer_layers.gpt2.evaluation import evaluating, in_evaluation
from transformer_layers.gpt2.generation import as_batch
from transformer_layers.gpt2.sampling import (
    next_token,
    next_token_distribution,
    require_sampling,
)

VOCAB, N_POSITIONS = 23, 17
seeds = st.integers(0, 2**16)


def random_model(seed=0, dropout=0.0, dtype=torch.float64, **sizes):
    torch.manual_seed(seed)
    sizes = {"n_embd": 12, "n_layer": 2, "n_head": 3} | sizes
    config = GPT2Config(vocab_size=VOCAB, n_positions=N_POSITIONS, dropout=dropout, **sizes)
    model = with_random_weights(GPT2(config), std=0.4)
    # Biases make one token the best everywhere, positions make a difference.
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1 and name.endswith("bias"):
            parameter.data.mul_(0.2)
    model.wpe.weight.data.mul_(3.0)
    return model.to(dtype).eval()


def random_ids(batch, seq, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(VOCAB, (batch, seq), generator=generator)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def random_logits(*shape, seed=0, scale=3.0):
    return scale * torch.randn(*shape, dtype=torch.float64, generator=seeded(seed))


def generated_without_cache(model, ids, max_new_tokens, *options):
    for _ in range(max_new_tokens):
        new = next_token(model(ids)[:, -1], *options)
        ids = torch.cat([ids, new[:, None]], dim=1)
    return ids


def assert_probable(counts, probabilities, false_alarm=1e-9):
    """Pearson's test: true frequencies fail it with probability `false_alarm`, about.

    That is the limit for large counts; here each expected count is 5 or more. What has probability
    0 must not be there at all.
    """
    assert not counts[probabilities == 0].any()
    counts, probabilities = counts[probabilities > 0].double(), probabilities[probabilities > 0]
    expected = counts.sum() * probabilities
    assert expected.min() >= 5
    statistic = ((counts - expected) ** 2 / expected).sum()
    freedom = torch.tensor((len(counts) - 1) / 2, dtype=torch.float64)
    assert torch.special.gammaincc(freedom, statistic / 2) > false_alarm


def test_one_default_of_the_temperature():
    functions = (GPT2.generate, GPT2.stream, next_token, next_token_distribution)
    defaults = [inspect.signature(each).parameters["temperature"].default for each in functions]
    assert defaults == [0.0, 0.0, 0.0, inspect.Parameter.empty]


# The distribution, by hand


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [1 / 10, 4 / 10, 2 / 10, 3 / 10]),
        ({"temperature": 0.5}, [1 / 30, 16 / 30, 4 / 30, 9 / 30]),
        ({"temperature": 0.0}, [0, 1, 0, 0]),
        ({"top_k": 2}, [0, 4 / 7, 0, 3 / 7]),
        ({"top_k": 3}, [0, 4 / 9, 2 / 9, 3 / 9]),
        ({"top_p": 0.3}, [0, 1, 0, 0]),
        ({"top_p": 0.6}, [0, 4 / 7, 0, 3 / 7]),
        ({"top_p": 0.8}, [0, 4 / 9, 2 / 9, 3 / 9]),
        ({"top_p": 0.95}, [1 / 10, 4 / 10, 2 / 10, 3 / 10]),
        ({"top_k": 3, "top_p": 0.42}, [0, 1, 0, 0]),  # 4 of 9 that are left
        ({"top_k": 3, "top_p": 0.7}, [0, 4 / 7, 0, 3 / 7]),
        ({"temperature": 0.5, "top_k": 3, "top_p": 0.8}, [0, 16 / 25, 0, 9 / 25]),
    ],
)
def test_the_distribution_by_hand(options, expected):
    logits = torch.tensor([1.0, 4.0, 2.0, 3.0], dtype=torch.float64).log() + 5
    expected = torch.tensor(expected, dtype=torch.float64)
    torch.testing.assert_close(
        next_token_distribution(logits, **{"temperature": 1.0} | options), expected
    )


@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=8),
    st.sampled_from([1, 2, 3]),
    st.none() | st.integers(1, 9),
    st.none() | st.integers(0, 10**6),
)
def test_the_distribution_by_enumeration(weights, power, top_k, nucleus):
    # Logits whose softmax at temperature 1 / power has the ratios weights ** power, in fractions.
    kept = {i: Fraction(weight**power) for i, weight in enumerate(weights)}
    if top_k is not None:
        least = sorted(kept.values(), reverse=True)[:top_k][-1]
        kept = {i: weight for i, weight in kept.items() if weight >= least}
    top_p = None
    if nucleus is not None:
        # Half of a unit between two integers: no sum of weights equals it.
        total = sum(kept.values())
        wanted = Fraction(nucleus % int(total)) + Fraction(1, 2)
        top_p, so_far, order = float(wanted / total), Fraction(0), []
        for i in sorted(kept, key=lambda i: (-kept[i], i)):
            if so_far < wanted:
                order.append(i)
            so_far += kept[i]
        kept = {i: kept[i] for i in order}
    total = sum(kept.values())
    expected = [float(kept.get(i, Fraction(0)) / total) for i in range(len(weights))]
    logits = torch.tensor(weights, dtype=torch.float64).log()
    actual = next_token_distribution(logits, 1 / power, top_k, top_p)
    torch.testing.assert_close(actual, torch.tensor(expected, dtype=torch.float64))


def test_of_equally_likely_tokens_top_k_keeps_all_and_top_p_the_first():
    logits = torch.tensor([0.0, 1.0, 1.0, 1.0, 0.0])
    kept = next_token_distribution(logits, 1.0, top_k=2) > 0
    assert kept.tolist() == [False, True, True, True, False]
    kept = next_token_distribution(logits, 1.0, top_p=0.5) > 0
    assert kept.tolist() == [False, True, True, False, False]
    assert next_token_distribution(logits, temperature=0.0).tolist() == [0, 1, 0, 0, 0]


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16], ids=str
)
def test_one_token_may_be_the_most_likely_by_the_last_digit(dtype):
    logits = torch.tensor([1.0, 1.0 + torch.finfo(dtype).eps, 1.0], dtype=dtype)
    assert next_token(logits).item() == 1
    assert next_token_distribution(logits, temperature=0.0).tolist() == [0, 1, 0]


# The distribution, against transformers


def distribution_of_transformers(logits, temperature, top_k, top_p):
    from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

    warpers = [TemperatureLogitsWarper(temperature)]
    warpers += [TopKLogitsWarper(top_k)] if top_k is not None else []
    warpers += [TopPLogitsWarper(top_p)] if top_p is not None else []
    for warper in warpers:
        logits = warper(None, logits)
    return logits.softmax(dim=-1)


@given(
    seeds,
    st.floats(0.1, 10),
    st.none() | st.integers(1, VOCAB + 2),
    st.none() | st.floats(0.01, 0.99),
)
def test_equals_the_warpers_of_transformers(seed, temperature, top_k, top_p):
    logits = random_logits(4, VOCAB, seed=seed)
    if top_p is not None:  # where a sum is top_p but for rounding, rounding decides
        before_top_p = distribution_of_transformers(logits, temperature, top_k, None)
        sums = before_top_p.sort(descending=True).values.cumsum(dim=-1)
        assume((sums - top_p).abs().min() > 1e-12)
    expected = distribution_of_transformers(logits, temperature, top_k, top_p)
    torch.testing.assert_close(next_token_distribution(logits, temperature, top_k, top_p), expected)


@given(
    st.lists(st.integers(-3, 3), min_size=1, max_size=12),
    st.integers(1, 13),
    st.floats(0.01, 0.99),
)
def test_equals_the_warpers_of_transformers_up_to_the_order_of_equals(logits, top_k, top_p):
    logits = torch.tensor([logits], dtype=torch.float64)
    sums = logits.softmax(-1).sort(descending=True).values.cumsum(dim=-1)
    assume((sums - top_p).abs().min() > 1e-12)
    ours = next_token_distribution(logits, 1.0, top_k=top_k)
    torch.testing.assert_close(ours, distribution_of_transformers(logits, 1.0, top_k, None))
    ours = next_token_distribution(logits, 1.0, top_p=top_p)
    theirs = distribution_of_transformers(logits, 1.0, None, top_p)
    torch.testing.assert_close(ours.sort().values, theirs.sort().values)


# The distribution, by its laws

options = st.tuples(
    st.floats(0, 1e300),
    st.none() | st.integers(1, VOCAB + 2),
    st.none() | st.floats(0, 1, exclude_min=True),
)


@given(seeds, options, st.sampled_from([torch.float64, torch.float32, torch.float16]))
@example(0, (5e-324, None, 5e-324), torch.float32)
@example(0, (1e300, 3, 1.0), torch.float16)
def test_is_a_distribution_that_keeps_the_order(seed, options, dtype):
    logits = random_logits(3, VOCAB, seed=seed).to(dtype)
    probabilities = next_token_distribution(logits, *options)
    assert probabilities.dtype == torch.promote_types(dtype, torch.float32)
    assert (probabilities >= 0).all()
    torch.testing.assert_close(probabilities.sum(dim=-1), torch.ones(3, dtype=probabilities.dtype))
    ordered = probabilities.gather(-1, logits.sort(descending=True, stable=True).indices)
    assert (ordered.diff(dim=-1) <= 0).all()
    top_k = options[1]
    if top_k is not None and dtype == torch.float64:
        assert ((probabilities > 0).sum(dim=-1) <= top_k).all()


@given(seeds, options, st.floats(-100, 100))
def test_a_constant_added_to_the_logits_changes_nothing(seed, options, constant):
    logits = random_logits(3, VOCAB, seed=seed)
    assume(options[0] == 0 or options[0] > 1e-3)  # below, the rounding of the sum is magnified
    assume(options[2] is None or options[2] < 0.999999)  # rounding decides about the last tokens
    torch.testing.assert_close(
        next_token_distribution(logits + constant, *options),
        next_token_distribution(logits, *options),
        rtol=1e-6,
        atol=1e-9,
    )


@given(seeds, options, st.permutations(range(VOCAB)))
def test_renumbered_tokens_have_the_same_probabilities(seed, options, order):
    logits = random_logits(3, VOCAB, seed=seed)
    torch.testing.assert_close(
        next_token_distribution(logits[:, order], *options),
        next_token_distribution(logits, *options)[:, order],
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


@given(seeds, st.floats(0.05, 20), st.floats(1.01, 5))
def test_more_temperature_is_more_entropy(seed, temperature, factor):
    logits = random_logits(VOCAB, seed=seed)
    cool = next_token_distribution(logits, temperature)
    warm = next_token_distribution(logits, temperature * factor)
    assert torch.special.entr(warm).sum() > torch.special.entr(cool).sum() - 1e-12
    assert warm.max() <= cool.max()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    "options", [{"top_k": 1}, {"top_p": 5e-324}, {"top_p": 1e-9}, {"temperature": 5e-324}]
)
def test_each_option_ends_at_greedy(options, dtype):
    logits = random_logits(7, VOCAB).to(dtype)
    greedy = next_token_distribution(logits, temperature=0.0)
    assert torch.equal(next_token_distribution(logits, **{"temperature": 1.0} | options), greedy)
    assert greedy.sum() == 7
    assert torch.equal(next_token(logits, **options), logits.argmax(dim=-1))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("temperature", [1e39, 1e300])
def test_an_infinite_temperature_makes_all_equal_that_are_possible(temperature, dtype):
    logits = random_logits(5, VOCAB).to(dtype)
    logits[:, 3:7] = -math.inf
    probabilities = next_token_distribution(logits, temperature)
    assert (probabilities[:, 3:7] == 0).all()
    expected = (logits > -math.inf) / (VOCAB - 4)
    torch.testing.assert_close(probabilities, expected.to(probabilities.dtype))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("temperature", [5e-324, 1e-46, 1e-39])
def test_no_temperature_at_all_is_drawn_from_the_highest(temperature, dtype):
    logits = torch.tensor([1.0, 2.0, -math.inf, 2.0]).to(dtype)
    assert next_token_distribution(logits, temperature).tolist() == [0, 0.5, 0, 0.5]


@given(seeds, st.floats(0.1, 10))
def test_options_that_leave_everything(seed, temperature):
    # In float32, with tokens so unlikely that 1 minus their probability is 1.
    logits = random_logits(2, 500, seed=seed, scale=15.0).float()
    everything = next_token_distribution(logits, temperature)
    for top_k, top_p in [(500, None), (501, None), (None, 1.0), (500, 1.0)]:
        assert torch.equal(next_token_distribution(logits, temperature, top_k, top_p), everything)


@given(seeds, st.floats(1e-12, 1e-3))
def test_a_nucleus_of_nearly_everything_drops_no_more_than_asked(seed, rest):
    logits = random_logits(2, 500, seed=seed, scale=15.0).float()
    exact = next_token_distribution(logits.double(), 1.0)
    dropped = next_token_distribution(logits, 1.0, top_p=1 - rest) == 0
    # 1 - rest is rounded to a multiple of 2 ** -53, the sum of what is dropped to 2 ** -24 of it.
    assert ((exact * dropped).sum(dim=-1) <= (1 + 1e-5) * rest + 2**-53).all()


def test_all_equal_logits():
    for value in (0.0, -1e30, 3e38):
        probabilities = next_token_distribution(torch.full((3, 8), value), 1.0)
        assert torch.equal(probabilities, torch.full((3, 8), 1 / 8))
        assert next_token(torch.full((3, 8), value)).tolist() == [0, 0, 0]
    probabilities = next_token_distribution(torch.zeros(8), 1.0, top_p=0.5)
    assert probabilities.tolist() == [0.25] * 4 + [0] * 4


def test_a_token_at_minus_infinity_is_never_drawn():
    logits = torch.full((2000, 4), -math.inf)
    logits[:, 2] = -1e30
    for options in [(1.0,), (100.0,), (1.0, 3), (1.0, None, 1.0), (0.0,)]:
        assert (next_token(logits, *options) == 2).all()


def test_gradients_pass_through_the_distribution():
    logits = random_logits(3, 7).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: next_token_distribution(x, 0.7, 5, 0.9), [logits])


# Draws


@pytest.mark.parametrize(
    "options",
    [(1.0,), (0.6,), (2.5,), (1.0, 3), (1.0, None, 0.8), (1.5, 5, 0.9)],
)
def test_draws_have_the_frequencies_of_the_distribution(options):
    logits = random_logits(8, scale=1.0)
    tokens = next_token(logits.expand(40000, 8), *options, generator=seeded(1))
    probabilities = next_token_distribution(logits, *options)
    assert_probable(torch.bincount(tokens, minlength=8), probabilities)


def test_the_test_of_frequencies_can_fail():
    logits = random_logits(8, scale=1.0)
    tokens = next_token(logits.expand(40000, 8), 1.0, generator=seeded(1))
    counts = torch.bincount(tokens, minlength=8)
    with pytest.raises(AssertionError):
        assert_probable(counts, next_token_distribution(logits, 1.1))
    with pytest.raises(AssertionError):
        assert_probable(counts, next_token_distribution(logits, 1.0, 7))


def test_draws_of_neighboring_rows_are_independent():
    pairs = next_token(random_logits(4, scale=0.5).expand(20000, 2, 4), 1.0, generator=seeded(1))
    one = next_token_distribution(random_logits(4, scale=0.5), 1.0)
    counts = torch.bincount(4 * pairs[:, 0] + pairs[:, 1], minlength=16)
    assert_probable(counts, torch.outer(one, one).flatten())


# Generation, against the model and transformers


@given(
    st.integers(1, 3),
    st.integers(1, 8),
    st.integers(0, 9),
    st.sampled_from([(12, 3, 2), (8, 1, 1), (10, 5, 3)]),
    seeds,
)
@settings(max_examples=30)
def test_tokens_are_the_same_without_a_cache(batch, seq, new, sizes, seed):
    n_embd, n_head, n_layer = sizes
    model = random_model(seed, n_embd=n_embd, n_head=n_head, n_layer=n_layer)
    ids = random_ids(batch, seq, seed)
    assert torch.equal(model.generate(ids, new), generated_without_cache(model, ids, new))
    drawn = model.generate(ids, new, 1.3, 9, 0.9, seeded(seed))
    options = (1.3, 9, 0.9, seeded(seed))
    assert torch.equal(drawn, generated_without_cache(model, ids, new, *options))


def their_model(model):
    import transformers

    names = ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head")
    sizes = {name: getattr(model.config, name) for name in names}
    config = transformers.GPT2Config(**sizes, bos_token_id=None, eos_token_id=None)
    theirs = transformers.GPT2LMHeadModel(config).to(model.wte.weight.dtype).eval()
    theirs.transformer.load_state_dict(model.state_dict(), strict=True)
    return theirs


@pytest.mark.parametrize("options", [{}, {"top_k": 5}, {"top_p": 0.8}, {"top_k": 9, "top_p": 0.9}])
@pytest.mark.parametrize("stop", [None, 3])
def test_sampled_tokens_are_those_of_transformers_with_the_same_seed(options, stop):
    # In float32: what they draw from is float32 in every model, and multinomial's draws are those
    # of the dtype.
    model, ids = random_model(dtype=torch.float32), random_ids(5, 4)
    theirs = their_model(model)  # whose first weights are draws, too
    for seed in range(3):
        torch.manual_seed(seed)
        expected = theirs.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=13,
            do_sample=True,
            temperature=1.3,
            **{"top_k": 0, "top_p": 1.0} | options,
            eos_token_id=stop,
            pad_token_id=stop,
        )
        torch.manual_seed(seed)
        assert torch.equal(model.generate(ids, 13, 1.3, **options, eos_token=stop), expected)


@pytest.mark.parametrize("use_cache", [True, False])
@pytest.mark.parametrize(
    ("batch", "seq", "new", "sizes"),
    [(1, 1, 16, (12, 3, 2)), (3, 5, 12, (10, 5, 3)), (2, 9, 7, (8, 1, 1)), (4, 16, 1, (12, 4, 2))],
)
def test_greedy_tokens_are_those_of_transformers(batch, seq, new, sizes, use_cache):
    n_embd, n_head, n_layer = sizes
    model = random_model(n_embd=n_embd, n_head=n_head, n_layer=n_layer)
    ids = random_ids(batch, seq)
    expected = their_model(model).generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=new,
        do_sample=False,
        use_cache=use_cache,
    )
    assert expected.shape == (batch, seq + new)
    assert torch.equal(model.generate(ids, new), expected)


def test_sequences_have_the_frequencies_of_their_probabilities():
    model = random_model()
    with torch.no_grad():
        model.wte.weight[5:] = 0.0
    ids = random_ids(1, 3)
    options = (1.4, 4, 0.95)
    first = next_token_distribution(model(ids)[0, -1], *options)
    both = torch.zeros(VOCAB, VOCAB, dtype=torch.float64)
    for token in first.nonzero().flatten():
        logits = model(torch.cat([ids, token[None, None]], dim=1))[0, -1]
        both[token] = first[token] * next_token_distribution(logits, *options)
    tokens = model.generate(ids.expand(20000, 3), 2, *options, generator=seeded(2))
    counts = torch.bincount(VOCAB * tokens[:, 3] + tokens[:, 4], minlength=VOCAB**2)
    assert (both > 0).sum() > 6
    assert_probable(counts, both.flatten().detach())


# Generation, by its laws


def test_the_models_of_these_tests_choose_various_tokens():
    tokens = [random_model(seed).generate(random_ids(2, 4, seed), 12)[:, 4:] for seed in range(6)]
    assert min(len(row.unique()) for rows in tokens for row in rows) >= 4


def test_greedy_is_the_same_every_time_and_touches_no_generator():
    model, ids = random_model(dropout=0.5), random_ids(2, 4)
    state = torch.get_rng_state()
    first = model.generate(ids, 9)
    assert torch.equal(model.generate(ids, 9), first)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(first[:, :4], ids)


def test_a_seeded_generator_decides_everything():
    model, ids = random_model(), random_ids(3, 4)
    state = torch.get_rng_state()
    first = model.generate(ids, 12, 1.0, generator=seeded(5))
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(77)
    assert torch.equal(model.generate(ids, 12, 1.0, generator=seeded(5)), first)
    assert not torch.equal(model.generate(ids, 12, 1.0, generator=seeded(6)), first)


def test_without_a_generator_the_global_one_decides():
    model, ids = random_model(), random_ids(3, 4)
    torch.manual_seed(5)
    first = model.generate(ids, 12, 1.0)
    assert not torch.equal(model.generate(ids, 12, 1.0), first)
    torch.manual_seed(5)
    assert torch.equal(model.generate(ids, 12, 1.0), first)


@pytest.mark.parametrize("options", [{}, {"temperature": 1.0, "top_k": 3, "top_p": 0.9}])
def test_a_sequence_does_not_depend_on_the_others(options):
    model, ids = random_model(), random_ids(4, 5)
    changed = ids.clone()
    changed[[0, 2, 3]] = random_ids(3, 5, seed=1)
    before = model.generate(ids, 10, **options, generator=seeded())
    after = model.generate(changed, 10, **options, generator=seeded())
    assert torch.equal(after[1], before[1])
    assert not torch.equal(after[0], before[0])


def test_a_greedy_sequence_is_the_same_alone():
    model, ids = random_model(), random_ids(5, 4)
    alone = [model.generate(row[None], 11) for row in ids]
    assert torch.equal(model.generate(ids, 11), torch.cat(alone))


def test_top_k_of_one_is_greedy_whatever_the_temperature():
    model, ids = random_model(), random_ids(3, 4)
    assert torch.equal(model.generate(ids, 9, 50.0, top_k=1), model.generate(ids, 9))
    assert torch.equal(model.generate(ids, 9, 50.0, top_p=1e-9), model.generate(ids, 9))


@given(st.integers(0, 9))
def test_fewer_tokens_are_the_beginning_of_more(new):
    model, ids = random_model(), random_ids(2, 4)
    more = model.generate(ids, 10, 1.0, generator=seeded(3))
    assert torch.equal(model.generate(ids, new, 1.0, generator=seeded(3)), more[:, : 4 + new])


def test_dropout_is_off():
    model, ids = random_model(dropout=0.9), random_ids(2, 4)
    expected = model.generate(ids, 10)
    model.train()
    assert torch.equal(model.generate(ids, 10), expected)


def mixed_modes(model):
    model.train()
    model.h[0].eval()
    model.h[1].attn.dropout.eval()
    return model


def modes(model):
    return {name: module.training for name, module in model.named_modules()}


def test_each_module_stays_in_its_mode():
    model = mixed_modes(random_model())
    before = modes(model)
    assert len(set(before.values())) == 2
    model.generate(random_ids(2, 4), 3)
    assert modes(model) == before


def test_each_module_stays_in_its_mode_after_an_error():
    model = mixed_modes(random_model())
    before = modes(model)
    seen = []
    model.ln_f.register_forward_pre_hook(lambda module, _: seen.append(module.training))
    with pytest.raises(ValueError, match=r"ids must be in \[0, 23\)"):
        model.generate(torch.tensor([[3, VOCAB]]), 3)
    with torch.no_grad():
        model.ln_f.bias.fill_(math.nan)
    with pytest.raises(ValueError, match="must be finite, got nan in 2 of 2 rows; no token can"):
        model.generate(random_ids(2, 4), 3)
    assert seen == [False]
    assert modes(model) == before


def test_threads_that_generate_at_once_leave_each_module_in_its_mode():
    # The second begins while the first is at work, and ends after it.
    model = mixed_modes(random_model(dropout=0.9))
    before, expected = modes(model), model.generate(random_ids(2, 4), 3)
    steps = {name: threading.Event() for name in ("first begun", "second begun", "first ended")}

    def meet(*_):
        if threading.current_thread().name == "first":
            steps["first begun"].set()
            assert steps["second begun"].wait(timeout=60)
        else:
            steps["second begun"].set()
            assert steps["first ended"].wait(timeout=60)

    def generate():
        results.append(model.generate(random_ids(2, 4), 3))
        if threading.current_thread().name == "first":
            steps["first ended"].set()

    handle = model.wte.register_forward_pre_hook(meet)
    results: list[torch.Tensor] = []
    threads = [threading.Thread(target=generate, name=name) for name in ("first", "second")]
    threads[0].start()
    assert steps["first begun"].wait(timeout=60)
    threads[1].start()
    for thread in threads:
        thread.join()
    handle.remove()
    assert modes(model) == before
    assert len(results) == 2
    assert all(torch.equal(result, expected) for result in results)


def test_dropout_that_another_thread_switches_on_changes_no_token():
    model, ids = random_model(dropout=0.9), random_ids(2, 4)
    expected = model.generate(ids, 10)

    def in_another_thread(*_):
        thread = threading.Thread(target=model.train)
        thread.start()
        thread.join()

    model.ln_f.register_forward_pre_hook(in_another_thread)
    assert torch.equal(model.generate(ids, 10), expected)
    assert all(modes(model).values())


def test_evaluating_gives_a_twin_without_dropout_and_gradients():
    model = random_model(dropout=0.9).train()
    ids = random_ids(1, 3)
    with evaluating(model) as twin:
        assert model.training
        assert not any(modes(twin).values())
        assert not twin(ids).requires_grad
        assert torch.equal(twin(ids), twin(ids))
    assert twin(ids).requires_grad
    assert model(ids).requires_grad


def test_a_twin_shares_parameters_buffers_and_hooks():
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3), torch.nn.Dropout())
    model.append(model[0])  # twice in the model, once among its modules
    model.register_module("none", None)
    twin = in_evaluation(model)
    assert list(twin.state_dict()) == list(model.state_dict())
    for ours, theirs in zip(twin.state_dict().values(), model.state_dict().values(), strict=True):
        assert ours.data_ptr() == theirs.data_ptr()
    assert twin[3] is twin[0]
    assert twin.none is None
    assert twin[0] is not model[0]
    seen = []
    model[0].register_forward_hook(lambda module, *_: seen.append(module))
    twin[0](torch.zeros(1, 2))
    assert seen == [twin[0]]
    model[1].running_mean = torch.ones(3)
    assert torch.equal(twin[1].running_mean, torch.ones(3))


def test_a_twin_of_a_module_that_was_compiled_in_place_is_in_evaluation():
    model = torch.nn.Sequential(torch.nn.Dropout(0.9))
    model[0].compile(backend="eager")
    x = torch.ones(100)
    assert (in_evaluation(model)(x) == x).all()
    assert (model(x) == 0).any()


def test_no_gradient_is_recorded_and_none_is_lost():
    model, ids = random_model(), random_ids(2, 4)
    model.loss(ids).backward()
    before = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.generate(ids, 3)
    assert all(torch.equal(p.grad, before[name]) for name, p in model.named_parameters())
    with torch.inference_mode():
        inside = model.generate(ids, 3)
    assert torch.equal(inside, model.generate(ids, 3))


# Work and memory


def test_each_position_is_computed_once():
    model, computed = random_model(), []
    model.h[0].register_forward_pre_hook(lambda _, inputs: computed.append(inputs[0].shape[1]))
    model.generate(random_ids(2, 5), 8)
    assert computed == [5, 1, 1, 1, 1, 1, 1, 1]


def test_the_head_scores_the_last_position_only(monkeypatch):
    model, scored = random_model(), []
    logits = GPT2.logits
    monkeypatch.setattr(GPT2, "logits", lambda self, x: scored.append(x.shape) or logits(self, x))
    model.generate(random_ids(2, 5), 3)
    assert scored == [(2, 12)] * 3


def test_keys_and_values_stay_where_they_were_allocated(monkeypatch):
    model, places = random_model(), []
    append = KeyValueCache.append

    def recorded(self, key, value):
        result = append(self, key, value)
        places.append(tuple((x.untyped_storage().data_ptr(), x.shape[-2]) for x in result))
        return result

    monkeypatch.setattr(KeyValueCache, "append", recorded)
    model.generate(random_ids(2, 5), 8)
    assert len(places) == 8 * 2
    for layer in (0, 1):
        keys, values = zip(*places[layer::2], strict=True)
        for steps in (keys, values):
            assert len({place for place, _ in steps}) == 1
            assert [length for _, length in steps] == [5, *range(6, 13)]
    assert len({place for step in places for place, _ in step}) == 4


class Concatenations(TorchDispatchMode):
    """Records the dtypes of what is concatenated."""

    def __init__(self):
        super().__init__()
        self.dtypes = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if function.overloadpacket in (torch.ops.aten.cat, torch.ops.aten.stack):
            self.dtypes.append(result.dtype)
        return result


def test_nothing_but_tokens_is_concatenated():
    model = random_model()
    with Concatenations() as concatenations:
        model.generate(random_ids(2, 5), 8)
    assert concatenations.dtypes == [torch.int64]


def test_nothing_is_computed_for_no_new_token():
    model, calls = random_model(), []
    model.wte.register_forward_pre_hook(lambda *_: calls.append(1))
    ids = random_ids(2, 5)
    assert torch.equal(model.generate(ids, 0), ids)
    assert calls == []


# Limits


def test_up_to_the_last_position():
    model = random_model()
    assert model.generate(random_ids(2, 5), N_POSITIONS - 5).shape == (2, N_POSITIONS)
    assert model.generate(random_ids(2, N_POSITIONS), 0).shape == (2, N_POSITIONS)


@pytest.mark.parametrize(("seq", "new"), [(5, 13), (17, 1), (18, 0), (1, 10**12)])
def test_past_the_last_position_nothing_is_computed(seq, new):
    model, calls = random_model(), []
    model.wte.register_forward_pre_hook(lambda *_: calls.append(1))
    message = f"the model has n_positions = 17 positions, got a sequence of {seq + new}"
    with pytest.raises(ValueError, match=message):
        model.generate(random_ids(2, seq), new)
    assert calls == []


# Shapes and dtypes


def test_int32_tokens():
    model, ids = random_model(), random_ids(2, 5)
    for options in [(), (1.0, 4)]:
        expected = model.generate(ids, 6, *options, generator=seeded())
        actual = model.generate(ids.int(), 6, *options, generator=seeded())
        assert actual.dtype == torch.int32
        assert torch.equal(actual.long(), expected)


@pytest.mark.parametrize("options", [(), (1.0, 4, 0.9)])
def test_an_empty_batch(options):
    result = random_model().generate(torch.zeros(0, 3, dtype=torch.int64), 4, *options)
    assert result.shape == (0, 7)
    assert result.dtype == torch.int64


def test_ids_need_not_be_contiguous_and_stay_as_they_are():
    model, ids = random_model(), random_ids(5, 3).T
    kept = ids.clone()
    assert torch.equal(model.generate(ids, 4), model.generate(ids.contiguous(), 4))
    assert torch.equal(ids, kept)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_low_precision_chooses_tokens_that_are_nearly_the_best(dtype):
    model = random_model(dtype=dtype)
    tokens = model.generate(random_ids(3, 5), 10)
    logits = copy.deepcopy(model).double()(tokens[:, :-1])[:, 4:]
    chosen = logits.gather(-1, tokens[:, 5:, None])[..., 0]
    # Logits of size 10, through a stack of a dozen rounded operations.
    assert (logits.amax(dim=-1) - chosen).max() <= 100 * torch.finfo(dtype).eps
    drawn = model.generate(random_ids(3, 5), 10, 0.9, 7, 0.9, seeded())
    assert torch.equal(model.generate(random_ids(3, 5), 10, 0.9, 7, 0.9, seeded()), drawn)


def test_half_precision_is_drawn_from_in_float32():
    # 60000 tokens of one probability: their sum is no number of float16.
    logits = torch.zeros(60000, dtype=torch.float16)
    probabilities = next_token_distribution(logits, 1.0, top_p=0.5)
    assert probabilities.dtype == torch.float32
    assert abs((probabilities > 0).sum().item() - 30000) < 10


def test_a_copy_of_the_model_generates_the_same():
    model, ids = random_model(), random_ids(2, 4)
    assert torch.equal(copy.deepcopy(model).generate(ids, 6), model.generate(ids, 6))


# The end of a sequence


def test_a_sequence_ends_with_the_first_stop_token():
    model, ids = random_model(), random_ids(1, 4)
    tokens = model.generate(ids, 10)[0]
    stop = tokens[8].item()
    first = 4 + tokens[4:].tolist().index(stop)
    assert torch.equal(model.generate(ids, 10, eos_token=stop)[0], tokens[: first + 1])
    other = tokens[6].item()
    first = min(first, 4 + tokens[4:].tolist().index(other))
    assert torch.equal(model.generate(ids, 10, eos_token=[stop, other])[0], tokens[: first + 1])
    unused = next(token for token in range(VOCAB) if token not in tokens)
    assert torch.equal(model.generate(ids, 10, eos_token=unused)[0], tokens)
    assert torch.equal(model.generate(ids, 0, eos_token=stop), ids)


@given(seeds, st.lists(st.integers(0, VOCAB - 1), min_size=1, max_size=6))
@settings(max_examples=25)
def test_in_a_batch_each_row_ends_by_itself_and_is_filled_up(seed, stops):
    model, ids = random_model(seed), random_ids(4, 3, seed)
    whole = model.generate(ids, 12)[:, 3:].tolist()
    ends = [next((i for i, token in enumerate(row) if token in stops), 11) for row in whole]
    expected = [
        [*row[: end + 1], *[stops[0]] * (max(ends) - end)]
        for row, end in zip(whole, ends, strict=True)
    ]
    assert model.generate(ids, 12, eos_token=tuple(stops))[:, 3:].tolist() == expected


@pytest.mark.parametrize("several", [False, True])
def test_stop_tokens_are_those_of_transformers(several):
    model, ids = random_model(), random_ids(4, 3)
    tokens = model.generate(ids, 14)[:, 3:]
    stops = [tokens[0, 5].item(), tokens[1, 3].item()]
    eos_token = stops if several else stops[0]
    expected = their_model(model).generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=14,
        do_sample=False,
        eos_token_id=eos_token,
        pad_token_id=stops[0],
    )
    assert torch.equal(model.generate(ids, 14, eos_token=eos_token), expected)


def test_nothing_is_computed_after_all_have_ended():
    model, calls = random_model(), []
    ids = random_ids(1, 4)
    stop = model.generate(ids, 1)[0, -1].item()
    model.wte.register_forward_pre_hook(lambda *_: calls.append(1))
    assert model.generate(ids, 10, eos_token=stop).shape == (1, 5)
    assert calls == [1]


# Prompts of different lengths


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(0, 8), seeds)
@example([9, 1, 4], 8, 0)
@settings(max_examples=25)
def test_prompts_of_different_lengths_get_the_tokens_that_each_gets_alone(lengths, new, seed):
    model = random_model(seed)
    prompts = [random_ids(1, length, seed + i)[0] for i, length in enumerate(lengths)]
    alone = [model.generate(prompt[None], new)[0] for prompt in prompts]
    found = model.generate(prompts, new)
    assert [each.tolist() for each in found] == [each.tolist() for each in alone]
    stop = alone[0][-1].item()
    alone = [model.generate(prompt[None], new, eos_token=stop)[0] for prompt in prompts]
    found = model.generate(prompts, new, eos_token=stop)
    assert [each.tolist() for each in found] == [each.tolist() for each in alone]


def test_prompts_of_different_lengths_get_the_tokens_of_transformers():
    model = random_model()
    prompts = [random_ids(1, length, length)[0] for length in (2, 7, 5)]
    padded = torch.nn.utils.rnn.pad_sequence(prompts, batch_first=True, padding_side="left")
    mask = torch.tensor([[0] * (7 - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    expected = their_model(model).generate(
        padded, attention_mask=mask, max_new_tokens=10, do_sample=False, pad_token_id=0
    )
    found = model.generate(prompts, 10)
    for ours, prompt, theirs in zip(found, prompts, expected, strict=True):
        assert torch.equal(ours, torch.cat([prompt, theirs[7:]]))


def test_padding_gets_no_weight_and_no_position():
    model, ids = random_model(), random_ids(2, 6)
    padding = torch.tensor([2, 0])
    caches = model.new_caches(2, 9, padding)
    before = model(ids, caches)
    changed = ids.clone()
    changed[0, :2] = (ids[0, :2] + 1) % VOCAB
    others = model.new_caches(2, 9, padding)
    assert torch.equal(model(changed, others)[0, 2:], before[0, 2:])
    torch.testing.assert_close(before[0, 2:], model(ids[0, 2:]))
    torch.testing.assert_close(before[1], model(ids[1]))
    pieces = [model(piece, caches) for piece in (ids[:, :1], ids[:, 1:3])]
    whole = torch.cat([ids, ids[:, :3]], dim=1)
    torch.testing.assert_close(torch.cat(pieces, 1)[0], model(whole[0, 2:])[4:])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_model_made_ready_for_inference_takes_prompts_of_different_lengths(dtype):
    ready = ready_for_inference(random_model(dtype=torch.float32), dtype)
    prompts = [random_ids(1, length, length)[0] for length in (2, 7, 5)]
    batch, padding = as_batch(prompts)
    logits = ready(batch, ready.new_caches(3, 7, padding))
    for prompt, row in zip(prompts, logits, strict=True):
        eps = torch.finfo(dtype).eps
        torch.testing.assert_close(
            row[7 - len(prompt) :], ready(prompt[None])[0], rtol=0, atol=60 * eps
        )


def test_prompts_keep_their_dtype_and_are_no_views_of_the_result():
    model = random_model()
    prompts = [random_ids(1, 2)[0].int(), random_ids(1, 5)[0].int()]
    for new in (0, 3):
        found = model.generate(prompts, new)
        assert [each.dtype for each in found] == [torch.int32] * 2
        assert [len(each) for each in found] == [2 + new, 5 + new]
        found[0].fill_(1)
        assert torch.equal(prompts[0], random_ids(1, 2)[0].int())


def test_prompts_of_different_lengths_up_to_the_last_position():
    model = random_model()
    prompts = [random_ids(1, 2)[0], random_ids(1, 7)[0]]
    assert [len(each) for each in model.generate(prompts, N_POSITIONS - 7)] == [12, N_POSITIONS]
    with pytest.raises(ValueError, match="n_positions = 17 positions, got a sequence of 18"):
        model.generate(prompts, N_POSITIONS - 6)


# Token by token


@pytest.mark.parametrize("options", [{}, {"temperature": 1.0, "top_k": 5, "top_p": 0.9}])
def test_a_stream_gives_the_tokens_of_generate(options):
    model, ids = random_model(), random_ids(3, 4)
    tokens = list(model.stream(ids, 9, **options, generator=seeded()))
    assert [each.shape for each in tokens] == [(3,)] * 9
    expected = model.generate(ids, 9, **options, generator=seeded())
    assert torch.equal(torch.stack(tokens, dim=1), expected[:, 4:])
    assert [each.dtype for each in model.stream(ids.int(), 2)] == [torch.int32] * 2


def test_a_stream_computes_a_token_when_it_is_asked_for():
    model, calls = random_model(), []
    model.wte.register_forward_pre_hook(lambda *_: calls.append(1))
    stream = model.stream(random_ids(2, 4), 9)
    assert calls == []
    for count in range(1, 4):
        next(stream)
        assert len(calls) == count


def test_a_stream_leaves_gradients_and_modes_to_its_caller():
    model = random_model(dropout=0.5).train()
    for _ in model.stream(random_ids(1, 4), 2):
        assert torch.is_grad_enabled()
        assert all(modes(model).values())
        assert model(random_ids(1, 2)).requires_grad


@pytest.mark.usefixtures("as_users_run_it")
def test_a_stream_refuses_arguments_before_its_first_token():
    with pytest.raises(ValueError, match=r"^top_k must be at least 1, got 0$"):
        random_model().stream(random_ids(1, 4), 2, 1.0, 0)


# Autocast


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_under_autocast_as_without_a_cache(dtype):
    model, ids = random_model(dtype=torch.float32), random_ids(3, 4)
    with torch.autocast("cpu", dtype=dtype):
        tokens = model.generate(ids, 9)
        caches = model.new_caches(3, 13)
        pieces = [model(piece, caches) for piece in tokens.split([4, 5, 1, 1, 1, 1], dim=1)]
        whole = model(tokens)
    keys, _ = caches[0].append(*torch.zeros(2, 3, 3, 0, 4, dtype=dtype))
    assert keys.dtype == dtype
    # Logits of size 10; the kernels of one position and of several round differently.
    error = (torch.cat(pieces, dim=1) - whole).abs().max()
    assert error <= 100 * torch.finfo(dtype).eps
    chosen = whole[:, 3:-1].gather(-1, tokens[:, 4:, None])[..., 0]
    assert (whole[:, 3:-1].amax(dim=-1) - chosen).max() <= error


def test_autocast_leaves_caches_of_float64_alone():
    model, ids = random_model(), random_ids(3, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(model.generate(ids, 9), random_model().generate(ids, 9))
    with torch.device("meta"), torch.autocast("cpu", dtype=torch.bfloat16):
        assert "float32, meta" in repr(GPT2(model.config).new_caches(1, 2)[0])


# Errors


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize("new", [0, 2])
@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        ([3, 4], TypeError, r"^ids must be a tensor of int64 or int32, got a list; make one with"),
        ([[3, 4]], TypeError, r"^ids must be a tensor of int64 or int32, got a list; make one wi"),
        ("text", TypeError, r"^ids must be a tensor of int64 or int32, got a str; make one with"),
        ([], ValueError, r"^a list of ids must hold a prompt or more, .*, got shapes \[\]$"),
        (
            [torch.tensor([3]), torch.tensor([[3]])],
            ValueError,
            r"each of shape \(seq,\) with one position or more, got shapes \[\(1,\), \(1, 1\)\]$",
        ),
        ([torch.zeros(0).long()], ValueError, r"one position or more, got shapes \[\(0,\)\]$"),
        (
            [torch.tensor([3.0])],
            TypeError,
            "^each prompt must be a tensor of int64 or int32, got t",
        ),
        ([torch.tensor([23])], ValueError, r"^ids must be in \[0, 23\), got values from 23 to 23$"),
        (
            torch.tensor([[3, 23]]),
            ValueError,
            r"^ids must be in \[0, 23\), got values from 3 to 23$",
        ),
        (
            torch.tensor([[-1, 3]]),
            ValueError,
            r"^ids must be in \[0, 23\), got values from -1 to 3$",
        ),
    ],
)
def test_errors_of_prompts(ids, new, error, message):
    with pytest.raises(error, match=message):
        random_model().generate(ids, new)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("eos_token", "error", "message"),
    [
        (23, ValueError, r"^eos_token must be a token or several, in \[0, 23\), got 23$"),
        ([3, 40], ValueError, r"in \[0, 23\), got \[3, 40\]$"),
        ((), ValueError, r"in \[0, 23\), got \(\)$"),
        (-1, ValueError, "^eos_token must be at least 0, got -1$"),
        (2.0, TypeError, "^eos_token must be an int, got 2.0 of type float$"),
        (["."], TypeError, "^eos_token must be an int, got '.' of type str$"),
    ],
)
def test_errors_of_stop_tokens(eos_token, error, message):
    with pytest.raises(error, match=message):
        random_model().generate(random_ids(1, 3), 2, eos_token=eos_token)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ((-0.1,), ValueError, "temperature must be 0 or a finite number above, got -0.1"),
        ((math.inf,), ValueError, "temperature must be 0 or a finite number above, got inf"),
        ((math.nan,), ValueError, "temperature must be 0 or a finite number above, got nan"),
        ((1.0, 0), ValueError, "top_k must be at least 1, got 0"),
        ((0.0, -3), ValueError, "top_k must be at least 1, got -3"),
        ((1.0, 2.0), TypeError, "top_k must be an int, got 2.0 of type float"),
        ((1.0, True), TypeError, "top_k must be an int, got True of type bool"),
        ((1.0, None, 0.0), ValueError, "top_p must be above 0 and at most 1, got 0.0"),
        ((1.0, None, 1.1), ValueError, "top_p must be above 0 and at most 1, got 1.1"),
        ((0.0, None, -1), ValueError, "top_p must be above 0 and at most 1, got -1"),
        ((1.0, None, math.nan), ValueError, "top_p must be above 0 and at most 1, got nan"),
    ],
)
def test_errors_of_options(options, error, message):
    for call in (
        lambda: next_token_distribution(torch.zeros(3), *options),
        lambda: next_token(torch.zeros(3), *options),
        lambda: random_model().generate(random_ids(2, 3), 4, *options),
        lambda: random_model().generate(random_ids(2, 3), 0, *options),
        lambda: require_sampling(*options, *[None] * (3 - len(options))),
    ):
        with pytest.raises(error, match=message):
            call()


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize(
    ("logits", "error", "message"),
    [
        (torch.zeros(3, dtype=torch.int64), TypeError, "logits must be a floating-point tensor"),
        (torch.zeros(()), ValueError, r"last axis of one token or more, got shape \(\)"),
        (torch.zeros(2, 0), ValueError, r"last axis of one token or more, got shape \(2, 0\)"),
        (
            torch.tensor([[0.0, math.nan], [1.0, 0.0], [math.nan, math.inf]]),
            ValueError,
            "the highest logit of each row must be finite, got nan in 2 of 3 rows; no token can be "
            "chosen",
        ),
        (torch.tensor([math.inf, 0.0]), ValueError, "must be finite, got inf in 1 of 1 rows"),
        (torch.full((4, 2), -math.inf), ValueError, "must be finite, got -inf in 4 of 4 rows"),
    ],
)
def test_errors_of_logits(logits, error, message, temperature):
    for function in (next_token_distribution, next_token):
        with pytest.raises(error, match=message):
            function(logits, temperature)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("ids", "max_new_tokens", "error", "message"),
    [
        (torch.tensor([3]), 2, ValueError, r"got \(1,\); a single sequence is ids\[None\]"),
        (torch.tensor(3), 2, ValueError, r"ids must be of shape \(batch, seq\) .*, got \(\)"),
        (torch.zeros(2, 0).long(), 2, ValueError, r"one position or more, got \(2, 0\)"),
        (torch.zeros(1, 2, 3).long(), 2, ValueError, r"got \(1, 2, 3\)"),
        (
            torch.tensor([[3.0]]),
            2,
            TypeError,
            "ids must be a tensor of int64 or int32, got torch.f",
        ),
        (torch.tensor([[3.0]]), 0, TypeError, "ids must be a tensor of int64 or int32, got torch"),
        (torch.tensor([[3]]), -1, ValueError, "max_new_tokens must be at least 0, got -1"),
        (torch.tensor([[3]]), 2.0, TypeError, "max_new_tokens must be an int, got 2.0"),
        (torch.tensor([[3]]), True, TypeError, "max_new_tokens must be an int, got True"),
        (torch.tensor([[3, 23]]), 2, ValueError, r"ids must be in \[0, 23\), got .* 3 to 23"),
        (torch.tensor([[-1, 2]]), 2, ValueError, r"ids must be in \[0, 23\), got .* -1 to 2"),
    ],
)
def test_errors_of_generate(ids, max_new_tokens, error, message):
    with pytest.raises(error, match=message):
        random_model().generate(ids, max_new_tokens)
