"""Each version of the third collection is wrong: what it does otherwise is shown here."""

import math

import pytest
import torch
from torch import nn

from tests.evaluation.held_out.demonstrations import (
    assert_each_is_told,
    assert_recorded,
    assert_shown,
)
from transformer_layers import GPT2Config, KeyValueCache, padding_mask

CONFIG = GPT2Config(vocab_size=11, n_positions=12, n_embd=6, n_layer=2, n_head=2, dropout=0.0)


def reset_draws_the_gain(candidate):
    layer = candidate(4)
    layer.reset_parameters()
    return torch.equal(layer.weight, torch.ones(4))


def training_statistics_in_evaluation(candidate):
    layer, x = candidate(4), torch.randn(3, 4)
    return torch.equal(layer(x), layer.eval()(x))


def float_through_the_weight(candidate):
    return candidate(4)(torch.ones(1, 4, dtype=torch.float16)).dtype == torch.float16


def writes_over_its_input(candidate):
    x = torch.tensor([[2.0, 2.0]])
    with torch.no_grad():
        candidate(2)(x)
    return torch.equal(x, torch.tensor([[2.0, 2.0]]))


def normalized_twice(candidate):
    # 1 / sqrt(1 + 3) is a half.
    return torch.equal(candidate(1, eps=3.0)(torch.ones(1, 1)), torch.full((1, 1), 0.5))


def variance_by_the_width(candidate):
    x = torch.tensor([[1.0, 1.0, 1.0], [-1.0, -1.0, -1.0]])
    return torch.allclose(candidate(3, eps=1e-12)(x), x)


def reset_keeps_the_running_averages(candidate):
    layer = candidate(1)
    layer(torch.tensor([[1.0], [3.0]]))
    layer.reset_parameters()
    return torch.equal(layer.running_mean, torch.zeros(1))


def running_averages_in_the_graph(candidate):
    layer = candidate(1)
    layer(torch.tensor([[1.0], [3.0]], requires_grad=True))
    return not layer.running_mean.requires_grad


def last_batch_without_momentum(candidate):
    layer = candidate(1, momentum=None)
    for mean in (1.0, 3.0):
        layer(torch.tensor([[mean - 1], [mean + 1]]))
    return torch.equal(layer.running_mean, torch.tensor([2.0]))


def scaled_by_the_share_that_was_kept(candidate):
    return set(candidate(torch.ones(7), 0.5).tolist()) == {0.0, 2.0}


def nothing_divided_by_nothing(candidate):
    return torch.equal(candidate(torch.ones(3), 1.0), torch.zeros(3))


def divided_by_the_dropped(candidate):
    return candidate(0.75)(torch.ones(100)).max() == 4


def quick_for_exact(candidate):
    return math.isclose(candidate(torch.tensor(1.0)), 0.84134, abs_tol=1e-4)


def tanh_of_exponentials(candidate):
    return torch.equal(candidate(torch.tensor([20.0])), torch.tensor([20.0]))


def root_of_the_square(candidate):
    w = torch.zeros(1, requires_grad=True)
    candidate([w]).backward()
    return torch.equal(w.grad, torch.zeros(1))


def shrunk_by_a_factor(candidate):
    return torch.equal(candidate(torch.zeros(1), 0.0), torch.zeros(1))


def first_position_without_cosines(candidate):
    return torch.equal(candidate(1, 4), torch.tensor([[0.0, 1.0, 0.0, 1.0]]))


def slowest_at_ten_thousand(candidate):
    # The second of two rates is 1 / 10000 ** (2 / 4) = 0.01.
    return math.isclose(candidate(2, 4)[1, 2], math.sin(0.01), abs_tol=1e-6)


def uniform_where_nothing_is_allowed(candidate):
    mask = torch.zeros(2, 3, dtype=torch.bool)
    return bool((candidate(torch.randn(2, 4), torch.randn(3, 4), mask) == 0).all())


def scaled_after_the_product(candidate):
    query = torch.full((1, 4), 200.0, dtype=torch.float16)  # its product with itself is 160000
    value = torch.tensor([[1.0], [0.0]], dtype=torch.float16)
    return candidate(query, query.expand(2, 4), value).item() == 0.5


def dropout_after_the_values(candidate):
    value = torch.ones(1, 1, 50)
    # With one key its weight is dropped, or not, for all features at once.
    return len(candidate(torch.ones(1, 1, 2), torch.ones(1, 1, 2), value, None, 0.5).unique()) == 1


def one_of_the_padding(candidate):
    return candidate(torch.tensor([2]), 4).tolist() == [[[True, True, False, False]]]


def drops_in_evaluation(candidate):
    layer, x = candidate(6, 2, dropout=0.5).eval(), torch.randn(2, 5, 6)
    return torch.equal(layer(x, x, x), layer(x, x, x))


def masks_of_other_sequences(candidate):
    layer, x = candidate(6, 2), torch.randn(2, 3, 6)
    mask = padding_mask(torch.tensor([3, 1]), 3)
    alone = layer(x[:1], x[:1], x[:1], mask[:1])
    return torch.allclose(layer(x, x, x, mask)[:1], alone, atol=1e-6)


def heads_cut_without_transposing(candidate):
    layer, x = candidate(6, 2), torch.randn(1, 4, 6)
    y, turned = layer(x, x, x), x.roll(1, dims=1)
    return torch.allclose(layer(turned, turned, turned), y.roll(1, dims=1), atol=1e-6)


