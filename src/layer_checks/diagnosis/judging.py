"""What is settled by other names alone, and what cannot be settled without the right ones."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from torch import Tensor, nn

from layer_checks.diagnosis.running import Result
from layer_checks.kit.definitions import Candidate, Layer
from layer_checks.kit.matching import Match

# Said of each check that other weights may be the reason for.
UNKNOWN = "it is not known which of its weights is which"
# Checks of the names that parameters have.
_OF_NAMES = ("parameters", "state")
# Errors that refuse, under another name than the one that is asked for.
_REFUSED = re.compile(
    r"^\w+( or \w+)* expected, got (AssertionError|TypeError|ValueError|NotImplementedError)\b"
)
# What Python says of an argument that is not taken.
_UNTAKEN = re.compile(
    r"TypeError: .*\(\) (got an unexpected keyword argument|takes .*positional arguments?\b)"
)
_EXPERTS = "MixtureOfExperts"
# What no check of values can settle, whichever weights are which.
_SETTLED = ("names", "start")


def names_apart(results: Iterable[Result], match: Match | None) -> tuple[Result, ...]:
    """Results in which what is only another name is a kind of its own.

    Other names of weights are that where each has its counterpart; an error that refuses, where
    it is another one than the book's.

    Args:
        results: As they came out.
        match: How the weights are matched, None if there is nothing to match.
    """
    whole = match is not None and match.complete and not match.absent

    def is_name(result: Result) -> bool:
        if result.kind != "contract" or result.word != "failed":
            return False
        fits = match is not None and (match.fits or " against " not in result.text)
        named = whole and fits and result.name in _OF_NAMES
        return named or bool(_REFUSED.match(result.text))

    return tuple(replace(each, kind="names") if is_name(each) else each for each in results)


def cannot_be_asked(result: Result) -> bool:
    """Whether a check failed since it hands over an argument that the candidate does not take."""
    return result.word == "failed" and bool(_UNTAKEN.match(result.text))


def as_unjudged(results: Iterable[Result]) -> tuple[Result, ...]:
    """Results of a layer of which it is not known which of its weights is which.

    What fails of the law and of the contract was not asked: other weights may be the reason.
    """

    def opened(result: Result) -> Result:
        of_names = result.name in (*_OF_NAMES, "arguments") and result.kind != "law"
        of_values = result.kind not in _SETTLED and not of_names
        if result.word != "failed" or not of_values:
            return result
        return replace(result, text=UNKNOWN, where="", asked=False)

    return tuple(map(opened, results))


def names_line(
    layer: Layer,
    candidate: Candidate,
    match: Match | None,
    parameters: Mapping[str, Tensor],
    weights: Mapping[str, Tensor],
) -> str:
    """A call with `names=` to paste: what is guessed is filled in, and the rest is left open.

    Args:
        layer: The layer that the candidate is to be.
        candidate: The reader's.
        match: The likeliest match, if there is one.
        parameters: The reader's.
        weights: The book's.
    """
    guessed: dict[str, str] = {}
    for name, source in match.sources.items() if match else ():
        guessed |= {part.partition("/")[0]: name for part in source.parts}
    names = {name: guessed.get(name, "...") for name in weights}
    if match is None:
        alike = {
            name: next((own for own, each in parameters.items() if each.shape == weight.shape), "")
            for name, weight in weights.items()
        }
        names = {name: alike[name] or "..." for name in weights}
    called = getattr(candidate, "__name__", "") or type(candidate).__name__
    called = called if called.isidentifier() else "candidate"
    pairs = json.dumps(names, ensure_ascii=False)
    return f'check("{layer.name}", {called}, names={pairs})'


def experts_in(layer: Layer, theirs: nn.Module) -> str:
    """What to do about experts, which the book's layer of this name has not; empty without any.

    Args:
        layer: The layer that the candidate is to be.
        theirs: The candidate's.
    """
    if layer.name == _EXPERTS:
        return ""
    for name, part in theirs.named_modules():
        children = list(part.children())
        lists = [each for each in children if isinstance(each, nn.ModuleList) and len(each) > 1]
        beside = [each for child in children if child not in lists for each in child.modules()]
        routers = {each.out_features for each in beside if isinstance(each, nn.Linear)}
        if name and lists and len(lists[0]) in routers:
            kind = type(part).__name__
            return (
                f"{name} has a router and {len(lists[0])} experts, which no {layer.name} of the "
                f'book has; check it by itself: check("{_EXPERTS}", {kind})'
            )
    return ""
