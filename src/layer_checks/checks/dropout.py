"""The checks of `dropout` and `Dropout`. No two generators agree: the laws are statistical."""

import math
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor, nn

from layer_checks.evidence.evidence import Evidence, equivalent, holds, raises
from layer_checks.kit.arguments import CannotTakeError
from layer_checks.kit.candidates import built, same
from layer_checks.kit.definitions import Candidate, Family, Layer
from layer_checks.kit.dropping import independent
from layer_checks.kit.probes import DROPPED, Probing, probe

# A function of x, p and whether it trains, whatever form the candidate has.
Call: TypeAlias = Callable[[Tensor, float, bool], Tensor]


def _of_function(candidate: Candidate) -> Call:
    return lambda x, p, training: candidate(x, p, training=training)


def _of_layer(candidate: Candidate) -> Call:
    return lambda x, p, training: built(candidate, p).train(training)(x)


def _probe(call: Call) -> list[Tensor]:
    x = torch.ones(20_000, dtype=torch.float64, requires_grad=True)
    y = call(x, 0.3, True)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    share = (y != 0).double().mean().mul(10).round()  # a standard deviation of 0.03 before rounding
    return [share, y.detach().unique(), gradient.unique(), call(x, 0.3, False).detach().mean()]


_SYNONYMS = {"p": "dropout drop dropout_p dropout_rate dropout_prob prob rate drop_prob".split()}

dropout = Layer(
    "dropout",
    "dropout(x, p=0.5, training=True)",
    example=lambda candidate: candidate(torch.ones(2, 3), 0.5, training=True),
    probe=lambda candidate: _probe(_of_function(candidate)),
    synonyms=_SYNONYMS,
)
dropout_layer = Layer(
    "Dropout",
    "Dropout(p=0.5)",
    example=lambda candidate: built(candidate, 0.5)(torch.ones(2, 3)),
    probe=lambda candidate: _probe(_of_layer(candidate)),
    synonyms=_SYNONYMS,
    # Without parameters, and with a root of nothing in it.
    not_mistakes={"gradient of a root at zero", "parameters made in forward"},
)
both = Family({dropout: _of_function, dropout_layer: _of_layer})


@both.check("The output has the shape of the input.", weak=True)
def output_shape(call: Call) -> Evidence:
    return same(tuple(call(torch.randn(2, 3, 4), 0.5, True).shape), (2, 3, 4))


@both.check("Some elements are 0 and some are not.", weak=True)
def some_are_zero(call: Call) -> Evidence:
    zeros = int((call(torch.ones(1000), 0.5, True) == 0).sum())
    return holds(0 < zeros < 1000, "of 1,000 elements some are 0 and some are not")


@both.check("With p = 0.5 about half of the elements are kept.", weak=True)
def half_of_them(call: Call) -> Evidence:
    share = (call(torch.ones(10_000), 0.5, True) != 0).double().mean()
    return equivalent(share, 0.5, atol=0.05)


@both.check("With p = 0.3, 70 % of the elements are kept.")
def kept_share(call: Call) -> Evidence:
    share = (call(torch.ones(40_000), 0.3, True) != 0).double().mean()
    return equivalent(share, 0.7, atol=0.0115)  # five standard deviations


@both.check("What is kept is divided by 1 - p.")
def kept_values(call: Call) -> Evidence:
    x = torch.linspace(1, 2, 1000, dtype=torch.float64)
    y = call(x, 0.3, True)
    return equivalent(y[y != 0], x[y != 0] / 0.7, atol=1e-15)


@both.check(
    "Elements are dropped independently, along rows and columns, and along each of four axes."
)
def each_element_by_itself(call: Call) -> Evidence:
    independent(call(torch.ones(5, 6, 7, 8), 0.5, True) == 0, 0.5)
    kept = (call(torch.ones(500, 16), 0.5, True) != 0).double()
    # Of independent draws, the mean of 16 has a variance of 1/64; 500 of them know it to 6 %.
    return equivalent(torch.stack([kept.mean(1).var(), kept.mean(0).var()]), [1 / 64, 5e-4], 5e-3)


