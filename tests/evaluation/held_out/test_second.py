"""Each version of the second collection is wrong: what it does otherwise is shown here."""

import pytest
import torch
from torch import nn

from evaluation.held_out import __main__
from tests.evaluation.held_out.demonstrations import (
    assert_each_is_told,
    assert_recorded,
    assert_shown,
)
from transformer_layers import GPT2Config, padding_mask

CONFIG = GPT2Config(vocab_size=11, n_positions=12, n_embd=6, n_layer=2, n_head=2, dropout=0.0)


def one_gain_for_all_features(candidate):
    return candidate(4).weight.numel() == 4


def eps_beside_the_width(candidate):
    return bool((candidate(4)(torch.ones(1, 4)) == 0).all())


def gradients_of_gain_and_bias_swapped(candidate):
    layer = candidate(2)
    layer(torch.randn(5, 2)).sum().backward()
    return torch.equal(layer.bias.grad, torch.full((2,), 5.0))


def divides_by_the_inverse(candidate):
    return torch.allclose(candidate(1)(torch.tensor([[5.0]])), torch.ones(1, 1))


def eps_grows_with_the_largest(candidate):
    # The mean of squares is 1e6 / 4, beside which 0.1 is nothing.
    y = candidate(4, eps=0.1)(torch.tensor([1e3, 0.0, 0.0, 0.0]))
    return torch.allclose(y, torch.tensor([2.0, 0.0, 0.0, 0.0]))


def inverse_deviation_averaged(candidate):
    layer = candidate(1, momentum=None)
    layer(torch.tensor([[-1.0], [1.0]]))  # of variance 2
    layer(torch.tensor([[-2.0], [2.0]]))  # of variance 8
    return abs(layer.running_var.item() - 5) < 1e-4


def one_mean_for_all_channels(candidate):
    x = torch.tensor([[1.0, 100.0], [3.0, 300.0]])
    return torch.allclose(candidate(2)(x), torch.tensor([[-1.0, -1.0], [1.0, 1.0]]), atol=1e-4)


def gradient_where_the_input_is_zero(candidate):
    x = torch.zeros(50, requires_grad=True)
    candidate(x, 0.5).sum().backward()
    return set(x.grad.tolist()) == {0.0, 2.0}


def gradient_not_dropped(candidate):
    x = torch.ones(50, requires_grad=True)
    y = candidate(0.5)(x)
    y.sum().backward()
    return torch.equal(x.grad, y)


def of_the_last_only(candidate):
    return candidate([torch.tensor([2.0]), torch.tensor([4.0])]).item() == 10


def first_in_place_of_the_third(candidate):
    return candidate([torch.tensor([2.0 * i]) for i in range(4)]).item() == 28


def sign_by_division(candidate):
    return candidate(torch.tensor([0.0, 3.0]), 1.0).tolist() == [0.0, 2.0]


def erf_ends_early(candidate):
    return abs(candidate(torch.tensor([-80.0], dtype=torch.float64)).item()) < 1e-12


def exponent_rounded_down(candidate):
    # The slowest of four waves has the rate 10000 ** -(6 / 8) = 1e-3.
    table = candidate(1001, 8, dtype=torch.float64)
    return abs(table[1000, 6].item() - torch.tensor(1.0, dtype=torch.float64).sin().item()) < 1e-9


def softmax_over_the_third_axis(candidate):
    sums = candidate(torch.randn(2, 3, 4, 5), torch.randn(2, 3, 6, 5)).sum(-1)
    return torch.allclose(sums, torch.ones(2, 3, 4))


def queries_for_keys(candidate):
    mask = candidate(torch.tensor([1]), 3)
    return mask.expand(1, 3, 3).tolist() == [[[True, False, False]] * 3]


def _by_hand(layer, query, key, value):
    """Two heads of one sequence, each with half of the features, cut by hand."""
    q, k, v = layer.query_proj(query), layer.key_proj(key), layer.value_proj(value)
    half = layer.d_model // 2
    parts = [slice(0, half), slice(half, None)]
    heads = [(q[:, part] @ k[:, part].T / half**0.5).softmax(-1) @ v[:, part] for part in parts]
    return layer.output_proj(torch.cat(heads, -1))


def _attends_as_by_hand(candidate):
    layer, x, memory = candidate(6, 2), torch.randn(3, 6), torch.randn(4, 6)
    expected = _by_hand(layer, x, memory, memory.flip(0))
    return torch.allclose(layer(x, memory, memory.flip(0)), expected, atol=1e-6)


def scaled_by_the_number_of_heads(candidate):
    return _attends_as_by_hand(candidate)


def key_projection_for_values(candidate):
    return _attends_as_by_hand(candidate)


def queries_unpadded_by_the_keys(candidate):
    layer, x, memory = candidate(6, 2), torch.randn(1, 5, 6), torch.randn(1, 3, 6)
    y = layer(x, memory, memory, padding_mask(torch.tensor([2]), 3))
    return torch.allclose(y, layer(x, memory[:, :2], memory[:, :2]), atol=1e-6)


