"""Clocks in place of learned places: they are there, and training leaves them as they are."""

import torch

from evaluation.experiments import clocks
from transformer_layers import sinusoidal_positions


def test_training_leaves_the_clocks_as_they_are():
    for steps in (0, 2):
        table = clocks.trained(seed=1, steps=steps).wpe.weight
        expected = sinusoidal_positions(*table.shape) / 4
        torch.testing.assert_close(table.double(), expected.double(), atol=1e-6, rtol=0)


def test_each_kind_has_a_share_of_each_seed(monkeypatch):
    monkeypatch.setattr(clocks, "SEEDS", 1)
    monkeypatch.setattr(clocks, "trained", lambda seed: clocks.trained_model(steps=0))
    found = clocks.measure()
    assert list(found) == list(clocks.KINDS)
    assert all(len(each) == 1 for each in found.values())
