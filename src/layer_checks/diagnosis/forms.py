"""Candidates in a form of their own: which of those that are known for a layer they have."""

from contextlib import suppress
from typing import Any

from layer_checks.diagnosis.adaptation import Adapted
from layer_checks.diagnosis.calls import Called, has_adapter
from layer_checks.diagnosis.recording import Record
from layer_checks.diagnosis.running import run
from layer_checks.evidence.comparison import compared_in_single
from layer_checks.kit.definitions import Candidate, Check, Form, Layer


class InForm(Called):
    """A candidate that takes the book's call, and is called in a form that others use."""

    is_given = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Builds the layer, or calls the function."""
        if self.layer.is_class:
            return super().__call__(*args, **kwargs)
        return self.book_call(self.candidate, *args, **kwargs)


def forms_of(layer: Layer, candidate: Candidate) -> list[tuple[InForm, Form]]:
    """The candidate in each form that it may have, the likeliest first.

    Args:
        layer: What it is to be.
        candidate: The reader's class or function.
    """
    if has_adapter(candidate):
        return []
    found = []
    for form in layer.forms(candidate):
        builds = candidate if form.build is None else form.build(candidate)
        found.append((InForm(layer, builds, form.call), form))
    return found


def holds_weights(layer: Layer) -> bool:
    """Whether a layer has parameters, which must be matched before anything can be said."""
    made = Record(layer.right)
    with suppress(Exception):  # an example may ask for what is drawn elsewhere
        layer.example(made)
    return layer.is_class and made.last is not None and any(True for _ in made.last.parameters())


def likeliest(
    layer: Layer, candidate: Candidate, ways: list[tuple[InForm, Form]], seed: int, most: int
) -> tuple[InForm, Form] | None:
    """The form in which most of the law holds, of a layer without weights.

    Args:
        layer: What it is to be.
        candidate: The reader's class or function.
        ways: Its forms.
        seed: Of inputs.
        most: How much of the law holds in the book's own form: it must be more.
    """
    laws = [each for each in layer.checks if each.kind == "law" and not each.weak]
    best = None
    most = max(most, _held(laws, candidate, seed), _held(laws, Adapted(layer, candidate), seed))
    for made, form in ways:
        held = _held(laws, Adapted(layer, made), seed)
        if held > most:
            best, most = (made, form), held
        if held == len(laws):
            break
    return best


def _held(laws: list[Check], candidate: Candidate, seed: int) -> int:
    with compared_in_single():
        return sum(run(each, candidate, seed).held for each in laws)
