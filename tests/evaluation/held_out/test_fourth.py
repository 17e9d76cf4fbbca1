"""Each version of the fourth collection is wrong: what it does otherwise is shown here."""

import math

import pytest
import torch
from torch import nn

from tests.evaluation.held_out.demonstrations import (
    assert_each_is_told,
    assert_recorded,
    assert_shown,
)
from transformer_layers import GPT2Config, KeyValueCache

CONFIG = GPT2Config(vocab_size=11, n_positions=12, n_embd=6, n_layer=2, n_head=2, dropout=0.0)


def squares_of_what_is_not_centered(candidate):
    x = torch.tensor([[-1.0, 1.0, -1.0, 1.0]])
    return torch.allclose(candidate(4)(x + 10000), x, atol=1e-3)


def turned_axes_as_they_lie(candidate):
    layer, x = candidate(4), torch.randn(4, 3).T
    return torch.allclose(layer(x), layer(x.contiguous()), atol=1e-6)


def gain_starts_at_zero(candidate):
    return torch.equal(candidate(3).weight, torch.ones(3))


def rounded_before_the_gain(candidate):
    layer, x = candidate(4), torch.randn(50, 4).half()
    with torch.no_grad():
        layer.weight.uniform_(1.0, 2.0)
    return torch.equal(layer(x), layer(x.float()).half())


def empty_batch_in_the_averages(candidate):
    layer = candidate(2)
    layer(torch.randn(0, 2, 3))
    return torch.equal(layer.running_mean, torch.zeros(2))


def averages_made_half(candidate):
    layer = candidate(1).eval()
    layer.running_var.fill_(90000.0)  # float16 ends at 65504
    return layer(torch.full((1, 1), 300.0, dtype=torch.float16)).item() == 1


def drawn_again_for_the_gradient(candidate):
    x = torch.ones(100, requires_grad=True)
    y = candidate(x, 0.5)
    y.sum().backward()
    return torch.equal(x.grad, y.detach())


def drawn_in_its_dtype(candidate):
    y = candidate(0.999)(torch.ones(100_000, dtype=torch.bfloat16))
    return 50 < (y != 0).sum() < 200


def one_plus_erf(candidate):
    exact = -5 * 2.866515719e-7  # of the normal distribution 2.87e-7 lies below -5
    return math.isclose(candidate(torch.tensor(-5.0)), exact, rel_tol=1e-3)


def cubed_in_half(candidate):
    x = torch.tensor(256.0, dtype=torch.float16, requires_grad=True)
    candidate(x).backward()
    return x.grad.item() == 1


def sum_with_signs(candidate):
    return candidate([torch.tensor([1.0, -2.0])]).item() == 3


def first_weight_left_out(candidate):
    return candidate([torch.tensor([2.0, 4.0]), torch.tensor([2.0])]).item() == 12


def sign_of_what_was_shrunk(candidate):
    return candidate(torch.tensor([-1.5, 1.5]), 0.5).tolist() == [-1, 1]


def exponent_of_the_column(candidate):
    # The second of two rates is 1 / 10000 ** (2 / 4) = 0.01, for sine and cosine.
    expected = torch.tensor([math.sin(1), math.cos(1), math.sin(0.01), math.cos(0.01)])
    return torch.allclose(candidate(2, 4)[1], expected)


def scores_times_the_mask(candidate):
    mask = torch.tensor([[True, False]])
    return torch.equal(
        candidate(torch.ones(1, 2), torch.ones(2, 2), mask), torch.tensor([[1, 0.0]])
    )


def scores_dropped(candidate):
    # With one key its weight is 1 before it is dropped, and 0 or 2 afterwards.
    one = torch.ones(50, 1, 1)
    return set(candidate(one, one, one, dropout_p=0.5).flatten().tolist()) == {0.0, 2.0}


def squeezed_for_one(candidate):
    return candidate(1, past=2).shape == (1, 3)


def on_the_default_device(candidate):
    lengths = torch.tensor([2, 1], device="cpu")
    with torch.device("meta"):
        return candidate(lengths, 3).device == lengths.device


