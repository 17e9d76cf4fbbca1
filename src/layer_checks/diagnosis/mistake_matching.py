"""Which known wrong versions a candidate behaves like."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch

from layer_checks.diagnosis import kept_results
from layer_checks.diagnosis.fingerprints import Fingerprint, fingerprint
from layer_checks.diagnosis.pairs import pairs
from layer_checks.diagnosis.running import Result
from layer_checks.kit.arguments import CannotTakeError
from layer_checks.kit.candidates import matched_by
from layer_checks.kit.definitions import Candidate, Check, Layer, WrongVersion
from layer_checks.kit.inputs import number_of_inputs, takes_masks
from layer_checks.kit.matching import Match
from layer_checks.kit.oracles import absent_now, lacking, noticing_own_eps


@dataclass(frozen=True)
class Mistakes:
    """What is known to behave as a candidate does.

    Attributes:
        behaves_like: The wrong version that computes the same, and fails the same checks if there
            is a choice; of mistakes that no value shows, the one that fails the same checks. None
            if there is none.
        fails_like: Other mistakes that no value shows, all of whose failures the candidate has.
        exact: Whether the one that it behaves like fails the very same checks.
        and_like: The second of two mistakes that make what it computes together.
    """

    behaves_like: WrongVersion | None = None
    fails_like: tuple[WrongVersion, ...] = ()
    exact: bool = False
    and_like: WrongVersion | None = None


def known_mistakes(
    layer: Layer,
    candidate: Candidate,
    failures: frozenset[str],
    match: Match | None = None,
    untold: frozenset[str] = frozenset(),
) -> Mistakes:
    """The wrong versions that a candidate behaves like.

    A mistake that shows in values is told by them. One that shows in rounding, dtypes or errors
    only is told by the checks that it fails, all of which the candidate must fail; one whose
    failures another's contain says less than that one. Both kinds can be there at once. Where
    nothing known computes the same, what dropout leaves can still be that of a known mistake. A
    norm that takes no eps is held against wrong versions that take none either.

    Args:
        layer: The layer that the candidate is to be.
        candidate: A class or function.
        failures: The names of the checks that it fails.
        match: How the candidate's weights are matched, by name or order where it is None. Those of
            the wrong versions never are: what is known of them is kept for the next candidate.
        untold: Checks whose failure tells nothing: the candidate could not be asked, or another
            failure has this one as its consequence.

    Returns:
        The wrong version that it behaves like, and those that fail some of the same checks.
    """
    with matched_by(match), noticing_own_eps() as own_eps:
        found = fingerprint(layer, candidate)
    if match is not None:
        failures -= _OF_NAMES
    if not failures:
        return Mistakes()
    with lacking(match.absent if match else frozenset()):
        return _of_settings(layer, found, failures, untold, bool(own_eps))


def _of_settings(
    layer: Layer,
    found: "Fingerprint",
    failures: frozenset[str],
    untold: frozenset[str],
    own_eps: bool,
) -> Mistakes:
    """The same, of wrong versions that are built in one way or, without an eps, in several."""
    if not own_eps:
        return _of_setting(layer, None, found, failures, untold)
    unasked = _failures(layer, layer.right, _OWN_EPS[0])
    if failures <= unasked:  # a right one, of which not everything can be asked
        return Mistakes()
    likeliest = Mistakes()
    for setting in _OWN_EPS:
        known = _of_setting(layer, setting, found, failures, untold | unasked)
        if known.exact:
            return known
        likeliest = known if likeliest == Mistakes() else likeliest
    return likeliest


def _of_setting(
    layer: Layer,
    setting: "_OwnEps | None",
    found: "Fingerprint",
    failures: frozenset[str],
    untold: frozenset[str] = frozenset(),
) -> Mistakes:
    """The same, of wrong versions that are built in one way.

    Args:
        layer: The layer.
        setting: How they are built.
        found: What the candidate computes.
        failures: What it fails.
        untold: What tells nothing.
    """

    def failures_of_version(version: WrongVersion) -> frozenset[str]:
        return _failures(layer, version.layer, setting)

    def print_of(version: WrongVersion) -> Fingerprint:
        return _known(layer, version.layer, setting)

    right = _known(layer, layer.right, setting)
    alike = [version for version in layer.wrong_versions if _alike(print_of(version), found)]
    if _alike(right, found):
        # Without eps: one that all are given would hide which of them have one of their own.
        plain = setting and _OWN_EPS[0]
        telling = _telling(layer, alike, plain, failures, failures - untold or failures)
        exact = [version for version, its_failures in telling.items() if its_failures == failures]
        if exact:
            return Mistakes(exact[0], exact=True)
        return Mistakes(fails_like=_contained(telling, failures, failures - untold))
    if not alike:
        two = _of_two(layer, setting, found)
        if two.behaves_like or found.ended or _numbers(found) == _numbers(right):
            return two
        versions = [
            version
            for version in layer.wrong_versions
            if _numbers(print_of(version)) == _numbers(found)
            and _alike(_without_numbers(right), _without_numbers(print_of(version)))
        ]
        telling = _telling(layer, versions, setting, failures, failures - untold)
        return Mistakes(fails_like=_contained(telling, failures, failures - untold))
    behaves_like = min(alike, key=lambda each: len(failures_of_version(each) ^ failures))
    rest = failures - failures_of_version(behaves_like) - untold
    if not rest:
        return Mistakes(behaves_like, exact=failures_of_version(behaves_like) == failures)
    unseen = [each for each in layer.wrong_versions if _alike(right, print_of(each))]
    invisible = _telling(layer, unseen, setting, failures, rest)
    return Mistakes(behaves_like, _contained(invisible, failures, rest))


def _of_two(layer: Layer, setting: "_OwnEps | None", found: "Fingerprint") -> Mistakes:
    """The two mistakes that make what a candidate computes only together, the graver one first."""
    laws = {each.name for each in layer.checks if each.kind == "law"}

    def broken(version: WrongVersion) -> int:
        return len(laws & _failures(layer, version.layer, setting))

    for first, second, makes_both in pairs(layer):
        if _alike(_known(layer, makes_both, setting), found):
            graver, other = sorted((first, second), key=broken, reverse=True)
            return Mistakes(graver, and_like=other)
    return Mistakes()


def failures_of(results: Iterable[Result]) -> frozenset[str]:
    """The names of the checks that failed."""
    return frozenset(result.name for result in results if not result.held)


def _contained(
    versions: Mapping[WrongVersion, frozenset[str]],
    failures: frozenset[str],
    to_explain: frozenset[str],
) -> tuple[WrongVersion, ...]:
    """Those that fail only what the candidate fails, and together the most of it.

    One explains something that those before it, which fail as much or more, do not; or it fails the
    same as the last of them.
    """
    fitting = {
        version: its_failures
        for version, its_failures in versions.items()
        if its_failures <= failures and its_failures & to_explain
    }
    told: list[WrongVersion] = []
    unexplained = to_explain
    for version in sorted(fitting, key=lambda each: -len(fitting[each])):
        if fitting[version] & unexplained or fitting[version] == fitting[told[-1]]:
            told.append(version)
            unexplained -= fitting[version]
    return tuple(told)


def _telling(
    layer: Layer,
    versions: Iterable[WrongVersion],
    setting: "_OwnEps | None",
    failures: frozenset[str],
    to_explain: frozenset[str],
) -> dict[WrongVersion, frozenset[str]]:
    """The failures of those that explain something, and fail nothing that the candidate does not.

    A version is asked no more than tells that it is none of them.

    Args:
        layer: The layer.
        versions: Those that are asked.
        setting: How they are built.
        failures: What the candidate fails, and they may fail.
        to_explain: Of these, what they fail at least one of.
    """
    asked = [each for each in layer.checks if not each.weak]
    told = [each for each in asked if each.name in to_explain]
    first = [each for each in asked if each.name in failures]
    rest = [each for each in asked if each.name not in failures]
    found = {}
    for version in versions:
        if not any(_fails(layer, version.layer, setting, each) for each in told):
            continue
        its = frozenset(each.name for each in first if _fails(layer, version.layer, setting, each))
        if not any(_fails(layer, version.layer, setting, each) for each in rest):
            found[version] = its
    return found


def _failures(layer: Layer, candidate: Candidate, setting: "_OwnEps | None") -> frozenset[str]:
    asked = [each for each in layer.checks if not each.weak]
    return frozenset(each.name for each in asked if _fails(layer, candidate, setting, each))


def _fails(layer: Layer, candidate: Candidate, setting: "_OwnEps | None", one: Check) -> bool:
    return _fails_with(_asked_as(), candidate, setting, one)


@cache
def _fails_with(
    asked_as: "_AskedAs", candidate: Candidate, setting: "_OwnEps | None", one: Check
) -> bool:
    return not kept_results.run(one, setting.of(candidate) if setting else candidate).held


def _known(layer: Layer, candidate: Candidate, setting: "_OwnEps | None") -> Fingerprint:
    return _known_with(_asked_as(), layer, candidate, setting)


@cache
def _known_with(
    asked_as: "_AskedAs", layer: Layer, candidate: Candidate, setting: "_OwnEps | None"
) -> Fingerprint:
    return kept_results.fingerprint(layer, setting.of(candidate) if setting else candidate)


# In which form all are asked: how many inputs, with masks or without, without which weights.
_AskedAs = tuple[int, bool, frozenset[str]]


def _asked_as() -> _AskedAs:
    return number_of_inputs(), takes_masks(), absent_now()


@dataclass(frozen=True)
class _OwnEps:
    """A norm that takes no eps, and has this one; its default where it is None."""

    eps: float | None = None

    def of(self, candidate: Candidate) -> Candidate:
        """The norm as it would be without the argument."""
        own = {} if self.eps is None else {"eps": self.eps}

        def build(*args: Any, **kwargs: Any) -> Any:
            if "eps" in kwargs:
                raise CannotTakeError("it takes no eps", "eps")
            return candidate(*args, **kwargs, **own)

        return build


# What other names of weights break by themselves.
_OF_NAMES = frozenset({"parameters"})
# Smaller ones do not show in values of the size of 1.
_OWN_EPS = (_OwnEps(), *map(_OwnEps, (1e-5, 1e-6, 1e-4, 1e-3, 1e-2)))


def _numbers(known: Fingerprint) -> list[float]:
    """What a fingerprint has beside arrays: how much is dropped, and how many weights there are.

    They are the same whatever else is computed from the inputs.
    """
    return [float(value) for value in known.values if value.ndim == 0]


def _without_numbers(known: Fingerprint) -> Fingerprint:
    return replace(known, values=[value for value in known.values if value.ndim])


def resembles(layer: Layer, candidate: Candidate, match: Match) -> bool:
    """Whether a candidate whose weights are matched so computes what a known wrong version does."""
    with matched_by(match):
        found = fingerprint(layer, candidate)
    versions = layer.wrong_versions
    return any(_alike(_known(layer, version.layer, None), found) for version in versions)


def _alike(known: Fingerprint, found: Fingerprint) -> bool:
    """Whether what both have is the same: the candidate may have stopped earlier, or lack weights.

    Where the known one stops, the candidate must; and a single number tells nothing.
    """
    both = [
        (one, other)
        for one, other in zip(known.values, found.values, strict=False)
        if one.numel() and other.numel()
    ]
    if known.ended and (len(found.values) > len(known.values) or not found.ended):
        return False
    if sum(one.numel() for one, _ in both) < 2:
        return bool(known.message) and known.message == found.message
    return all(
        one.shape == other.shape
        # Far above the rounding of float32, and far below what a wrong formula changes.
        and torch.allclose(one.double(), other.double(), rtol=1e-4, atol=1e-5, equal_nan=True)
        for one, other in both
    )
