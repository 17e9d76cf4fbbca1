"""How a reader's layer is given weights and asked for gradients."""

import pytest
import torch
from torch import Tensor, nn

from layer_checks.kit.candidates import (
    built,
    counterparts,
    has_parameters,
    load,
    outputs_and_gradients,
    randomized,
    rounded_once,
    same,
    weights_of,
)

WEIGHTS = {"weight": torch.tensor([1.0, 2.0]), "bias": torch.tensor([3.0, 4.0])}


class Named(nn.Module):
    def __init__(self, **shapes: tuple[int, ...]) -> None:
        super().__init__()
        for name, shape in shapes.items():
            self.register_parameter(name, nn.Parameter(torch.zeros(shape)))


def test_weights_are_copied_by_name() -> None:
    layer = load(Named(bias=(2,), weight=(2,)), WEIGHTS)
    assert layer.weight.tolist() == [1.0, 2.0]
    assert layer.bias.tolist() == [3.0, 4.0]
    assert counterparts(layer, WEIGHTS) == {"bias": "bias", "weight": "weight"}


def test_weights_are_copied_by_order_where_no_name_agrees() -> None:
    layer = load(Named(a_2=(2,), b_2=(2,)), WEIGHTS)
    assert layer.a_2.tolist() == [1.0, 2.0]
    assert counterparts(layer, WEIGHTS) == {"a_2": "weight", "b_2": "bias"}


@pytest.mark.parametrize("shapes", [{"a": (2,)}, {"a": (2,), "b": (3,)}, {"a": (2,), "bias": (2,)}])
def test_what_fits_neither_way_is_left_as_it_was(shapes: dict[str, tuple[int, ...]]) -> None:
    layer = load(Named(**shapes), WEIGHTS)
    assert layer.a.tolist() == [0.0, 0.0]
    assert "a" not in counterparts(layer, WEIGHTS)


def test_a_known_name_of_another_shape_is_an_error() -> None:
    message = r"^not equal: shape of bias: \(3,\) against \(2,\)$"
    with pytest.raises(AssertionError, match=message):
        load(Named(weight=(2,), bias=(3,)), WEIGHTS)


def test_weights_of_is_a_copy() -> None:
    layer = randomized(nn.Linear(2, 3), std=0.5)
    weights = weights_of(layer)
    assert list(weights) == ["weight", "bias"]
    randomized(layer)
    assert not torch.equal(weights["weight"], layer.weight)


def test_randomized_draws_with_the_standard_deviation() -> None:
    assert 0.45 < randomized(nn.Linear(100, 100), std=0.5).weight.std() < 0.55


def test_built_wants_a_module() -> None:
    assert isinstance(built(nn.Linear, 2, 3), nn.Linear)
    with pytest.raises(AssertionError, match=r"^not a torch.nn.Module but dict$"):
        built(dict)


def test_what_is_rounded_twice_is_seen() -> None:
    exact = torch.linspace(1, 2, 1000, dtype=torch.float64)
    assert rounded_once(exact.bfloat16(), exact, atol=0.0).error < 2**-8
    with pytest.raises(AssertionError, match=r"^not equal: torch.float32 against torch.bfloat16$"):
        rounded_once(exact.float(), exact, atol=0.0)
    with pytest.raises(AssertionError, match=r"^not equal: worst difference"):
        rounded_once((exact.bfloat16() / 3 * 3), exact, atol=0.0)


def test_same_shows_both() -> None:
    assert repr(same((2, 3), (2, 3))) == "holds: (2, 3)"
    with pytest.raises(AssertionError, match=r"^not equal: \(2,\) against \(3,\)$"):
        same((2,), (3,))


def test_parameters_are_named_by_what_is_wrong_with_them() -> None:
    layer = nn.ModuleDict({"a": Named(weight=(2, 3)), "b": Named(scale=(2,))})
    evidence = has_parameters(layer, a__weight=(2, 3), b__scale=(2,))
    assert repr(evidence) == "holds: a.weight (2, 3), b.scale (2,)"
    message = r"^not equal: no b.bias, unknown b.scale, a.weight \(2, 3\) against \(3, 2\)$"
    with pytest.raises(AssertionError, match=message):
        has_parameters(layer, a__weight=(3, 2), b__bias=(2,))


def test_outputs_and_gradients_come_in_the_order_of_the_weights() -> None:
    class Affine(Named):
        def forward(self, x: Tensor, mask: Tensor) -> Tensor:
            return (self.weight * x)[mask]

    layer = load(Affine(bias=(2,), weight=(2,)), WEIGHTS)
    x = torch.tensor([0.5, 0.25])
    output, of_x, of_weight, of_bias = outputs_and_gradients(
        layer, WEIGHTS, x, torch.tensor([True, False])
    )
    assert output.tolist() == [0.5]
    slope = torch.tensor(0.5).cos()
    torch.testing.assert_close(of_x, torch.stack([slope, torch.tensor(0.0)]))
    torch.testing.assert_close(of_weight, torch.stack([0.5 * slope, torch.tensor(0.0)]))
    assert of_bias.tolist() == [0.0, 0.0]


def test_a_weight_that_the_layer_lacks_has_no_gradient() -> None:
    class Gain(Named):
        def forward(self, x: Tensor) -> Tensor:
            return self.weight * x

    *others, of_bias = outputs_and_gradients(Gain(weight=(2,)), WEIGHTS, torch.ones(2))
    assert len(others) == 3
    assert of_bias.shape == (0,)
