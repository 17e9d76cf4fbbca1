"""Batch normalization: by hand, against `torch.nn`, by its laws, its buffers, and its errors."""

import copy
import math

import pytest
import torch
from torch import Tensor, nn

from tests.transformer_layers.comparisons import (
    assert_rounded_once,
    assert_same,
    relative_error,
    unit_roundoff,
    values_and_gradients,
    with_random_weights,
)
from transformer_layers import BatchNorm1d


def torchs(ours: BatchNorm1d, ndim: int) -> nn.Module:
    """Torch's layer for input of so many axes, with the same parameters and buffers."""
    kind = nn.BatchNorm2d if ndim == 4 else nn.BatchNorm1d
    theirs = kind(
        ours.num_features, ours.eps, ours.momentum, ours.affine, ours.track_running_stats
    ).double()
    theirs.load_state_dict(ours.state_dict(), strict=True)
    return theirs.train(ours.training)


def random_layer(momentum: float | None = 0.1, eps: float = 1e-5, **options: bool) -> BatchNorm1d:
    layer = with_random_weights(BatchNorm1d(3, eps, momentum, **options)).double()
    if layer.track_running_stats:
        nn.init.normal_(layer.running_mean)
        nn.init.uniform_(layer.running_var, 0.5, 2)
    return layer


# By hand


def test_a_batch_by_hand():
    batch_norm = BatchNorm1d(1, eps=5.0, momentum=0.25)
    with torch.no_grad():
        batch_norm.weight.fill_(3.0)
        batch_norm.bias.fill_(10.0)
    # mean 3, variance 4, root of 4 + 5 is 3: the normalized channel is -2/3, 2/3
    y = batch_norm(torch.tensor([[1.0], [5.0]]))
    torch.testing.assert_close(y, torch.tensor([[8.0], [12.0]]))
    # a quarter of the mean 3; three quarters of 1 and a quarter of the unbiased variance 8
    assert batch_norm.running_mean.tolist() == [0.75]
    assert batch_norm.running_var.tolist() == [2.75]
    assert batch_norm.num_batches_tracked.item() == 1
    # in evaluation (5.75 - 0.75) / root of 2.75 + 5, for any batch, and nothing is tracked
    y = batch_norm.eval()(torch.tensor([[5.75]]))
    torch.testing.assert_close(y, torch.tensor([[10 + 15 / math.sqrt(7.75)]]))
    assert batch_norm.num_batches_tracked.item() == 1


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("tracking", [True, False])
def test_what_is_switched_off_is_none_as_in_torch(affine, tracking):
    options = {"affine": affine, "track_running_stats": tracking}
    ours, theirs = BatchNorm1d(3, **options), nn.BatchNorm1d(3, **options)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
        assert (getattr(ours, name) is None) == (getattr(theirs, name) is None)
    ours.reset_parameters()


@pytest.mark.parametrize("shape", [(2,), (16, 100)])
def test_a_constant_channel_of_any_size_gives_the_bias_in_float32(shape):
    constants = torch.cat([torch.tensor([1e3, 1e4, 1e5, 1e6, 3e10]), 10 ** (6 * torch.rand(100))])
    batch_norm = with_random_weights(BatchNorm1d(len(constants), momentum=1.0))
    y = batch_norm(constants.expand(*shape, -1).movedim(-1, 1)).movedim(1, -1)
    assert torch.equal(y, batch_norm.bias.expand(*shape, -1))
    assert torch.equal(batch_norm.running_mean, constants)
    assert torch.equal(batch_norm.running_var, torch.zeros(len(constants)))


def test_the_printed_form_names_the_arguments():
    assert repr(BatchNorm1d(3)) == "BatchNorm1d(3, eps=1e-05, momentum=0.1)"
    expected = "BatchNorm1d(3, eps=1e-05, momentum=0.1, affine=False, track_running_stats=False)"
    assert repr(BatchNorm1d(3, affine=False, track_running_stats=False)) == expected


# Against torch


@pytest.mark.parametrize("shape", [(7, 3), (7, 3, 5), (7, 3, 5, 2)])
@pytest.mark.parametrize("momentum", [0.1, None])
@pytest.mark.parametrize("training", [True, False])
def test_equals_torch_in_float64(shape, momentum, training):
    ours = random_layer(momentum, eps=0.1).train(training)
    theirs = torchs(ours, len(shape))
    for _ in range(3):
        x = torch.randn(shape, dtype=torch.float64) + 2
        assert_same(
            values_and_gradients(ours, [x], list(ours.parameters())),
            values_and_gradients(theirs, [x], list(theirs.parameters())),
        )
    assert_same(list(ours.state_dict().values()), list(theirs.state_dict().values()))


@pytest.mark.parametrize("shape", [(1, 3, 5), (0, 3)])
@pytest.mark.parametrize(("affine", "tracking"), [(False, True), (True, False), (False, False)])
def test_without_parameters_or_running_averages_it_equals_torch(shape, affine, tracking):
    ours = random_layer(None, 0.1, affine=affine, track_running_stats=tracking)
    theirs = torchs(ours, len(shape))
    # An empty batch has no statistics, and torch refuses it where it has to take them.
    modes = (True, False, True, False) if 0 not in shape else (False,) * tracking
    for training in modes:
        x = torch.randn(shape, dtype=torch.float64) + 2
        assert_same(
            values_and_gradients(ours.train(training), [x], list(ours.parameters())),
            values_and_gradients(theirs.train(training), [x], list(theirs.parameters())),
        )
    assert_same(list(ours.state_dict().values()), list(theirs.state_dict().values()))


