"""Induction: the lists, the parts that are taken out, and weights with the same output."""

import pytest
import torch

from evaluation.experiments.induction import (
    alone,
    loss_with_cut_maps,
    maps,
    other_weights,
    trained,
    without,
)
from transformer_layers import GPT2
from transformer_training.lists import N_HEADS, lists, loss_of_returns


@pytest.fixture(scope="module")
def model() -> GPT2:
    return trained(steps=1)[0]


@pytest.fixture
def ids() -> torch.Tensor:
    with alone(0):
        return lists(5)


def test_heads_out_cannot_tell_texts_apart(model, ids):
    alike = ids.clone()
    alike[:, -1] = ids[0, -1]
    every = [(block, head) for block in range(2) for head in range(N_HEADS)]
    assert not torch.allclose(model(alike)[0, -1], model(alike)[1, -1])
    with without(model, every):
        found = model(alike)[:, -1]
    torch.testing.assert_close(found, found[:1].expand_as(found), rtol=0, atol=1e-12)
    assert not torch.allclose(model(alike)[0, -1], model(alike)[1, -1])  # back in place


def test_a_map_with_nothing_cut_changes_nothing(model, ids):
    nothing = torch.zeros(32, 32, dtype=torch.bool)
    loss = loss_of_returns(ids, model).item()
    for block in range(2):
        assert loss_with_cut_maps(model, block, nothing, ids) == pytest.approx(loss, abs=1e-12)
    own = torch.eye(32, dtype=torch.bool)
    assert loss_with_cut_maps(model, 0, own, ids) != pytest.approx(loss, abs=1e-6)


def test_other_weights_give_the_same(model, ids):
    with alone(0):
        weights, value = maps(model, ids)[0]
        own, values = weights[0, 1, -1], value[0, 1]
        found = other_weights(own, values, own)
    torch.testing.assert_close(found @ values, own @ values, rtol=0, atol=1e-9)
    assert found.min() >= 0
    assert found.sum().item() == pytest.approx(1)
    assert (found > 0).sum() <= 9
    assert (found - own).abs().sum() > 0.1