def not_causal_once_moved(candidate):
    layer, x = candidate(6, 2, dropout=0.0).double(), torch.randn(1, 4, 6, dtype=torch.float64)
    return torch.allclose(layer(x)[:, :2], layer(x[:, :2]))


def bias_of_the_first_only(candidate):
    layer = candidate(2, 3)
    nn.init.ones_(layer.bias)
    return bool((layer(torch.zeros(4, 1, 2)) == 1).all())


def drops_its_input(candidate):
    layer, x = candidate(3, 5).eval(), torch.randn(2, 3)
    inner = (x @ layer.linear1.weight.T + layer.linear1.bias).relu()
    return torch.allclose(layer(x), inner @ layer.linear2.weight.T + layer.linear2.bias, atol=1e-6)


def as_wide_as_the_model(candidate):
    return candidate(3).c_fc.weight.shape == (3, 12)


def attention_not_dropped(candidate):
    layer, x = candidate(6, 2, 8, dropout=0.5), torch.randn(1, 4, 6)
    results = {tuple(layer.self_attention(x, x, x).flatten().tolist()) for _ in range(5)}
    return len(results) > 1


def product_for_sum(candidate):
    layer = candidate(6, 2, 8).eval()
    for module in (layer.self_attention.output_proj, layer.feed_forward.linear2):
        nn.init.zeros_(module.weight)
        nn.init.zeros_(module.bias)
    x = torch.randn(1, 4, 6)
    return torch.equal(layer(x), x)


def stream_counted_twice(candidate):
    block = candidate(6, 2).eval()
    for module in (block.attn.c_proj, block.mlp.c_proj):
        nn.init.zeros_(module.weight)
    x = torch.randn(1, 4, 6)
    return torch.equal(block(x), x)


def _model(candidate):
    # dtype float64, so that no two logits are equal by rounding
    model = candidate(CONFIG, dtype=torch.float64)
    with torch.no_grad():
        model.wpe.weight.normal_()
    return model.eval()


def no_position_for_one_token(candidate):
    model = _model(candidate)
    return torch.allclose(model(torch.tensor([[3]])), model(torch.tensor([[3, 4]]))[:, :1])


def heads_for_length(candidate):
    model, ids = _model(candidate), torch.tensor([[1, 2, 3, 4]])
    caches = model.new_caches(1, 4)
    model(ids[:, :3], caches)
    return torch.allclose(model(ids[:, 3:], caches), model(ids)[:, 3:])


def positions_go_on_without_a_cache(candidate):
    model, ids = _model(candidate), torch.tensor([[1, 2, 3]])
    before = model(ids)
    model(ids, model.new_caches(1, 3))
    return torch.equal(model(ids), before)


def norms_start_from_noise(candidate):
    norm = candidate(CONFIG).h[0].ln_1
    return bool((norm.weight == 1).all() and (norm.bias == 0).all())


SHOWN = (
    one_gain_for_all_features,
    eps_beside_the_width,
    gradients_of_gain_and_bias_swapped,
    divides_by_the_inverse,
    eps_grows_with_the_largest,
    inverse_deviation_averaged,
    one_mean_for_all_channels,
    gradient_where_the_input_is_zero,
    gradient_not_dropped,
    of_the_last_only,
    first_in_place_of_the_third,
    sign_by_division,
    erf_ends_early,
    exponent_rounded_down,
    softmax_over_the_third_axis,
    queries_for_keys,
    scaled_by_the_number_of_heads,
    key_projection_for_values,
    queries_unpadded_by_the_keys,
    not_causal_once_moved,
    bias_of_the_first_only,
    drops_its_input,
    as_wide_as_the_model,
    attention_not_dropped,
    product_for_sum,
    stream_counted_twice,
    no_position_for_one_token,
    heads_for_length,
    positions_go_on_without_a_cache,
    norms_start_from_noise,
)


class TestTheVersions:
    @pytest.mark.parametrize("shows", SHOWN, ids=lambda shows: shows.__name__)
    def test_the_right_layer_does_what_the_wrong_one_does_not(self, shows):
        assert_shown(shows)

    def test_each_is_shown_and_has_a_source_of_its_own(self):
        assert_each_is_told("second", SHOWN)

    def test_the_record_is_of_these(self):
        assert_recorded("second", 30)


class TestTheCommand:
    def test_each_collection_has_totals_of_its_own(self, monkeypatch, capsys):
        monkeypatch.setattr("sys.argv", ["held_out", "--layer", "padding_mask"])
        __main__.main()
        printed = capsys.readouterr().out.splitlines()
        counts = [line.partition(", caught")[0] for line in printed if "collection" in line]
        assert counts == [
            "first collection: versions: 2",
            "second collection: versions: 1",
            "third collection: versions: 1",
            "fourth collection: versions: 1",
            "sixth collection: versions: 3",
            "seventh collection: versions: 2",
        ]

    def test_a_file_holds_one_collection(self, monkeypatch, tmp_path, capsys):
        both = str(tmp_path / "both.json")
        monkeypatch.setattr("sys.argv", ["held_out", "--layer", "padding_mask", "--output", both])
        with pytest.raises(SystemExit):
            __main__.main()
        assert "--output writes one collection" in capsys.readouterr().err
