"""Which known wrong versions a candidate behaves like."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from layer_checks.candidates import matched_by
from layer_checks.definitions import Candidate, Layer, WrongVersion
from layer_checks.evidence import error_line
from layer_checks.matching import Match
from layer_checks.randomness import repeatable
from layer_checks.registry import right_version
from layer_checks.running import Result, run


@dataclass(frozen=True)
class Mistakes:
    """What is known to behave as a candidate does.

    Attributes:
        behaves_like: The wrong version that computes the same, and fails the same checks if there
            is a choice; of mistakes that no value shows, the one that fails the same checks. None
            if there is none.
        fails_like: Other mistakes that no value shows, all of whose failures the candidate has.
    """

    behaves_like: WrongVersion | None = None
    fails_like: tuple[WrongVersion, ...] = ()


@dataclass(frozen=True)
class _Fingerprint:
    """What a layer computes on the probe, and the message of the error that ends it, if one does.

    A message that says nothing is none: the type of an error tells no mistake from another.
    """

    values: Sequence[Tensor] = ()
    message: str = ""


def known_mistakes(
    layer: Layer, candidate: Candidate, failures: frozenset[str], match: Match | None = None
) -> Mistakes:
    """The wrong versions that a candidate behaves like.

    A mistake that shows in values is told by them. One that shows in rounding, dtypes or errors
    only is told by the checks that it fails, all of which the candidate must fail; one whose
    failures another's contain says less than that one. Both kinds can be there at once.

    Args:
        layer: The layer that the candidate is to be.
        candidate: A class or function.
        failures: The names of the checks that it fails.
        match: How the candidate's weights are matched, by name or order where it is None. Those of
            the wrong versions never are: what is known of them is kept for the next candidate.

    Returns:
        The wrong version that it behaves like, and those that fail some of the same checks.
    """
    with matched_by(match):
        found = _fingerprint(layer, candidate)
    visible = not _alike(found, _right_fingerprint(layer))
    alike = [version for version in layer.wrong_versions if _alike(_known(layer, version), found)]
    exact = [version for version in alike if _failures(layer, version) == failures]
    if not visible:
        first = exact[0] if exact else None
        return Mistakes(first, () if exact else _contained(layer, alike, failures))
    if not alike:
        return Mistakes()
    behaves_like = (exact or alike)[0]
    rest = failures - _failures(layer, behaves_like)
    invisible = [each for each in layer.wrong_versions if _is_invisible(layer, each)]
    return Mistakes(behaves_like, _contained(layer, invisible, failures, rest) if rest else ())


def failures_of(results: Iterable[Result]) -> frozenset[str]:
    """The names of the checks that failed."""
    return frozenset(result.name for result in results if not result.held)


def _contained(
    layer: Layer,
    versions: Sequence[WrongVersion],
    failures: frozenset[str],
    to_explain: frozenset[str] | None = None,
) -> tuple[WrongVersion, ...]:
    """Those that fail only what the candidate fails, and something that is to be explained."""
    fitting = {
        version: its_failures
        for version in versions
        if (its_failures := _failures(layer, version)) <= failures
        and (to_explain is None or its_failures & to_explain)
    }
    return tuple(
        version
        for version, its_failures in fitting.items()
        if not any(its_failures < more for more in fitting.values())
    )


@cache
def _failures(layer: Layer, version: WrongVersion) -> frozenset[str]:
    return failures_of(run(each, version.layer) for each in layer.checks if not each.weak)


@cache
def _known(layer: Layer, version: WrongVersion) -> _Fingerprint:
    return _fingerprint(layer, version.layer)


@cache
def _right_fingerprint(layer: Layer) -> _Fingerprint:
    return _fingerprint(layer, right_version(layer.name))


def _is_invisible(layer: Layer, version: WrongVersion) -> bool:
    return _alike(_known(layer, version), _right_fingerprint(layer))


def _fingerprint(layer: Layer, candidate: Candidate) -> _Fingerprint:
    values: list[Tensor] = []
    try:
        with repeatable(0):
            values += layer.probe(candidate)
    except Exception as error:  # a reader's layer can raise anything
        return _Fingerprint(values, error_line(error) if str(error).strip() else "")
    return _Fingerprint(values)


def _alike(left: _Fingerprint, right: _Fingerprint) -> bool:
    """Whether what both have is the same: one may have stopped earlier, or have fewer weights."""
    both = min(len(left.values), len(right.values))
    if both == 0:
        return bool(left.message) and left.message == right.message
    return all(
        one.shape == other.shape
        # Far above the rounding of float32, and far below what a wrong formula changes.
        and torch.allclose(one.double(), other.double(), rtol=1e-4, atol=1e-5, equal_nan=True)
        for one, other in zip(left.values[:both], right.values[:both], strict=True)
    )