def from_the_first_key_after_a_pause(candidate):
    layer, x = candidate(6, 2, dropout=0.0), torch.randn(1, 5, 6)
    cache = KeyValueCache(1, 2, 5, 3)
    layer(x[:, :2], cache)
    return torch.allclose(layer(x[:, 2:], cache), layer(x)[:, 2:], atol=1e-6)


def projections_by_head(candidate):
    layer, x = candidate(4, 2, dropout=0.0), torch.randn(1, 1, 4)
    value = layer.c_attn(x)[..., 8:]  # all that a single position attends to
    return torch.allclose(layer(x), layer.c_proj(value), atol=1e-6)


def ends_with_a_relu(candidate):
    return bool((candidate(4, 8).eval()(torch.randn(9, 4)) < 0).any())


def _without_sub_layers(layer):
    nn.init.zeros_(layer.self_attention.output_proj.weight)
    nn.init.zeros_(layer.self_attention.output_proj.bias)
    nn.init.zeros_(layer.feed_forward.linear2.weight)
    nn.init.zeros_(layer.feed_forward.linear2.bias)
    return layer.eval()


def norm_without_a_copy(candidate):
    x = torch.randn(1, 3, 4)
    return torch.equal(_without_sub_layers(candidate(4, 2, 8))(x), x)


def norms_before_the_sums(candidate):
    y = _without_sub_layers(candidate(4, 2, 8))(3 * torch.randn(1, 3, 4))
    return torch.allclose(y.square().mean(dim=-1), torch.ones(1, 3), atol=1e-3)


def eps_not_handed_on(candidate):
    block = candidate(4, 2, eps=0.5)
    return block.ln_1.eps == block.ln_2.eps == 0.5


def half_of_the_residual_scaled(candidate):
    std = candidate(GPT2Config(11, 12, 60, n_layer=8, n_head=2)).h[3].mlp.c_proj.weight.std()
    return math.isclose(std.item(), 0.005, rel_tol=0.1)


def loss_goes_round(candidate):
    model, ids = candidate(CONFIG), torch.tensor([[3, 1, 4, 1, 5]])
    expected = nn.functional.cross_entropy(model(ids)[0, :-1], ids[0, 1:])
    return torch.allclose(model.loss(ids), expected, atol=1e-6)


def _written(candidate, prompts, steps, **options):
    torch.manual_seed(0)
    model = candidate(CONFIG)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.normal_()
    new = model.generate(torch.tensor(prompts), steps, **options)
    return new[:, len(prompts[0]) :].tolist()


def ends_only_together(candidate):
    options = {"steps": 10, "temperature": 9.0}
    free = _written(candidate, [[1, 2], [3, 4]], **options)
    stop = free[0][0]
    assert free[1][0] != stop
    rows = _written(candidate, [[1, 2], [3, 4]], **options, eos_token=stop)
    return set(rows[0]) == {stop}


def eos_taken_for_padding(candidate):
    options = {"steps": 8, "temperature": 1.0}
    prompts = [[first, 2, 3] for first in range(CONFIG.vocab_size)]
    free = [_written(candidate, [prompt], **options) for prompt in prompts]
    unmet = [i for i, rows in enumerate(free) if i not in rows[0]]
    assert unmet
    return all(_written(candidate, [prompts[i]], **options, eos_token=i) == free[i] for i in unmet)


def temperature_after_the_nucleus(candidate):
    model = candidate(CONFIG)
    # At a temperature this high all are as likely, and the fewest for 0.95 are all of 11.
    ids = torch.zeros(500, 1, dtype=torch.long)
    with torch.no_grad():
        model.ln_f.bias.normal_(std=3.0)
        model.wte.weight.normal_(std=1.0)
    new = model.generate(ids, 1, temperature=1e4, top_p=0.95)[:, 1]
    return len(new.unique()) == CONFIG.vocab_size


SHOWN = (
    reset_draws_the_gain,
    training_statistics_in_evaluation,
    float_through_the_weight,
    writes_over_its_input,
    normalized_twice,
    variance_by_the_width,
    reset_keeps_the_running_averages,
    running_averages_in_the_graph,
    last_batch_without_momentum,
    scaled_by_the_share_that_was_kept,
    nothing_divided_by_nothing,
    divided_by_the_dropped,
    quick_for_exact,
    tanh_of_exponentials,
    root_of_the_square,
    shrunk_by_a_factor,
    first_position_without_cosines,
    slowest_at_ten_thousand,
    uniform_where_nothing_is_allowed,
    scaled_after_the_product,
    dropout_after_the_values,
    one_of_the_padding,
    drops_in_evaluation,
    masks_of_other_sequences,
    heads_cut_without_transposing,
    from_the_first_key_after_a_pause,
    projections_by_head,
    ends_with_a_relu,
    norm_without_a_copy,
    norms_before_the_sums,
    eps_not_handed_on,
    half_of_the_residual_scaled,
    loss_goes_round,
    ends_only_together,
    eos_taken_for_padding,
    temperature_after_the_nucleus,
)


class TestTheVersions:
    @pytest.mark.parametrize("shows", SHOWN, ids=lambda shows: shows.__name__)
    def test_the_right_layer_does_what_the_wrong_one_does_not(self, shows):
        assert_shown(shows)

    def test_each_is_shown_and_has_a_source_of_its_own(self):
        assert_each_is_told("third", SHOWN)

    def test_the_record_is_of_these(self):
        assert_recorded("third", 36)