def softmax_over_all_heads(candidate):
    layer, x = candidate(4, 2), torch.randn(1, 1, 4)
    # A single key has the weight 1 in each head.
    expected = layer.output_proj(layer.value_proj(x))
    return torch.allclose(layer(x, x, x), expected, atol=1e-6)


def square_masks(candidate):
    layer, query, memory = candidate(4, 2), torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    try:
        layer(query, memory, memory, torch.ones(2, 3, 5, dtype=torch.bool))
    except RuntimeError:
        return False
    return True


def not_causal_where_there_is_a_cache(candidate):
    layer, x = candidate(4, 2).eval(), torch.randn(1, 5, 4)
    with torch.no_grad():
        layer.c_attn.weight.normal_()
    return torch.allclose(layer(x, KeyValueCache(1, 2, 5, 2)), layer(x), atol=1e-6)


def weight_not_saved(candidate):
    layer = candidate(3, 2)
    try:
        layer(torch.ones(1, 4, 3)).sum().backward()
    except ValueError:
        return False
    return torch.equal(layer.weight.grad, torch.full((3, 2), 4.0))


def no_gradient_in_evaluation(candidate):
    return candidate(4, 8).eval()(torch.randn(3, 4)).requires_grad


def exact_gelu_for_the_tanh(candidate):
    layer, x = candidate(1, 1).eval(), torch.tensor([[-2.7]])
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.fill_(float(parameter.ndim == 2))
    return torch.allclose(layer(x), nn.functional.gelu(x, approximate="tanh"), atol=1e-5)


def drops_after_the_norms(candidate):
    return bool((candidate(4, 2, 8, dropout=0.5)(torch.randn(2, 9, 4)) != 0).all())


def drops_the_stream(candidate):
    return bool((candidate(4, 2, 8, dropout=0.5)(torch.randn(2, 9, 4)) != 0).all())


def cache_by_place_only(candidate):
    cache = KeyValueCache(1, 2, 5, 2)
    candidate(4, 2)(torch.randn(1, 3, 4), cache=cache)
    return cache.length == 3


def nucleus_below_its_share(candidate):
    # At a temperature this high all are as likely; 6 of 11 are the fewest for a half.
    model, ids = candidate(CONFIG), torch.zeros(500, 1, dtype=torch.long)
    new = model.generate(ids, 1, temperature=1e6, top_p=0.5)[:, 1]
    return len(new.unique()) == 6


def generator_not_used(candidate):
    model, ids = candidate(CONFIG), torch.tensor([[1, 2]])
    first, second = (
        model.generate(ids, 10, temperature=9.0, generator=torch.Generator().manual_seed(5))
        for _ in range(2)
    )
    return torch.equal(first, second)


def caches_of_the_last_call(candidate):
    model, ids = candidate(CONFIG), torch.randint(11, (50, 2))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.normal_()
    return torch.equal(model.generate(ids, 4), model.generate(ids, 4))


SHOWN = (
    squares_of_what_is_not_centered,
    turned_axes_as_they_lie,
    gain_starts_at_zero,
    rounded_before_the_gain,
    empty_batch_in_the_averages,
    averages_made_half,
    drawn_again_for_the_gradient,
    drawn_in_its_dtype,
    one_plus_erf,
    cubed_in_half,
    sum_with_signs,
    first_weight_left_out,
    sign_of_what_was_shrunk,
    exponent_of_the_column,
    scores_times_the_mask,
    scores_dropped,
    squeezed_for_one,
    on_the_default_device,
    softmax_over_all_heads,
    square_masks,
    not_causal_where_there_is_a_cache,
    weight_not_saved,
    no_gradient_in_evaluation,
    exact_gelu_for_the_tanh,
    drops_after_the_norms,
    drops_the_stream,
    cache_by_place_only,
    nucleus_below_its_share,
    generator_not_used,
    caches_of_the_last_call,
)


class TestTheVersions:
    @pytest.mark.parametrize("shows", SHOWN, ids=lambda shows: shows.__name__)
    def test_the_right_layer_does_what_the_wrong_one_does_not(self, shows):
        assert_shown(shows)

    def test_each_is_shown_and_has_a_source_of_its_own(self):
        assert_each_is_told("fourth", SHOWN)

    def test_the_record_is_of_these(self):
        assert_recorded("fourth", 30)
