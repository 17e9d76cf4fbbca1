"""What parameters start from."""

import pytest
from torch import nn

from layer_checks.initial import starts_as
from transformer_layers import Conv1D, LayerNorm


def test_gains_are_ones_and_biases_zeros() -> None:
    assert repr(starts_as(LayerNorm(5), LayerNorm(5))) == "holds: 2 parameters start as they should"
    layer = LayerNorm(5)
    nn.init.zeros_(layer.weight)
    with pytest.raises(AssertionError, match=r"^not equal: weight not all 1$"):
        starts_as(layer, LayerNorm(5))


def test_draws_have_a_deviation_and_a_bound() -> None:
    linear = nn.Linear(64, 48)
    starts_as(linear, nn.Linear(64, 48))
    nn.init.normal_(linear.weight, std=0.02)
    with pytest.raises(
        AssertionError, match=r"^not equal: weight deviates by 0\.0\d+ against 0\.072$"
    ):
        starts_as(linear, nn.Linear(64, 48))
    nn.init.normal_(linear.weight, std=0.072)  # as large, and without a bound
    with pytest.raises(AssertionError, match=r"^not equal: weight up to 0\.\d+ against 0\.12$"):
        starts_as(linear, nn.Linear(64, 48))


def test_parameters_are_found_by_name_or_by_order() -> None:
    starts_as(nn.Sequential(Conv1D(64, 48)), Conv1D(64, 48))
    with pytest.raises(AssertionError, match=r"^not equal: no parameter has its name$"):
        starts_as(nn.Identity(), Conv1D(64, 48))
