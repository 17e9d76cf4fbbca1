"""The experiment on the parts of a norm: what each arm does to a row."""

import pytest
import torch

from evaluation.experiments import norm_parts
from transformer_training.toy_language import encode


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("LayerNorm", [-1.0, 1.0]),
        ("RMSNorm", [3 / 5**0.5, 1 / 5**0.5]),
        ("mean subtracted", [1.0, -1.0]),
        ("none", [3.0, 1.0]),
    ],
)
def test_each_norm_by_hand(name, expected):
    inside, _ = norm_parts.NORMS[name]
    norm = inside(2).double()
    row = torch.tensor([1.0, 3.0] if name == "LayerNorm" else [3.0, 1.0], dtype=torch.float64)
    torch.testing.assert_close(
        norm(row), torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-5
    )


@pytest.mark.parametrize("name", norm_parts.NORMS)
def test_a_model_has_the_norm_in_its_three_places(monkeypatch, name):
    monkeypatch.setattr(norm_parts, "STEPS", 0)
    model = norm_parts.trained(name, 0.005)
    places = (model.h[0].ln_1, model.h[0].ln_2, model.ln_f)
    inside, last = norm_parts.NORMS[name]
    assert tuple(map(type, places)) == (inside, inside, last)
    assert model(encode("the cat near the dogs here")).dtype == torch.float64
