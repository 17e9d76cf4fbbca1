"""The checks of `BatchNorm1d`, against `torch.nn.BatchNorm1d`."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

import transformer_layers
from layer_checks.evidence.evidence import Evidence, equivalent, holds
from layer_checks.kit.arguments import CannotTakeError
from layer_checks.kit.candidates import (
    built,
    has_parameters,
    outputs_and_gradients,
    quietly,
    randn64,
    randomized,
    rounded_once,
    rounds_once_with_float32_parameters,
    same,
    weights_of,
    width_of,
)
from layer_checks.kit.definitions import Candidate, Layer
from layer_checks.kit.initial import starts_as
from layer_checks.kit.oracles import agreeing_gradients, with_weights_of
from layer_checks.kit.probes import Probing, probe


def _pair(candidate: Candidate, **options: Any) -> tuple[nn.Module, nn.BatchNorm1d]:
    theirs = randomized(nn.BatchNorm1d(5, **options), std=1.0).double()
    return with_weights_of(theirs, candidate, 5, **options), theirs


def _pair_of_width(candidate: Candidate, width: int) -> tuple[nn.Module, nn.BatchNorm1d]:
    theirs = randomized(nn.BatchNorm1d(width, eps=0.1), std=1.0).double()
    return with_weights_of(theirs, candidate, width, eps=0.1), theirs


def _batch(*axes: int) -> Tensor:
    return 1.5 * randn64(*axes) + 0.5


def _trained(candidate: Candidate, **options: Any) -> tuple[nn.Module, nn.BatchNorm1d]:
    ours, theirs = _pair(candidate, **options)
    for _ in range(3):
        x = _batch(4, 5)
        ours(x)
        theirs(x)
    return ours, theirs


def _averaging(candidate: Candidate) -> tuple[nn.Module, nn.BatchNorm1d]:
    """With momentum=None, after three batches.

    Raises:
        CannotTakeError: If it needs a number.
    """
    try:
        return _trained(candidate, momentum=None)
    except (TypeError, ValueError) as error:
        raise CannotTakeError("it takes no momentum=None", "momentum") from error


def _example(candidate: Candidate) -> object:
    return built(candidate, 5), built(candidate, 5, eps=0.1)


def _probe(candidate: Candidate) -> Iterator[Tensor]:
    x, y = _batch(4, 5, 3), _batch(4, 5)
    ours, theirs = _trained(candidate, eps=0.1)
    yield from outputs_and_gradients(ours, weights_of(theirs), x)
    yield ours.eval()(y).detach()
    averaging, _ = _averaging(candidate)
    yield averaging.eval()(y).detach()


def _values(candidate: Candidate, *axes: int) -> Evidence:
    ours, theirs = _pair(candidate, eps=0.1)
    x = _batch(*axes)
    return equivalent(ours(x), theirs(x), atol=1e-12)


def _names_of_averages(candidate: Candidate) -> dict[str, str]:
    """What the running mean and the running variance are called, by torch's names.

    By their own names, or else by what a batch does to them whose mean is far from 0 and whose
    values hardly deviate: of two buffers, that of the mean moves far, that of the variance little.

    Raises:
        CannotTakeError: If that does not tell them.
    """
    layer = built(candidate, 5).double().train()
    before = {name: each.clone() for name, each in layer.named_buffers() if each.shape == (5,)}
    if before.keys() >= {"running_mean", "running_var"}:
        return {name: name for name in ("running_mean", "running_var")}
    layer(1e4 + 1e-3 * _batch(4, 5))
    moved = {
        name: float((each - before[name]).abs().min())
        for name, each in layer.named_buffers()
        if name in before
    }
    order = sorted((name for name in moved if moved[name] > 0), key=lambda name: -moved[name])
    if len(order) != 2 or not moved[order[0]] > 10 * moved[order[1]]:
        raise CannotTakeError("it is not known which of its buffers are the running averages")
    return dict(zip(("running_mean", "running_var"), order, strict=True))


def _same_average(candidate: Candidate, ours: nn.Module, theirs: nn.Module, name: str) -> Evidence:
    own = _names_of_averages(candidate)[name]
    return equivalent(ours.get_buffer(own), theirs.get_buffer(name), atol=1e-12)


def _buffer(candidate: Candidate, name: str) -> Evidence:
    return _same_average(candidate, *_trained(candidate), name)


batch_norm_1d = Layer(
    "BatchNorm1d",
    "BatchNorm1d(num_features, eps=1e-5, momentum=0.1)",
    example=_example,
    probe=_probe,
    synonyms={"num_features": "channels num_channels dim features n_features d_model".split()},
    attributes=("eps", "momentum"),
    sizes={"num_features": width_of},
    not_mistakes={"reset draws another start"},  # "reset leaves the buffers" shows the same
    leading=(4,),
)


@batch_norm_1d.check("The output has the shape of the input.", weak=True)
def output_shape(candidate: Candidate) -> Evidence:
    found = [tuple(built(candidate, 5)(torch.randn(shape)).shape) for shape in ((4, 5), (4, 5, 3))]
    return same(found, [(4, 5), (4, 5, 3)])


@batch_norm_1d.check(
    "In training, with fresh weights, each channel has mean 0 and variance 1, up to 0.01.",
    name="mean 0, variance 1",
    weak=True,
)
def mean_and_variance(candidate: Candidate) -> Evidence:
    y = built(candidate, 5)(torch.randn(256, 5))
    found = torch.stack([y.mean(dim=0), y.var(dim=0, correction=0)])
    return equivalent(found, torch.stack([torch.zeros(5), torch.ones(5)]), atol=1e-2)


@batch_norm_1d.check("The state dict has the names of nn.BatchNorm1d's.", kind="contract")
def state(candidate: Candidate) -> Evidence:
    layer = built(candidate, 5)
    same(list(layer.state_dict()), list(nn.BatchNorm1d(5).state_dict()))
    return has_parameters(layer, weight=(5,), bias=(5,))


@batch_norm_1d.check(
    "With 4 samples, eps = 0.1 and random weights, the values in float64 are torch's."
)
def values_in_training(candidate: Candidate) -> Evidence:
    return _values(candidate, 4, 5)


@batch_norm_1d.check("So they are for input of shape (batch, channels, length).")
def values_with_a_length(candidate: Candidate) -> Evidence:
    return _values(candidate, 4, 5, 3)


@batch_norm_1d.check("So are the gradients of the input, weight and bias.")
def gradients(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate, eps=0.1)
    return agreeing_gradients(ours, theirs, _batch(4, 5, 3))


@batch_norm_1d.check("After three batches in training, the values in evaluation are torch's.")
def values_in_evaluation(candidate: Candidate) -> Evidence:
    ours, theirs = _trained(candidate, eps=0.1)
    x = _batch(4, 5)
    return equivalent(ours.eval()(x), theirs.eval()(x), atol=1e-12)


@batch_norm_1d.check("After three batches the running mean is torch's.")
def running_mean(candidate: Candidate) -> Evidence:
    return _buffer(candidate, "running_mean")


@batch_norm_1d.check(
    "After three batches of 4 samples the running variance is torch's: the unbiased one."
)
def running_variance(candidate: Candidate) -> Evidence:
    return _buffer(candidate, "running_var")


@batch_norm_1d.check(
    "With momentum=None running mean and running variance are the averages over all batches, which "
    "are counted.",
    name="momentum=None",
)
def momentum_none(candidate: Candidate) -> Evidence:
    ours, theirs = _averaging(candidate)
    count = "num_batches_tracked"
    if count in dict(ours.named_buffers()) or "running_mean" in dict(ours.named_buffers()):
        equivalent(ours.get_buffer(count), theirs.get_buffer(count))
    _same_average(candidate, ours, theirs, "running_var")
    return _same_average(candidate, ours, theirs, "running_mean")


@batch_norm_1d.check(
    "With momentum=None, another one that takes its state dict goes on with its averages and its "
    "number of batches."
)
def averages_go_on(candidate: Candidate) -> Evidence:
    ours, theirs = _averaging(candidate)
    another, _ = _pair(candidate, momentum=None)
    another.load_state_dict(ours.state_dict())
    x, y = _batch(4, 5), _batch(4, 5)
    for layer in (another, theirs):
        layer.train()(x)
    return equivalent(another.eval()(y), theirs.eval()(y), atol=1e-12)


@batch_norm_1d.check("In evaluation one batch does not change what the next one gives.")
def evaluation_changes_nothing(candidate: Candidate) -> Evidence:
    ours, _ = _trained(candidate)
    x = _batch(4, 5)
    before = ours.eval()(x)
    ours(_batch(4, 5))
    return equivalent(ours(x), before, atol=0.0)


@batch_norm_1d.check(
    "An empty batch in training gives an empty result, and leaves the running averages and the "
    "number of batches as they were.",
    kind="contract",
)
def empty_batch_in_training(candidate: Candidate) -> Evidence:
    ours, _ = _trained(candidate)
    before = {name: each.clone() for name, each in ours.state_dict().items()}
    for axes in ((0, 5), (0, 5, 3)):
        with quietly():
            same(tuple(ours.train()(_batch(*axes)).shape), axes)
        for name, each in ours.state_dict().items():
            equivalent(each, before[name], atol=0.0)
    return holds(True, "empty batches changed nothing")


@batch_norm_1d.check(
    "With 1000 added to the input, float32 gives the values of float64, up to 0.001."
)
def large_mean(candidate: Candidate) -> Evidence:
    x = torch.randn(16, 5) + 1000
    expected = functional.batch_norm(x.double(), None, None, training=True).float()
    # One rounding of the mean, 1000 * 6e-8, divided by a standard deviation of 0.1 or more.
    return equivalent(built(candidate, 5, eps=1e-5)(x), expected, atol=1e-3)


@batch_norm_1d.check(
    "In float16, channels with a standard deviation of 600 are normalized.", kind="contract"
)
def half_precision(candidate: Candidate) -> Evidence:
    x = (600 * torch.randn(16, 5)).half()
    expected = functional.batch_norm(x.double(), None, None, training=True).half()
    # Values up to sqrt(15): a rounding error of 1e-3 in the result.
    return equivalent(built(candidate, 5, eps=1e-5).half()(x), expected, atol=4e-3)


# No law, since torch's own layer breaks it on a CPU, unless its parameters are float32.
@batch_norm_1d.check(
    "In bfloat16, values around 10 are normalized in float32, and rounded once.", kind="contract"
)
def bfloat16(candidate: Candidate) -> Evidence:
    x = (torch.randn(16, 5) + 10).bfloat16()
    exact = functional.batch_norm(x.double(), None, None, training=True)
    return rounded_once(built(candidate, 5, eps=1e-5).bfloat16()(x), exact, atol=1e-4)


@batch_norm_1d.check(
    "With parameters in float32, input in float16 or bfloat16 gives a result of its own dtype, "
    "computed in float32 and rounded once.",
    kind="contract",
)
def float32_parameters(candidate: Candidate) -> Evidence:
    ours, theirs = _pair_of_width(candidate, 64)
    return rounds_once_with_float32_parameters(ours, theirs, 16, 64)


@batch_norm_1d.check(
    "So it does in evaluation, where the running variance is beyond float16's largest number.",
    kind="contract",
)
def large_running_variance(candidate: Candidate) -> Evidence:
    ours, theirs = _pair_of_width(candidate, 64)
    for _ in range(3):
        x = 2000 * torch.randn(16, 64)
        ours.float()(x)
        theirs(x.double())
    return rounds_once_with_float32_parameters(ours.eval(), theirs.eval(), 16, 64)


@batch_norm_1d.check(
    "Weight and running variance start from ones, bias and running mean from zeros, and so does "
    "the number of batches.",
    kind="start",
)
def initial_values(candidate: Candidate) -> Evidence:
    layer, own = built(candidate, 5), _names_of_averages(candidate)
    for name, expected in nn.BatchNorm1d(5).named_buffers():
        known = own.get(name, name)
        if known in dict(layer.named_buffers()) or own["running_mean"] == "running_mean":
            equivalent(layer.get_buffer(known), expected, atol=0.0)
    return starts_as(layer, transformer_layers.BatchNorm1d(5))


@batch_norm_1d.check("Without eps and momentum, they are 1e-5 and 0.1.", kind="start")
def defaults(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    x = 1e-3 * _batch(4, 5)
    equivalent(ours(x), theirs(x), atol=1e-11)
    return equivalent(ours.eval()(x), theirs.eval()(x), atol=1e-11)


probe(
    batch_norm_1d,
    Probing(
        pair=lambda candidate: _trained(candidate, eps=0.1),
        inputs=lambda batch, seq: (_batch(batch, 5, seq),),
        sizes=(5,),
        narrow=lambda candidate: (*_pair_of_width(candidate, 1), (_batch(4, 1),)),
        wide=lambda candidate, size: (*_pair_of_width(candidate, size), (_batch(4, size),)),
    ),
)
