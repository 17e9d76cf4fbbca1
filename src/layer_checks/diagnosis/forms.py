"""Candidates in a form of their own: which of those that are known for a layer they have."""

from typing import Any

from layer_checks.diagnosis.adaptation import Adapted
from layer_checks.diagnosis.calls import Called, has_adapter
from layer_checks.diagnosis.running import run
from layer_checks.evidence.comparison import compared_in_single
from layer_checks.kit.definitions import Candidate, Check, Form, Layer
from layer_checks.kit.inputs import told_apart


class InForm(Called):
    """A candidate that takes the book's call, and is called in a form that others use."""

    is_given = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Builds the layer, or calls the function."""
        if self.layer.is_class:
            return super().__call__(*args, **kwargs)
        return self.book_call(self.candidate, *args, **kwargs)


def in_its_form(
    layer: Layer, candidate: Candidate, seed: int, most: int
) -> tuple[InForm, Form] | tuple[None, None]:
    """The candidate in the form in which most of the law holds.

    Args:
        layer: What it is to be.
        candidate: The reader's class or function.
        seed: Of weights and inputs.
        most: How much of the law holds in the book's own form: it must be more.
    """
    known = [] if has_adapter(candidate) else list(layer.forms(candidate))
    if not known:
        return None, None
    laws = [each for each in layer.checks if each.kind == "law" and not each.weak]
    best: tuple[InForm, Form] | tuple[None, None] = None, None
    most = max(most, _held(laws, candidate, seed), _held(laws, Adapted(layer, candidate), seed))
    for form in known:
        builds = candidate if form.build is None else form.build(candidate)
        tried = InForm(layer, builds, form.call)
        with told_apart(form.inputs):
            held = _held(laws, Adapted(layer, tried), seed)
        if held > most:
            best, most = (tried, form), held
        if held == len(laws):
            break
    return best


def _held(laws: list[Check], candidate: Candidate, seed: int) -> int:
    with compared_in_single():
        return sum(run(each, candidate, seed).held for each in laws)
