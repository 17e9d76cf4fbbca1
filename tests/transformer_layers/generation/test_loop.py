"""GPT-2's `generate` and `stream`, against the model without a cache, `transformers` and laws."""

import math

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.transformer_layers.models.gpt2.models import (
    VOCAB,
    modes,
    random_ids,
    random_model,
    seeded,
    seeds,
)

# Generation, against the model and transformers


def their_model(model):
    import transformers

    names = ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head")
    sizes = {name: getattr(model.config, name) for name in names}
    config = transformers.GPT2Config(**sizes, bos_token_id=None, eos_token_id=None)
    theirs = transformers.GPT2LMHeadModel(config).to(model.wte.weight.dtype).eval()
    theirs.transformer.load_state_dict(model.state_dict(), strict=True)
    return theirs


@pytest.mark.parametrize(("options", "stop"), [({"top_k": 9, "top_p": 0.9}, 3), ({}, None)])
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


# Generation, by its laws


def mixed_modes(model):
    model.train()
    model.h[0].eval()
    model.h[1].attn.dropout.eval()
    return model


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


# Work and memory


def test_each_position_is_computed_once():
    model, computed = random_model(), []
    model.h[0].register_forward_pre_hook(lambda _, inputs: computed.append(inputs[0].shape[1]))
    model.generate(random_ids(2, 5), 8)
    assert computed == [5, 1, 1, 1, 1, 1, 1, 1]


# Limits


@pytest.mark.parametrize(("seq", "new"), [(5, 13), (1, 10**12)])
def test_past_the_last_position_nothing_is_computed(seq, new):
    model, calls = random_model(), []
    model.wte.register_forward_pre_hook(lambda *_: calls.append(1))
    message = f"the model has 17 positions, got a sequence of {seq + new}"
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


# The end of a sequence


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


# Penalty of repetition, and min_p


def test_all_options_together_draw_the_tokens_of_transformers():
    model, ids = random_model(dtype=torch.float32), random_ids(5, 4)
    theirs = their_model(model)
    options = {"temperature": 1.3, "top_k": 12, "top_p": 0.95, "min_p": 0.05}
    options["repetition_penalty"] = 1.2
    for seed in range(3):
        torch.manual_seed(seed)
        mask = torch.ones_like(ids)
        expected = theirs.generate(
            ids, attention_mask=mask, max_new_tokens=13, do_sample=True, **options
        )
        torch.manual_seed(seed)
        assert torch.equal(model.generate(ids, 13, **options), expected)


def test_padding_is_not_penalized():
    # A penalty of next to nothing repeats what stands in the text, and nothing else.
    model = random_model()
    prompts = [torch.tensor([7, 9]), torch.tensor([5] * 7), torch.tensor([3])]
    for penalty in (1e-6, 1.3, 20.0):
        alone = [model.generate(row[None], 8, repetition_penalty=penalty)[0] for row in prompts]
        found = model.generate(prompts, 8, repetition_penalty=penalty)
        assert [each.tolist() for each in found] == [each.tolist() for each in alone]


# What else ends a sequence


def ends_with(*tokens):
    return lambda new: new[-len(tokens) :] == list(tokens)


@given(seeds, st.booleans(), st.booleans())
@settings(max_examples=8)
def test_each_row_ends_by_itself_whatever_ends_it(seed, with_token, of_lengths):
    model, ids = random_model(seed), random_ids(4, 4, seed)
    prompts = [row[i:] for i, row in enumerate(ids)] if of_lengths else ids
    whole = [model.generate(row[None], 12)[0, len(row) :].tolist() for row in prompts]
    pair, token = whole[0][4:6], whole[1][7]
    told = []
    stop = ends_with(*pair)
    expected = []
    for row in whole:
        ends = [i for i in range(12) if stop(row[: i + 1]) or (with_token and row[i] == token)]
        expected.append(row[: ends[0] + 1] if ends else row)
    options = {"eos_token": token} if with_token else {}
    found = model.generate(prompts, 12, stop=lambda new: told.append(new) or stop(new), **options)
    new = [row[len(prompt) :].tolist() for row, prompt in zip(found, prompts, strict=True)]
    if not of_lengths:
        longest = max(map(len, expected))
        fillings = [token if with_token else row[-1] for row in expected]
        assert len(told) == sum(  # a row that has ended by its token is not asked about
            len(row) - (with_token and row[-1] == token) for row in expected
        )
        expected = [
            row + [filling] * (longest - len(row))
            for row, filling in zip(expected, fillings, strict=True)
        ]
    assert new == expected


# Logits


