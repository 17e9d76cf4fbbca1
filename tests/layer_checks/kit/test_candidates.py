"""How a reader's layer is given weights and asked for gradients."""

import pytest
import torch
from torch import Tensor, nn

from layer_checks.kit.candidates import (
    counterparts,
    load,
    outputs_and_gradients,
    rounded_once,
)

WEIGHTS = {"weight": torch.tensor([1.0, 2.0]), "bias": torch.tensor([3.0, 4.0])}


class Named(nn.Module):
    def __init__(self, **shapes: tuple[int, ...]) -> None:
        super().__init__()
        for name, shape in shapes.items():
            self.register_parameter(name, nn.Parameter(torch.zeros(shape)))


@pytest.mark.parametrize("shapes", [{"a": (2,)}, {"a": (2,), "b": (3,)}, {"a": (2,), "bias": (2,)}])
def test_what_fits_neither_way_is_left_as_it_was(shapes: dict[str, tuple[int, ...]]) -> None:
    layer = load(Named(**shapes), WEIGHTS)
    assert layer.a.tolist() == [0.0, 0.0]
    assert "a" not in counterparts(layer, WEIGHTS)


def test_what_is_rounded_twice_is_seen() -> None:
    exact = torch.linspace(1, 2, 1000, dtype=torch.float64)
    assert rounded_once(exact.bfloat16(), exact, atol=0.0).error < 2**-8
    with pytest.raises(AssertionError, match=r"^not equal: torch.float32 against torch.bfloat16$"):
        rounded_once(exact.float(), exact, atol=0.0)
    with pytest.raises(AssertionError, match=r"^not equal: worst difference"):
        rounded_once((exact.bfloat16() / 3 * 3), exact, atol=0.0)


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
