"""`same_gradients`: which gradients it compares, and which of them a failure names."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from layer_checks import same_gradients


class Affine(nn.Module):
    def __init__(self, weight_name: str = "weight", bias_name: str = "bias") -> None:
        super().__init__()
        self.names = weight_name, bias_name
        self.register_parameter(weight_name, nn.Parameter(torch.tensor([2.0, -3.0]).double()))
        self.register_parameter(bias_name, nn.Parameter(torch.tensor([0.5, 0.25]).double()))

    def forward(self, x: Tensor) -> Tensor:
        weight, bias = (getattr(self, name) for name in self.names)
        return weight * x + bias


class WeightHalf(Affine):
    def forward(self, x: Tensor) -> Tensor:
        return 0.5 * super().forward(x)


@pytest.fixture
def x() -> Tensor:
    return torch.tensor([[1.0, -2.0], [0.5, 4.0], [3.0, 1.5]]).double()


def test_equal_gradients_are_evidence(x: Tensor) -> None:
    evidence = same_gradients(Affine(), Affine(), x)
    assert (evidence.kind, evidence.error, evidence.tolerance) == ("equal", 0.0, 1e-12)


def test_a_failure_names_the_worst_gradient_and_the_others(x: Tensor) -> None:
    with pytest.raises(AssertionError) as caught:
        same_gradients(WeightHalf(), Affine(), x)
    first, *_, last = str(caught.value).splitlines()
    assert first.startswith("not equal: gradient of input 0: largest difference ")
    assert first.endswith(", tolerance 1e-12")
    assert last == "  also wrong: parameter weight, parameter bias"


def test_other_names_need_a_mapping(x: Tensor) -> None:
    ours = Affine("gamma", "bias")
    assert same_gradients(ours, Affine(), x, parameters={"gamma": "weight"}).error == 0.0
    message = (
        "not equal: no counterpart: parameter gamma in ours only; parameter weight in theirs only"
    )
    with pytest.raises(AssertionError, match=message):
        same_gradients(ours, Affine(), x)
    with pytest.raises(
        ValueError, match=r"parameters= names \['beta'\], ours has \['bias', 'gamma'\]"
    ):
        same_gradients(ours, Affine(), x, parameters={"beta": "weight"})


def test_a_parameter_on_one_side_only_is_an_error(x: Tensor) -> None:
    with_bias, without = nn.LayerNorm(2).double(), nn.LayerNorm(2, bias=False).double()
    with pytest.raises(AssertionError, match="counterpart: parameter bias in ours only"):
        same_gradients(with_bias, without, x)
    with pytest.raises(AssertionError, match="counterpart: parameter bias in theirs only"):
        same_gradients(without, with_bias, x)
    evidence = same_gradients(
        nn.LayerNorm(2).double().forward, nn.LayerNorm(2, bias=False).double().forward, x
    )
    assert evidence.error == 0.0


def test_other_arguments_are_handed_through() -> None:
    table = torch.ones(4, 2).double()
    ids = torch.tensor([1, 3, 3])

    def look_up(ids: Tensor, table: Tensor, nothing: None) -> Tensor:
        return functional.embedding(ids, table)

    assert same_gradients(look_up, lambda i, t, _: t[i], ids, table, None).error == 0.0


def test_of_a_tuple_the_first_element_counts(x: Tensor) -> None:
    assert same_gradients(lambda x: (x.sin(), x), lambda x: x.sin(), x).error == 0.0


def test_outputs_of_another_shape_or_dtype_are_refused(x: Tensor) -> None:
    message = (
        r"not equal: the outputs have shape \(3, 2\), torch.float64 against \(3,\), torch.float64"
    )
    with pytest.raises(AssertionError, match=message):
        same_gradients(lambda x: x, lambda x: x.sum(dim=-1), x)
    with pytest.raises(AssertionError, match=r"torch.float64 against \(3, 2\), torch.float32"):
        same_gradients(lambda x: x, lambda x: x.float(), x)


def test_an_output_without_a_gradient_is_an_error(x: Tensor) -> None:
    with pytest.raises(AssertionError, match="the output of theirs depends on none of: input 0"):
        same_gradients(lambda x: x.sin(), lambda x: x.detach(), x)


def test_nothing_to_differentiate_is_an_error() -> None:
    with pytest.raises(ValueError, match="nothing to differentiate in ours"):
        same_gradients(lambda x: x, lambda x: x, torch.tensor([1, 2]))


def test_a_gradient_that_is_nan_is_the_worst(x: Tensor) -> None:
    def nan_for_second(a: Tensor, b: Tensor) -> Tensor:
        return 5 * a + (b - b).sqrt() * b

    with pytest.raises(AssertionError, match="gradient of input 1: NaN in actual"):
        same_gradients(nan_for_second, lambda a, b: a, x, x)


def test_neither_gradients_nor_random_state_are_left_changed(x: Tensor) -> None:
    layer = Affine()
    x = x.requires_grad_()
    state = torch.get_rng_state()
    evidence = same_gradients(
        nn.Sequential(layer, nn.Dropout()), nn.Sequential(layer, nn.Dropout()), x
    )
    assert evidence.error == 0.0  # both drew the same
    assert torch.equal(torch.get_rng_state(), state)
    assert x.grad is None
    assert layer.weight.grad is None
