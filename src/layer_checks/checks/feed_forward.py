"""The checks of `PositionwiseFeedForward` and `FeedForward`, against `torch.nn.functional`."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from layer_checks.candidates import (
    built,
    counterparts,
    has_parameters,
    load,
    outputs_and_gradients,
    randn64,
    randomized,
    same,
    weights_of,
)
from layer_checks.checks.transposed_linear import TransposedLinear
from layer_checks.definitions import Candidate, Check, Layer
from layer_checks.evidence import Evidence, equivalent
from layer_checks.gradients import same_gradients
from layer_checks.wrong.feed_forward import WRONG_FEED_FORWARDS, WRONG_POSITIONWISE

_D_MODEL, _D_FF = 5, 7


class _Positionwise(nn.Module):
    """`torch.nn.Linear` twice, around a ReLU."""

    def __init__(self, std: float) -> None:
        super().__init__()
        self.linear1 = randomized(nn.Linear(_D_MODEL, _D_FF), std).double()
        self.linear2 = randomized(nn.Linear(_D_FF, _D_MODEL), std).double()

    def forward(self, x: Tensor) -> Tensor:
        return self.linear2(functional.relu(self.linear1(x)))


class _FeedForward(nn.Module):
    """torch's linear layer twice, around the tanh form of GELU, on weights held as (in, out)."""

    def __init__(self, std: float) -> None:
        super().__init__()
        self.c_fc = TransposedLinear(_D_MODEL, _D_FF, std)
        self.c_proj = TransposedLinear(_D_FF, _D_MODEL, std)

    def forward(self, x: Tensor) -> Tensor:
        return self.c_proj(functional.gelu(self.c_fc(x), approximate="tanh"))


def _checks(authority: Callable[[float], nn.Module], parameters: Check) -> tuple[Check, ...]:
    def pair(
        candidate: Candidate, dropout: float = 0.0, std: float = 1.0
    ) -> tuple[nn.Module, nn.Module]:
        theirs = authority(std)
        ours = built(candidate, _D_MODEL, _D_FF, dropout=dropout).double()
        return load(ours, weights_of(theirs)), theirs

    def output_shape(candidate: Candidate, d_ff: int) -> Evidence:
        layer = built(candidate, _D_MODEL, d_ff)
        return same(tuple(layer(torch.randn(2, 3, _D_MODEL)).shape), (2, 3, _D_MODEL))

    def small_weights(candidate: Candidate) -> Evidence:
        ours, theirs = pair(candidate, std=0.02)
        x = randn64(2, 3, _D_MODEL)
        return equivalent(ours(x), theirs(x), atol=1e-3)

    def values(candidate: Candidate) -> Evidence:
        ours, theirs = pair(candidate)
        x = randn64(2, 3, _D_MODEL)
        return equivalent(ours(x), theirs(x), atol=1e-12)

    def gradients(candidate: Candidate) -> Evidence:
        ours, theirs = pair(candidate)
        names = counterparts(ours, weights_of(theirs))
        return same_gradients(ours, theirs, randn64(2, 3, _D_MODEL), atol=1e-11, parameters=names)

    def each_position(candidate: Candidate) -> Evidence:
        ours, _ = pair(candidate)
        x = randn64(2, 3, _D_MODEL)
        changed = x.clone()
        changed[:, 0] = randn64(2, _D_MODEL)
        return equivalent(ours(changed)[:, 1:], ours(x)[:, 1:], atol=1e-13)

    def evaluation(candidate: Candidate) -> Evidence:
        ours, theirs = pair(candidate, dropout=0.5)
        x = randn64(2, 3, _D_MODEL)
        return equivalent(ours.eval()(x), theirs(x), atol=1e-12)

    def dropped_result(candidate: Candidate) -> Evidence:
        ours, _ = pair(candidate, dropout=0.25)
        dropped = (ours(randn64(2, 300, _D_MODEL)) == 0).double().mean()
        return equivalent(dropped, 0.25, atol=0.05)  # six standard deviations

    return (
        Check(
            "output shape, d_ff = d_model",
            "With d_ff as large as d_model the output has the shape of the input.",
            lambda candidate: output_shape(candidate, _D_MODEL),
            weak=True,
        ),
        Check(
            "small weights, atol 1e-3",
            "With weights of standard deviation 0.02 the values are torch's, up to 0.001.",
            small_weights,
            weak=True,
        ),
        Check(
            "output shape",
            "With another d_ff the output has the shape of the input.",
            lambda candidate: output_shape(candidate, _D_FF),
        ),
        parameters,
        Check("values", "With random weights the values in float64 are torch's.", values),
        Check("gradients", "So are the gradients of the input and the weights.", gradients),
        Check("each position by itself", "Changing one position changes no other.", each_position),
        Check("evaluation", "In evaluation nothing is dropped.", evaluation),
        Check("dropped result", "In training a share of the result is 0.", dropped_result),
    )


