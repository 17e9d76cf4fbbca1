"""What parameters start from."""

from functools import partial

import pytest
import torch
from torch import Tensor, nn

from layer_checks import check
from layer_checks.kit.initial import starts_as
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


def test_a_constant_is_the_right_layers_and_a_draw_must_be_known() -> None:
    class Scale(nn.Module):
        def __init__(self, draws: bool = False) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.randn(3) if draws else torch.full((3,), 3.0))

    assert starts_as(Scale(), Scale()).text == "holds: 1 parameters start as they should"
    with pytest.raises(AssertionError, match=r"^not equal: scale not all 3$"):
        starts_as(Scale(draws=True), Scale())
    with pytest.raises(ValueError, match=r"^scale of the right layer is drawn: tell how, in"):
        starts_as(Scale(), Scale(draws=True))


def test_parameters_are_found_as_they_were_matched() -> None:
    class Renamed(nn.Module):
        """Its parameters have other names, and the other order."""

        def __init__(self, hidden_size: int, epsilon: float = 1e-5, gain: float = 1.0) -> None:
            super().__init__()
            self.beta = nn.Parameter(torch.zeros(hidden_size))
            self.scale = nn.Parameter(torch.full((hidden_size,), gain))
            self.epsilon = epsilon

        def forward(self, x: Tensor) -> Tensor:
            shape = (x.shape[-1],)
            return nn.functional.layer_norm(x, shape, self.scale, self.beta, self.epsilon)

    right = check("LayerNorm", Renamed)
    assert all(result.held for result in right.start)
    wrong = check("LayerNorm", partial(Renamed, gain=2.0))
    texts = {result.name: result.text for result in wrong.start}
    assert texts["initial values"] == "scale not all 1"
