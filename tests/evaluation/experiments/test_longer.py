"""The experiment on texts longer than those of training asks what it says."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from evaluation.experiments import longer
from transformer_layers import Llama
from transformer_training.toy_language.model import by_itself

pytestmark = pytest.mark.usefixtures("float64")


@pytest.fixture
def float64():
    with by_itself(0):
        yield


@pytest.fixture
def model(float64):
    return Llama(
        replace(
            longer.CONFIG,
            vocab_size=20,
            hidden_size=16,
            num_attention_heads=2,
            num_key_value_heads=2,
        )
    ).eval()


def test_losses_are_those_of_each_position_over_all_pieces(model):
    pieces = torch.randint(20, (70, 9))
    with torch.no_grad():
        logits = model(pieces[:, :-1])
    expected = nn.functional.cross_entropy(logits.flatten(0, 1), pieces[:, 1:].flatten())
    found = longer.losses(model, pieces)
    assert found.shape == (8,)
    torch.testing.assert_close(found.mean(), expected)


def test_a_window_shows_the_last_keys_alone():
    mask = longer.window(3)
    assert mask.sum(1).tolist() == [1, 2, *[3] * (longer.LONG - 2)]
    assert mask[7].nonzero().flatten().tolist() == [5, 6, 7]


def test_another_scaling_leaves_the_weights_and_what_is_near(model):
    bent = longer.with_scaling(model, longer.SCALINGS["linear"])
    assert all(map(torch.equal, bent.parameters(), model.parameters()))
    ids = torch.randint(20, (1, 12))
    assert torch.allclose(bent(ids)[:, 0], model(ids)[:, 0])  # position 0 is turned by nothing
    assert not torch.allclose(bent(ids)[:, 5], model(ids)[:, 5])


def test_training_lowers_the_loss(model):
    tokens = torch.arange(20).repeat(200)
    pieces = tokens[:33][None]
    before = longer.losses(model, pieces).mean()
    longer.learn(model, tokens, 32, 20, 1e-2)
    assert longer.losses(model, pieces).mean() < before - 0.2


def test_each_way_of_asking_gives_a_loss_for_each_bin(monkeypatch):
    monkeypatch.setattr(longer, "STEPS", 2)
    monkeypatch.setattr(longer, "MORE_STEPS", 1)
    tokens = torch.randint(longer.CONFIG.vocab_size, (2 * longer.LONG + 1,))
    row = longer.of_seed(0, tokens, tokens)
    assert set(row["losses"]) == {*longer.SCALINGS, "window"}
    for losses in (*row["losses"].values(), *row["more"].values()):
        assert len(losses) == longer.LONG // longer.BIN
    first = longer.LENGTH // longer.BIN
    assert row["losses"]["window"][:first] == row["losses"]["as trained"][:first]
    assert len(row["apart"]) == len(longer.GAPS)
    assert row["alone"] != row["apart"][0]