def _probe(
    candidate: Candidate,
    authority: Callable[[float], nn.Module],
    default_size: Callable[[Candidate], int],
) -> list[Tensor]:
    theirs = authority(1.0)
    ours = built(candidate, _D_MODEL, _D_FF, dropout=0.0).double()
    weights = weights_of(theirs)
    found = outputs_and_gradients(load(ours, weights), weights, randn64(2, 3, _D_MODEL))
    return [torch.tensor(default_size(candidate)), *found]


def _positionwise_parameters(candidate: Candidate) -> Evidence:
    return has_parameters(
        built(candidate, _D_MODEL, _D_FF),
        linear1__weight=(_D_FF, _D_MODEL),
        linear1__bias=(_D_FF,),
        linear2__weight=(_D_MODEL, _D_FF),
        linear2__bias=(_D_MODEL,),
    )


def _gpt2_parameters(candidate: Candidate) -> Evidence:
    four_times = built(candidate, _D_MODEL)
    has_parameters(
        four_times,
        c_fc__weight=(_D_MODEL, 4 * _D_MODEL),
        c_fc__bias=(4 * _D_MODEL,),
        c_proj__weight=(4 * _D_MODEL, _D_MODEL),
        c_proj__bias=(_D_MODEL,),
    )
    return has_parameters(
        built(candidate, _D_MODEL, _D_FF),
        c_fc__weight=(_D_MODEL, _D_FF),
        c_fc__bias=(_D_FF,),
        c_proj__weight=(_D_FF, _D_MODEL),
        c_proj__bias=(_D_MODEL,),
    )


def _default_size(candidate: Candidate) -> int:
    return sum(weight.numel() for weight in weights_of(built(candidate, _D_MODEL)).values())


POSITIONWISE_FEED_FORWARD = Layer(
    name="PositionwiseFeedForward",
    signature="PositionwiseFeedForward(d_model, d_ff, dropout=0.1)",
    example=lambda candidate: built(candidate, _D_MODEL, _D_FF, dropout=0.5),
    probe=lambda candidate: _probe(candidate, _Positionwise, lambda candidate: 0),
    wrong_versions=WRONG_POSITIONWISE,
    checks=_checks(
        _Positionwise,
        Check(
            "parameters",
            "There are two nn.Linear, linear1 and linear2, with biases.",
            _positionwise_parameters,
        ),
    ),
)

FEED_FORWARD = Layer(
    name="FeedForward",
    signature="FeedForward(d_model, d_ff=None, dropout=0.1)",
    example=lambda candidate: (
        built(candidate, _D_MODEL),
        built(candidate, _D_MODEL, _D_FF, dropout=0.5),
    ),
    probe=lambda candidate: _probe(candidate, _FeedForward, _default_size),
    wrong_versions=WRONG_FEED_FORWARDS,
    checks=_checks(
        _FeedForward,
        Check(
            "parameters",
            "There are two Conv1D, c_fc and c_proj; the inner width is 4 d_model or d_ff.",
            _gpt2_parameters,
        ),
    ),
)
