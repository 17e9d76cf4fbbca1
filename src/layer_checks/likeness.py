"""Which known wrong version a candidate behaves like."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import TypeAlias

import torch
from torch import Tensor

from layer_checks.definitions import Candidate, Layer, WrongVersion
from layer_checks.randomness import repeatable
from layer_checks.registry import right_version
from layer_checks.running import Result, run

# What a layer computes on the probe, or the name of the error that it raises there.
Fingerprint: TypeAlias = Sequence[Tensor] | str


def known_mistake(
    layer: Layer, candidate: Candidate, failures: frozenset[str]
) -> WrongVersion | None:
    """The wrong version that computes the same, and fails the same checks if there is a choice.

    Mistakes that show in rounding, dtypes or errors only are told by their failed checks alone.
    """
    found = _fingerprint(layer, candidate)
    alike = [
        (version, its_failures)
        for version, fingerprint, its_failures in _known(layer)
        if _same(fingerprint, found)
    ]
    for version, its_failures in alike:
        if its_failures == failures:
            return version
    return alike[0][0] if alike and not _same(found, _right_fingerprint(layer)) else None


@cache
def _known(layer: Layer) -> tuple[tuple[WrongVersion, Fingerprint, frozenset[str]], ...]:
    return tuple(
        (
            version,
            _fingerprint(layer, version.layer),
            failures_of(run(each, version.layer) for each in layer.checks if not each.weak),
        )
        for version in layer.wrong_versions
    )


@cache
def _right_fingerprint(layer: Layer) -> Fingerprint:
    return _fingerprint(layer, right_version(layer.name))


def failures_of(results: Iterable[Result]) -> frozenset[str]:
    """The names of the checks that failed."""
    return frozenset(result.name for result in results if not result.held)


def _fingerprint(layer: Layer, candidate: Candidate) -> Fingerprint:
    try:
        with repeatable(0):
            return layer.probe(candidate)
    except Exception as error:  # a reader's layer can raise anything
        return type(error).__name__


def _same(left: Fingerprint, right: Fingerprint) -> bool:
    if isinstance(left, str) or isinstance(right, str):
        return isinstance(left, str) and isinstance(right, str) and left == right
    return len(left) == len(right) and all(
        one.shape == other.shape
        and torch.allclose(one.double(), other.double(), rtol=1e-6, atol=1e-9, equal_nan=True)
        for one, other in zip(left, right, strict=True)
    )