def test_the_logits_of_new_tokens_are_those_of_the_model():
    model, ids = random_model(), random_ids(3, 4)
    options = {"temperature": 0.8, "top_k": 5, "min_p": 0.01, "repetition_penalty": 1.4}
    tokens, logits = model.generate(ids, 7, **options, generator=seeded(), return_logits=True)
    assert torch.equal(tokens, model.generate(ids, 7, **options, generator=seeded()))
    assert logits.shape == (3, 7, VOCAB)
    assert not logits.requires_grad
    torch.testing.assert_close(logits, model(tokens)[:, 3:-1])


def test_a_stream_gives_logits_with_each_token():
    model, ids = random_model(), random_ids(3, 4)
    expected = model.generate(ids, 5, return_logits=True)
    tokens, logits = zip(*model.stream(ids, 5, return_logits=True), strict=True)
    assert torch.equal(torch.stack(tokens, dim=1), expected[0][:, 4:])
    assert torch.equal(torch.stack(logits, dim=1), expected[1])


# Token by token


def test_a_stream_gives_the_tokens_of_generate():
    model, ids = random_model(), random_ids(3, 4)
    options = {"temperature": 1.0, "top_k": 5, "top_p": 0.9}
    tokens = list(model.stream(ids, 9, **options, generator=seeded()))
    assert [each.shape for each in tokens] == [(3,)] * 9
    expected = model.generate(ids, 9, **options, generator=seeded())
    assert torch.equal(torch.stack(tokens, dim=1), expected[:, 4:])
    assert [each.dtype for each in model.stream(ids.int(), 2)] == [torch.int32] * 2


def test_a_stream_computes_a_token_when_it_is_asked_for():
    model, calls = random_model(), []
    model.wte.register_forward_pre_hook(lambda *_: calls.append(1))
    stream = model.stream(random_ids(2, 4), 9)
    for count in range(3):
        assert len(calls) == count
        next(stream)


@pytest.mark.usefixtures("as_users_run_it")
def test_a_stream_refuses_arguments_before_its_first_token():
    with pytest.raises(ValueError, match=r"^top_k must be at least 1, got 0$"):
        random_model().stream(random_ids(1, 4), 2, 1.0, 0)


# Autocast


def test_under_autocast_as_without_a_cache():
    dtype = torch.bfloat16
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


# Errors


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        ([3, 4], TypeError, r"^ids must be a tensor of int64 or int32, got a list; make one with"),
        ([], ValueError, r"^a list of ids must hold a prompt or more, .*, got shapes \[\]$"),
        (
            [torch.tensor([3]), torch.tensor([[3]])],
            ValueError,
            r"each of shape \(seq,\) with one position or more, got shapes \[\(1,\), \(1, 1\)\]$",
        ),
    ],
)
def test_errors_of_prompts(ids, error, message):
    with pytest.raises(error, match=message):
        random_model().generate(ids, 2)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("eos_token", "error", "message"),
    [
        (23, ValueError, r"^eos_token must be a token or several, in \[0, 23\), got 23$"),
        ((), ValueError, r"in \[0, 23\), got \(\)$"),
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
        ({"min_p": -0.5}, ValueError, "^min_p must be between 0 and 1, got -0.5$"),
        (
            {"repetition_penalty": 0.0},
            ValueError,
            "^repetition_penalty must be a finite number above 0, got 0.0$",
        ),
        ({"repetition_penalty": math.nan}, ValueError, "got nan$"),
        ({"stop": "."}, TypeError, r"^stop must be a function .*, got '\.' of type str$"),
    ],
)
def test_errors_of_options_by_name(options, error, message):
    for function in (random_model().generate, random_model().stream):
        with pytest.raises(error, match=message):
            function(random_ids(2, 3), 4, **options)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("ids", "max_new_tokens", "error", "message"),
    [
        (torch.tensor([3]), 2, ValueError, r"got \(1,\); a single sequence is ids\[None\]"),
        (torch.zeros(2, 0).long(), 2, ValueError, r"one position or more, got \(2, 0\)"),
        (
            torch.tensor([[3.0]]),
            2,
            TypeError,
            "ids must be a tensor of int64 or int32, got torch.f",
        ),
        (torch.tensor([[3]]), -1, ValueError, "max_new_tokens must be at least 0, got -1"),
        (torch.tensor([[3]]), 2.0, TypeError, "max_new_tokens must be an int, got 2.0"),
        (torch.tensor([[3, 23]]), 2, ValueError, r"ids must be in \[0, 23\), got .* 3 to 23"),
    ],
)
def test_errors_of_generate(ids, max_new_tokens, error, message):
    with pytest.raises(error, match=message):
        random_model().generate(ids, max_new_tokens)