def test_without_running_averages_evaluation_is_training():
    batch_norm = random_layer(track_running_stats=False)
    x = torch.randn(7, 3, dtype=torch.float64)
    assert torch.equal(batch_norm.eval()(x), batch_norm.train()(x))
    assert batch_norm.eval()(torch.zeros(0, 3, dtype=torch.float64)).shape == (0, 3)


def test_tracking_that_ends_later_leaves_the_running_averages_to_evaluation_as_in_torch():
    ours = random_layer()
    theirs = torchs(ours, 2)
    ours.track_running_stats = theirs.track_running_stats = False
    before = copy.deepcopy(ours.state_dict())
    for training in (True, False):
        x = torch.randn(7, 3, dtype=torch.float64)
        assert_same([ours.train(training)(x)], [theirs.train(training)(x)])
    for name, value in before.items():
        assert torch.equal(ours.state_dict()[name], value)
        assert torch.equal(theirs.state_dict()[name], value)


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("training", [True, False])
def test_float32_is_as_near_to_float64_as_rounding_allows(offset, training):
    batch_norm = with_random_weights(BatchNorm1d(3)).train(training)
    x = torch.randn(64, 3, 5) + offset
    exact_layer = copy.deepcopy(batch_norm).double()
    y, exact = batch_norm(x), exact_layer(x.double())
    # However large the offset is: what the rounding of the mean leaves is subtracted too.
    assert relative_error(y, exact) <= 8 * unit_roundoff(torch.float32)
    assert relative_error(batch_norm.running_var, exact_layer.running_var) <= 1e-5


def test_the_running_averages_are_no_part_of_the_graph():
    batch_norm = random_layer()
    for _ in range(2):  # the second backward would fail if it reached the first forward
        batch_norm(torch.randn(6, 3, dtype=torch.float64)).sum().backward()
    assert not batch_norm.running_mean.requires_grad
    assert not batch_norm.running_var.requires_grad


# Low precision


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("parameters", ["of the same dtype", "of float32"])
def test_low_precision_is_one_rounding_from_float64(dtype, training, parameters):
    batch_norm = with_random_weights(BatchNorm1d(3)).train(training)
    if parameters == "of the same dtype":
        batch_norm = batch_norm.to(dtype)
    exact_layer = copy.deepcopy(batch_norm).double()
    x = (20 * torch.randn(64, 3) + 600).to(dtype).requires_grad_()
    y = batch_norm(x)
    assert y.dtype == dtype
    y.sum().backward()
    assert x.grad.dtype == dtype
    assert_rounded_once(y, exact_layer(x.detach().double()))
    buffer: Tensor
    for name, buffer in batch_norm.named_buffers():
        if buffer.is_floating_point():
            exact_buffer = exact_layer.get_buffer(name)
            rounding = max(unit_roundoff(buffer.dtype), 1e-6)
            assert relative_error(buffer, exact_buffer) <= 1.01 * rounding


# Errors


@pytest.mark.usefixtures("as_users_run_it")
class TestErrors:
    def test_one_value_per_channel(self):
        shape = (1, 3, 1)
        batch_norm = BatchNorm1d(3)
        message = r"Expected more than 1 value per channel when training, got shape \(1, 3"
        with pytest.raises(ValueError, match="^" + message):
            batch_norm(torch.zeros(shape))
        assert batch_norm.num_batches_tracked.item() == 0
        assert batch_norm.eval()(torch.zeros(shape)).shape == shape

    def test_one_value_per_channel_without_running_averages(self):
        batch_norm = BatchNorm1d(3, track_running_stats=False).eval()
        message = (
            r"Expected more than 1 value per channel without running averages, got shape "
            r"\(1, 3\); pass a larger batch$"
        )
        with pytest.raises(ValueError, match="^" + message):
            batch_norm(torch.zeros(1, 3))

    def test_a_dtype_that_is_not_that_of_the_running_averages(self):
        message = "x is torch.float64 but the layer's running averages are torch.float32"
        with pytest.raises(TypeError, match="^" + message):
            BatchNorm1d(3, affine=False)(torch.zeros(4, 3).double())

    @pytest.mark.parametrize("shape", [(3,), (4, 5, 3)])
    def test_another_shape(self, shape):
        got = rf"got \({str(shape)[1:-1]}\)$"
        message = rf"x must have shape \(batch, 3\) or \(batch, 3, length\), .*; {got}"
        with pytest.raises(ValueError, match="^" + message):
            BatchNorm1d(3)(torch.zeros(shape))

    def test_no_floating_point(self):
        with pytest.raises(TypeError, match=r"^x must be a floating-point tensor, got torch.int64"):
            BatchNorm1d(3)(torch.zeros(4, 3, dtype=torch.int64))

    def test_eps_that_is_not_positive(self):
        with pytest.raises(ValueError, match=r"^eps must be greater than 0, got 0\.0"):
            BatchNorm1d(3, eps=0.0)

    def test_momentum_outside_zero_to_one(self):
        with pytest.raises(ValueError, match=r"^momentum must be between 0 and 1, got 1\.5"):
            BatchNorm1d(3, momentum=1.5)
