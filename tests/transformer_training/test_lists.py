"""Lists of random words, and the models that learn them."""

import pytest
import torch

from transformer_training.lists import LENGTH, came_before, list_model, lists, loss_of_returns
from transformer_training.toy_language import WORDS


def test_a_list_is_said_over_and_over():
    for text in lists(5).tolist():
        period = text.index(text[0], 1)
        assert 6 <= period <= 16
        assert len(text) == LENGTH
        assert len(set(text[:period])) == period
        assert text[period:] == text[:-period]
        assert WORDS.index(".") not in text


def test_earlier_places_of_a_word_are_found():
    found = came_before(torch.tensor([[7, 8, 7, 7]]))[0].nonzero().tolist()
    assert found == [[2, 0], [3, 0], [3, 2]]


def test_seeds_and_dtype_are_left_as_they_were():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    model = list_model(steps=1)
    assert torch.equal(torch.rand(3), expected)
    assert model.wte.weight.dtype == torch.float64
    assert torch.get_default_dtype() == torch.float32


def test_a_seed_makes_a_model():
    once, again, other = (list_model(blocks=1, seed=seed, steps=1) for seed in (0, 0, 1))
    assert torch.equal(once.wte.weight, again.wte.weight)
    assert not torch.equal(once.wte.weight, other.wte.weight)


def test_updates_lower_the_loss():
    ids = torch.arange(8).repeat(1, 4)
    before, after = (loss_of_returns(ids, list_model(steps=steps)) for steps in (0, 30))
    assert after < before


def test_each_update_is_watched():
    seen = []
    list_model(
        blocks=1, steps=3, watch=lambda step, loss, model, ids: seen.append((step, ids.shape))
    )
    assert seen == [(step, (32, LENGTH)) for step in range(3)]


def test_a_negative_number_of_updates_is_refused():
    with pytest.raises(ValueError, match=r"^steps must be at least 0, got -1$"):
        list_model(steps=-1)
