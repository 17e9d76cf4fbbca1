"""What dropout can make of a row: all of it, so that a result can be looked up."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from layer_checks.evidence.evidence import Evidence, equivalent, holds


def survivors(count: int, p: float) -> Tensor:
    """All that can become of some ones: each is 0, or 1/(1 - p).

    Args:
        count: How many there are.
        p: The probability of 0.

    Returns:
        Shape `(2 ** count, count)`.
    """
    choices = list(itertools.product((0.0, 1 / (1 - p)), repeat=count))
    return torch.tensor(choices, dtype=torch.float64)


def parts_dropped(parts: Sequence[Tensor], rest: Tensor, p: float) -> tuple[Tensor, Tensor]:
    """All sums of some parts, of which each is dropped or divided by 1 - p.

    Args:
        parts: Tensors of one shape.
        rest: What is added, and not dropped.
        p: The probability with which a part is dropped.

    Returns:
        The sums, an axis for the choices before the shape of a part; and for each choice which
        parts are dropped.
    """
    kept = survivors(len(parts), p)
    return torch.tensordot(kept, torch.stack(list(parts)), dims=1) + rest, kept == 0


def elements_dropped(rows: Tensor, p: float) -> tuple[Tensor, Tensor]:
    """All that can become of rows whose elements are dropped or divided by 1 - p.

    Args:
        rows: Shape `(..., width)`, of a small width.
        p: The probability with which an element is dropped.

    Returns:
        The rows, an axis for the choices before theirs; and for each choice which elements are
        dropped.
    """
    kept = survivors(rows.shape[-1], p)
    by_choice = kept.reshape(len(kept), *(1 for _ in rows.shape[:-1]), -1)
    return by_choice * rows, kept == 0


def independent(dropped: Tensor, p: float) -> Evidence:
    """Checks that each is dropped by itself: neighbors along an axis have nothing in common.

    Args:
        dropped: What is dropped, of any shape; a mask that is shared along an axis shows where
            there are some hundred pairs.
        p: The share that is dropped.

    Returns:
        Evidence of the covariance of neighbors along the last axis that has some.

    Raises:
        AssertionError: If it is not 0.
    """
    centered = dropped.double() - p
    evidence = None
    for axis in range(dropped.ndim):
        pairs = centered.unfold(axis, 2, 1).prod(dim=-1) if dropped.shape[axis] > 1 else None
        if pairs is not None:
            sigma = p * (1 - p) / math.sqrt(pairs.numel())
            evidence = equivalent(pairs.mean(), 0.0, atol=6 * sigma)
    return evidence or holds(True, "there is one alone")


def one_of(rows: Tensor, possible: Tensor, dropped: Tensor, p: float) -> Evidence:
    """Checks that each row is one of those that are possible, and that p of all is dropped.

    Args:
        rows: Shape `(..., width)`.
        possible: Shape `(choices, ..., width)`.
        dropped: Which things are dropped in each choice, shape `(choices, *things)`.
        p: The share that is dropped.

    Returns:
        Evidence of the largest distance from what is possible.

    Raises:
        AssertionError: If a row is none of them, another share is dropped, or what is dropped is
            shared along an axis of the rows or of the things.
    """
    distances = (possible - rows).abs().amax(dim=-1).flatten(1)
    nearest, choice = distances.min(dim=0)
    evidence = equivalent(nearest, torch.zeros_like(nearest), atol=1e-9)
    found = dropped[choice].double()
    equivalent(found.mean(), p, atol=6 * math.sqrt(p * (1 - p) / found.numel()))
    independent(found.unflatten(0, rows.shape[:-1]), p)
    return evidence


def seen_in_training(layer: nn.Module, *inputs: Any) -> list[Tensor]:
    """What dropout leaves of the result, as fingerprints have it: in tenths, whatever is drawn.

    Args:
        layer: A layer with dropout.
        *inputs: What it is called with, enough for the shares to be known to a hundredth.

    Returns:
        The shares of the elements that are 0, and that are the same as in evaluation.
    """
    trained, evaluated = layer.train()(*inputs), layer.eval()(*inputs)
    return [
        (each == value).double().mean().mul(10).round().detach()
        for each, value in ((trained, 0.0), (trained, evaluated))
    ]