@both.check("Two calls drop other elements.")
def new_draws(call: Call) -> Evidence:
    x = torch.ones(100)
    return holds(
        not torch.equal(call(x, 0.5, True), call(x, 0.5, True)), "two calls drop other elements"
    )


@both.check("An element's gradient is what it was multiplied by: 0 for a dropped one.")
def gradient(call: Call) -> Evidence:
    x = torch.linspace(1, 2, 100, dtype=torch.float64, requires_grad=True)
    y = call(x, 0.3, True)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    return equivalent(gradient, y.detach() / x.detach(), atol=1e-15)


@both.check("In evaluation the output is the input.")
def evaluation(call: Call) -> Evidence:
    x = torch.randn(100)
    return equivalent(call(x, 0.5, False), x, atol=0.0)


@both.check("With p = 0 the output is the input.", name="p = 0")
def nothing_dropped(call: Call) -> Evidence:
    x = torch.randn(100)
    return equivalent(call(x, 0.0, True), x, atol=0.0)


@both.check("With p = 1 output and gradient are 0.", name="p = 1")
def everything_dropped(call: Call) -> Evidence:
    x = torch.randn(100, requires_grad=True)
    try:
        y = call(x, 1.0, True)
    except ValueError as error:
        raise CannotTakeError("it refuses p = 1") from error
    if not y.requires_grad:  # such as new zeros: a constant, whose gradient is 0
        return equivalent(y, 0.0, atol=0.0)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    return equivalent(torch.stack([y.detach(), gradient]), 0.0, atol=0.0)


@both.check("A p that is no probability is refused.", kind="contract")
def bad_p(call: Call) -> Evidence:
    for p in (1.5, -0.5, math.nan):
        raises(ValueError, call, torch.ones(3), p, True)
    return holds(True, "p = 1.5, -0.5 and NaN raise ValueError")


@both.check("The output has the dtype of the input.", kind="contract")
def dtype(call: Call) -> Evidence:
    dtypes = [torch.float16, torch.bfloat16, torch.float64]
    return same([call(torch.ones(4, dtype=each), 0.5, True).dtype for each in dtypes], dtypes)


@both.check("In bfloat16, p = 0.999 keeps one element of 1,000.", kind="contract")
def rare_survivors(call: Call) -> Evidence:
    kept = (call(torch.ones(200_000, dtype=torch.bfloat16), 0.999, True) != 0).sum()
    return equivalent(kept.double(), 200.0, atol=75.0)  # five standard deviations


@both.check("An infinity that is dropped is 0.", kind="contract")
def dropped_infinity(call: Call) -> Evidence:
    y = call(torch.full((100,), math.inf), 0.5, True)
    return holds(bool(((y == 0) | (y == math.inf)).all()), "a dropped infinity is 0")


def _itself(x: Tensor) -> Tensor:
    return x


def _sequences(batch: int, seq: int) -> tuple[Tensor]:
    return (torch.randn(batch, seq, 5, dtype=torch.float64),)


probe(
    dropout,
    Probing(
        pair=lambda candidate: (lambda x: candidate(x, 0.5, training=False), _itself),
        inputs=_sequences,
        half=False,  # see dtype
        defaults={"p": 0.5, "training": True},
        bare=lambda: _sequences(40, 4),
        dropping=lambda candidate: (
            lambda x: candidate(x, DROPPED, training=True),
            _sequences(3, 4),
        ),
        drawn=lambda candidate: [candidate(torch.ones(100), 0.5, training=True)],
        makes=lambda candidate: (
            lambda x: candidate(x, 0.5, training=True),
            (torch.ones(100),),
        ),
    ),
)
probe(
    dropout_layer,
    Probing(
        pair=lambda candidate: (built(candidate, 0.0), nn.Identity()),
        inputs=_sequences,
        half=False,  # see dtype
        defaults={"p": 0.5},
        dropping=lambda candidate: (built(candidate, DROPPED), _sequences(3, 4)),
        drawn=lambda candidate: [built(candidate, 0.5)(torch.ones(100))],
        makes=lambda candidate: (built(candidate, 0.5), (torch.ones(100),)),
    ),
)
