"""The checks of `dropout` and `Dropout`. No two generators agree: the laws are statistical."""

import math
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from layer_checks.candidates import built, same
from layer_checks.definitions import Candidate, Check, Layer
from layer_checks.evidence import Evidence, equivalent, holds, raises
from layer_checks.wrong.dropout import WRONG_DROPOUT_LAYERS, WRONG_DROPOUTS

# A function of x, p and whether it trains, whatever form the candidate has.
Call: TypeAlias = Callable[[Tensor, float, bool], Tensor]
Adapter: TypeAlias = Callable[[Candidate], Call]


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


def _output_shape(call: Call) -> Evidence:
    return same(tuple(call(torch.randn(2, 3, 4), 0.5, True).shape), (2, 3, 4))


def _some_are_zero(call: Call) -> Evidence:
    zeros = int((call(torch.ones(1000), 0.5, True) == 0).sum())
    return holds(0 < zeros < 1000, "of 1,000 elements some are 0 and some are not")


def _share_at_one_half(call: Call) -> Evidence:
    share = (call(torch.ones(10_000), 0.5, True) != 0).double().mean()
    return equivalent(share, 0.5, atol=0.05)


def _kept_share(call: Call) -> Evidence:
    share = (call(torch.ones(40_000), 0.3, True) != 0).double().mean()
    return equivalent(share, 0.7, atol=0.0115)  # five standard deviations


def _kept_values(call: Call) -> Evidence:
    x = torch.linspace(1, 2, 1000, dtype=torch.float64)
    y = call(x, 0.3, True)
    return equivalent(y[y != 0], x[y != 0] / 0.7, atol=1e-15)


def _each_element_by_itself(call: Call) -> Evidence:
    kept = (call(torch.ones(500, 16), 0.5, True) != 0).double()
    # Of independent draws, the mean of 16 has a variance of 1/64; 500 of them know it to 6 %.
    return equivalent(torch.stack([kept.mean(1).var(), kept.mean(0).var()]), [1 / 64, 5e-4], 5e-3)


def _new_draws(call: Call) -> Evidence:
    x = torch.ones(100)
    return holds(
        not torch.equal(call(x, 0.5, True), call(x, 0.5, True)), "two calls drop other elements"
    )


def _gradient(call: Call) -> Evidence:
    x = torch.linspace(1, 2, 100, dtype=torch.float64, requires_grad=True)
    y = call(x, 0.3, True)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    return equivalent(gradient, y.detach() / x.detach(), atol=1e-15)


def _evaluation(call: Call) -> Evidence:
    x = torch.randn(100)
    return equivalent(call(x, 0.5, False), x, atol=0.0)


def _nothing_dropped(call: Call) -> Evidence:
    x = torch.randn(100)
    return equivalent(call(x, 0.0, True), x, atol=0.0)


def _everything_dropped(call: Call) -> Evidence:
    x = torch.randn(100, requires_grad=True)
    y = call(x, 1.0, True)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    return equivalent(torch.stack([y.detach(), gradient]), 0.0, atol=0.0)


def _bad_p(call: Call) -> Evidence:
    for p in (1.5, -0.5, math.nan):
        raises(ValueError, call, torch.ones(3), p, True)
    return holds(True, "p = 1.5, -0.5 and NaN raise ValueError")


def _dtype(call: Call) -> Evidence:
    dtypes = [torch.float16, torch.bfloat16, torch.float64]
    return same([call(torch.ones(4, dtype=each), 0.5, True).dtype for each in dtypes], dtypes)


def _rare_survivors(call: Call) -> Evidence:
    kept = (call(torch.ones(200_000, dtype=torch.bfloat16), 0.999, True) != 0).sum()
    return equivalent(kept.double(), 200.0, atol=75.0)  # five standard deviations


def _dropped_infinity(call: Call) -> Evidence:
    y = call(torch.full((100,), math.inf), 0.5, True)
    return holds(bool(((y == 0) | (y == math.inf)).all()), "a dropped infinity is 0")


def _checks(adapted: Adapter) -> tuple[Check, ...]:
    def check(name: str, law: str, run: Callable[[Call], Evidence], *, weak: bool = False) -> Check:
        return Check(name, law, lambda candidate: run(adapted(candidate)), weak)

    return (
        check("output shape", "The output has the shape of the input.", _output_shape, weak=True),
        check("some are zero", "Some elements are 0 and some are not.", _some_are_zero, weak=True),
        check(
            "half of them",
            "With p = 0.5 about half of the elements are kept.",
            _share_at_one_half,
            weak=True,
        ),
        check("kept share", "With p = 0.3, 70 % of the elements are kept.", _kept_share),
        check("kept values", "What is kept is divided by 1 - p.", _kept_values),
        check(
            "each element by itself",
            "Elements are dropped independently, along rows and along columns.",
            _each_element_by_itself,
        ),
        check("new draws", "Two calls drop other elements.", _new_draws),
        check(
            "gradient",
            "An element's gradient is what it was multiplied by: 0 for a dropped one.",
            _gradient,
        ),
        check("evaluation", "In evaluation the output is the input.", _evaluation),
        check("p = 0", "With p = 0 the output is the input.", _nothing_dropped),
        check("p = 1", "With p = 1 output and gradient are 0.", _everything_dropped),
        check("bad p", "A p that is no probability is refused.", _bad_p),
        check("dtype", "The output has the dtype of the input.", _dtype),
        check(
            "rare survivors",
            "In bfloat16, p = 0.999 keeps one element of 1,000.",
            _rare_survivors,
        ),
        check("dropped infinity", "An infinity that is dropped is 0.", _dropped_infinity),
    )


DROPOUT = Layer(
    name="dropout",
    signature="dropout(x, p=0.5, training=True)",
    example=lambda candidate: candidate(torch.ones(2, 3), 0.5, training=True),
    probe=lambda candidate: _probe(_of_function(candidate)),
    wrong_versions=WRONG_DROPOUTS,
    checks=_checks(_of_function),
)

DROPOUT_LAYER = Layer(
    name="Dropout",
    signature="Dropout(p=0.5)",
    example=lambda candidate: built(candidate, 0.5)(torch.ones(2, 3)),
    probe=lambda candidate: _probe(_of_layer(candidate)),
    wrong_versions=WRONG_DROPOUT_LAYERS,
    checks=_checks(_of_layer),
)
