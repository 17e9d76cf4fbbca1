"""What `reset_parameters()` leaves: the start that a layer has when it is built."""

import inspect
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from layer_checks.evidence.evidence import Evidence, holds
from layer_checks.evidence.randomness import seeded

_USED = 7  # what everything is filled with before, as if the layer had been in use
_DRAWS = 16  # how often it is built, and reset
# In standard errors of what a normal distribution gives: of a bias of five numbers, a right layer
# differs by as much once in 10**25 times; were a third of them drawn far larger, in 10**8 times.
_MARGIN = 12.0


def starts_again(build: Callable[[], nn.Module], call: Callable[[nn.Module], object]) -> Evidence:
    """Checks what `reset_parameters()` makes of a layer all of whose values were overwritten.

    What is the same in every fresh layer is so again; what is drawn has the mean and the deviation
    of fresh draws. Of buffers, those count that a call in training changes. What a layer's parts
    hold is theirs to reset, so that it may be left as it is, as long as it is left altogether.

    Args:
        build: Builds the layer, with other draws each time it is called in another random state.
        call: Calls it.

    Returns:
        How many parameters and buffers were compared, or that there is no such method.

    Raises:
        AssertionError: If one starts from something else.
    """
    layer = build()
    reset = _method_of(layer)
    if reset is None:
        return holds(True, "it has no reset_parameters()")
    averages = _changed_by(call, build())
    seeds = iter(range(torch.initial_seed(), torch.initial_seed() + 2 * _DRAWS))
    fresh = [_values(_with_seed(next(seeds), build), averages) for _ in range(_DRAWS)]
    again = []
    for _ in range(_DRAWS):
        _overwrite(layer, averages)
        _with_seed(next(seeds), reset)
        again.append(_values(layer, averages))
    found = {
        name: "" if _is_left_to_a_part(name, again) else _what_is_wrong(fresh, again, name)
        for name in fresh[0]
    }
    wrong = [f"{name} {text}" for name, text in found.items() if text]
    if wrong:
        raise AssertionError(f"not equal: after reset_parameters(), {', '.join(wrong)}")
    count = sum(not _is_left_to_a_part(name, again) for name in found)
    return holds(True, f"{count} parameters and buffers start again")


def _method_of(layer: nn.Module) -> Callable[[], object] | None:
    """The method, None where there is none that can be called without arguments."""
    method = getattr(layer, "reset_parameters", None)
    if not callable(method):
        return None
    try:
        inspect.signature(method).bind()
    except TypeError:
        return None
    return method


def _changed_by(call: Callable[[nn.Module], object], layer: nn.Module) -> frozenset[str]:
    """The buffers that a call changes: averages and counts, and not tables or masks."""
    before = {name: each.detach().clone() for name, each in layer.named_buffers()}
    if before:
        call(layer)
    return frozenset(
        name
        for name, each in layer.named_buffers()
        if name in before and not torch.equal(each, before[name])
    )


def _with_seed(seed: int, run: Callable[[], Any]) -> Any:
    with seeded(seed):
        return run()


def _values_in(layer: nn.Module, averages: Collection[str]) -> Iterator[tuple[str, Tensor]]:
    yield from layer.named_parameters()
    yield from ((name, each) for name, each in layer.named_buffers() if name in averages)


def _values(layer: nn.Module, averages: Collection[str]) -> dict[str, Tensor]:
    return {name: each.detach().double() for name, each in _values_in(layer, averages)}


@torch.no_grad()
def _overwrite(layer: nn.Module, averages: Collection[str]) -> None:
    for _, each in _values_in(layer, averages):
        each.fill_(_USED)


def _is_left_to_a_part(name: str, again: Sequence[dict[str, Tensor]]) -> bool:
    return "." in name and all(bool((each[name] == _USED).all()) for each in again if name in each)


def _what_is_wrong(
    fresh: Sequence[dict[str, Tensor]], again: Sequence[dict[str, Tensor]], name: str
) -> str:
    """In a few words; nothing where all is as it should be."""
    start = torch.stack([each[name] for each in fresh])
    if any(name not in each or each[name].shape != start.shape[1:] for each in again):
        return "is gone, or of another shape"
    found = torch.stack([each[name] for each in again])
    fixed = (start == start[0]).all(dim=0)
    if not torch.equal(found[:, fixed], start[:, fixed]):
        values = start[:, fixed].unique()
        return f"not all {float(values):g}" if len(values) == 1 else "not what it was at first"
    return _unlike(start[:, ~fixed], found[:, ~fixed]) if not fixed.all() else ""


def _unlike(start: Tensor, found: Tensor) -> str:
    """How the draws of a reset differ from those at the start."""
    standard_error = 1 / math.sqrt(start.numel())
    expected, deviation = float(start.std()), float(found.std())
    # The logarithm of a standard deviation has a standard error of 1 / √(2n): two of them, 1 / √n.
    if not abs(math.log(max(deviation, 1e-30) / expected)) <= _MARGIN * standard_error:
        return f"deviates by {deviation:.2g} against {expected:.2g}"
    shift = float(found.mean() - start.mean())
    if not abs(shift) <= _MARGIN * math.sqrt(2) * standard_error * expected:
        return f"has a mean of {float(found.mean()):.2g} against {float(start.mean()):.2g}"
    return ""
