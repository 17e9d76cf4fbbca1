"""What is run to diagnose a layer: as it is, and, if that does not do, in an adapted form."""

import copy
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from torch import Tensor, nn

from layer_checks.diagnosis.adaptation import (
    CAUSAL,
    MASKS,
    Adapted,
    WatchForSingles,
    meanings_of_masks,
    takes_tables,
    wants_a_mask,
)
from layer_checks.diagnosis.calls import adapter_lines, has_adapter, is_the_layer, without_first
from layer_checks.diagnosis.examples import of_report, of_values
from layer_checks.diagnosis.forms import forms_of, holds_weights, likeliest
from layer_checks.diagnosis.instances import can_be_copied, copied, original_of, own_layer, rebuilt
from layer_checks.diagnosis.judging import (
    as_unjudged,
    cannot_be_asked,
    experts_in,
    names_apart,
    names_line,
)
from layer_checks.diagnosis.loaded import Loaded
from layer_checks.diagnosis.mistake_matching import Mistakes, resembles
from layer_checks.diagnosis.naming import Naming
from layer_checks.diagnosis.part_naming import mistake_in
from layer_checks.diagnosis.parts import Difference, first_difference
from layer_checks.diagnosis.preparation import is_lazy
from layer_checks.diagnosis.recording import Record
from layer_checks.diagnosis.running import Result, failure, run
from layer_checks.diagnosis.sandbox import OutOfTime
from layer_checks.diagnosis.shared_defaults import SharedDefaults
from layer_checks.evidence.comparison import compared_in_single
from layer_checks.evidence.evidence import error_line
from layer_checks.evidence.randomness import repeatable
from layer_checks.kit.angles import TABLES
from layer_checks.kit.arguments import CannotTakeError, signature_of
from layer_checks.kit.candidates import matched_by, weights_of, witnessed_by
from layer_checks.kit.definitions import Candidate, Check, Form, Layer
from layer_checks.kit.inputs import inputs_of_a_form
from layer_checks.kit.match_search import matches, named_by_hand
from layer_checks.kit.matching import Match, cut, heads_of
from layer_checks.kit.weight_maps import gatherings

# The check of what a call does to its inputs, which a candidate with copies cannot change.
_OF_INPUTS = "input unchanged"


# What Python says where a call has not the arguments that must be given.
_LACKS = re.compile(r"TypeError: .*missing \d+ required (positional|keyword-only) argument")


@dataclass
class Findings:
    """What was found out so far: complete unless the time ended.

    Attributes:
        results: One for each check that ran.
        notes: What was adapted, in words.
        matching: How weights were matched, where not each by its own name.
        in_single: Whether it computes in float32, and was compared there.
        not_run: How many checks could not be run.
        mistakes: What is known to behave as the candidate does.
        running: The check that runs.
        part: Which part of a composed layer differs first, in a sentence.
        judged: Whether the weights are known to be the same.
        names_line: What to paste where they are not.
        adapter_lines: What to paste where it can be built, and not be called.
    """

    results: tuple[Result, ...] = ()
    notes: tuple[str, ...] = ()
    matching: str = ""
    in_single: bool = False
    not_run: int = 0
    mistakes: Mistakes = field(default_factory=Mistakes)
    running: Check | None = None
    part: str = ""
    judged: bool = True
    names_line: str = ""
    adapter_lines: str = ""


@dataclass(frozen=True)
class _Form:
    """A way to run a candidate."""

    candidate: Any
    match: Match | None = None
    in_single: bool = False


def diagnose(
    layer: Layer,
    candidate: Candidate,
    names: Mapping[str, str] | None,
    seed: int,
    found: Findings,
) -> None:
    """Runs the checks, and writes down what comes out while it goes on.

    Args:
        layer: What the candidate is to be.
        candidate: The reader's class, function or module.
        names: For the book's names of weights, the reader's.
        seed: Seed of the random weights and inputs.
        found: Where it is written down.

    Raises:
        OutOfTime: When the time is over.
        ValueError: If `names` names what is not there.
    """
    if isinstance(candidate, nn.Module) and layer.is_class:
        _diagnose_instance(layer, candidate, names, seed, found)
        candidate = rebuilt(layer, original_of(candidate)[0])
    else:
        _Diagnosis(layer, candidate, names, seed, found).run()
    if _has_values(layer, found.results):
        return
    best = _best_form(layer, candidate, names, seed, found)
    if best is None:
        return
    of_form, form = best
    if form.contract:
        law = f"It is called as {layer.signature}, and returns a tensor."
        said = Result("arguments", law, False, form.words, "contract")
        of_form.results = (*of_form.results, said)
    of_form.notes = (form.words, *of_form.notes)
    vars(found).update(vars(of_form))


def _best_form(
    layer: Layer,
    candidate: Candidate,
    names: Mapping[str, str] | None,
    seed: int,
    found: Findings,
) -> tuple[Findings, Form] | None:
    """What is found in the form in which most of the law holds, where that is more than before."""
    ways = forms_of(layer, candidate)
    if ways and not holds_weights(layer):
        way = likeliest(layer, candidate, ways, seed, _count(found.results))
        ways = [] if way is None else [way]
    best, most = None, _count(found.results)
    for made, form in ways:
        of_form = Findings()
        with inputs_of_a_form(form.inputs, form.masked):
            _Diagnosis(layer, made, names, seed, of_form).run()
        if _count(of_form.results) > most:
            best, most = (of_form, form), _count(of_form.results)
        if _has_values(layer, of_form.results):
            break
    return best


def _diagnose_instance(
    layer: Layer,
    instance: nn.Module,
    names: Mapping[str, str] | None,
    seed: int,
    found: Findings,
) -> None:
    instance, notes = original_of(instance)
    if is_lazy(instance):
        text = "its lazy parameters have no shape yet: call it once on an input, then check it"
        law = f"It is called as {layer.signature}."
        found.results, found.not_run = (Result(layer.signature, law, False, text),), _number(layer)
        return
    own = own_layer(layer, instance) if can_be_copied(instance) else None
    of_its_own = Findings()
    if own is not None:

        def copy_of(*args: Any, **kwargs: Any) -> nn.Module:
            return copied(instance)

        if has_adapter(instance):
            copy_of.book_call = instance.book_call  # type: ignore[attr-defined]  # as the class has it
        _Diagnosis(own, copy_of, names, seed, of_its_own).run()
        found.results = of_its_own.results
    of_class = Findings()
    _Diagnosis(layer, rebuilt(layer, instance), names, seed, of_class).run()
    if of_class.not_run:
        text = "its class cannot be built anew: pass a function that builds it"
        found.notes = (*notes, *of_its_own.notes, text)
        found.not_run = of_class.not_run
    else:
        found.results = (
            *(result for result in of_its_own.results if not result.of_form),
            *of_class.results,
        )
        found.notes = tuple(dict.fromkeys((*notes, *of_its_own.notes, *of_class.notes)))
    found.matching = of_its_own.matching or of_class.matching
    found.in_single = of_its_own.in_single or of_class.in_single
    found.judged = of_its_own.judged and of_class.judged
    found.part = of_its_own.part or of_class.part
    found.names_line = of_its_own.names_line or of_class.names_line
    found.adapter_lines = of_its_own.adapter_lines or of_class.adapter_lines
    found.mistakes = of_class.mistakes


class _Diagnosis:
    """One candidate's."""

    def __init__(
        self,
        layer: Layer,
        candidate: Candidate,
        names: Mapping[str, str] | None,
        seed: int,
        found: Findings,
    ) -> None:
        self.layer, self.candidate, self.names = layer, candidate, dict(names or {})
        self.seed, self.found = seed, found
        self.checks = tuple(each for each in layer.checks if not each.weak)
        self.trials = _trials(layer)
        self.trial = self.trials[0]
        self.judged, self.suggested = True, ""
        self.likeliest: Match | None = None
        self.experts = ""  # what is said of those that the book's layer has not
        self.exchanged: tuple[str, ...] = ()  # what holds only in each other's place
        self.form = _Form(candidate)
        self.defaults = SharedDefaults(candidate)

    def run(self) -> None:
        """Runs the candidate as it is, and adapted where that brings more of the law to hold."""
        found = self.found
        try:
            self._diagnose()
        except (OutOfTime, KeyboardInterrupt):
            raise
        except BaseException as error:  # in what a reader's layer is adapted by
            if self.names:  # which may be wrong, and then the reader is told
                raise
            text = f"it could not be adapted, {error_line(error)}: pass a function that builds it"
            law = f"It is called as {self.layer.signature}."
            found.results = found.results or (Result(self.layer.signature, law, False, text),)
            found.not_run = 0 if len(found.results) > 1 else len(self.checks)
            found.notes = (*found.notes, text)
        if self.exchanged:
            both = " and ".join(self.exchanged)
            found.part = f"{both} stand in each other's place, if their names are right"
        if not self.judged and (self.exchanged or not _law_holds(found.results)):
            found.judged, found.names_line = False, self.suggested
            found.results = as_unjudged(found.results)
            found.mistakes = Mistakes()
            found.part = found.part or self.experts or self._by_the_likeliest()
        found.results = (*self._of_defaults(), *found.results)
        if found.judged:
            self._exemplify()

    def _of_defaults(self) -> tuple[Result, ...]:
        """What is said of defaults that a call changes, whatever its weights are."""
        self.defaults.restore()
        if not self.defaults.changed:
            return ()
        law = "A call leaves the defaults of arguments as they were."
        text = ", ".join(self.defaults.changed)
        return (
            Result("defaults", law, False, f"all calls share what each of them changes: {text}"),
        )

    def _diagnose(self) -> None:
        plain = _Form(self.candidate)
        problem = self._problem(plain)
        loaded = None if problem or self.names else self._loaded(plain)
        if problem is None and not self.names:
            self.found.results = self._results(plain)
            self.found.matching = loaded.text if loaded else ""
            asked, results = self._asked_by_name(plain, self.found.results)
            self.found.results = names_apart(results, loaded.match if loaded else None)
            known = self._mistakes(asked, self.found.results)
            right = _law_holds(self.found.results) and (loaded is None or loaded.complete)
            if known.exact or right:  # what is known for a mistake is not adapted away
                self.found.mistakes, self.form = known, asked
                if isinstance(asked.candidate, Adapted):
                    self.found.results = (*self.found.results, *self._arguments(asked.candidate))
                    self.found.notes = (*asked.candidate.notes, *asked.candidate.remarks)
                return
        as_is = self.found.results
        adapted = Adapted(self.layer, self.candidate)
        self._choose_trial(_Form(adapted))
        form = self._fitted(adapted)
        if form is None:
            if problem is not None:
                self._cannot(adapted, problem)
                return
            form = plain
        if form is plain or not self._is_better(form, as_is, loaded):
            form = self._in_single(plain, as_is)
            adapted.forget()
        else:
            form = self._in_single(form, None)
            self.found.matching = str(form.match) if form.match else self.found.matching
            self.found.results = (
                *self._of_inputs(adapted, form),
                *self._arguments(adapted),
            )
            self._add_own_sizes(form)
        if self._cannot_be_called():
            law = next(each for each in self.found.results if each.kind == "law" and each.asked)
            self._cannot(adapted, replace(law, name=self.layer.signature, example=""))
            return
        self.found.notes = (*adapted.notes, *adapted.remarks)
        self.form = form
        self._name_the_mistake(plain, form, as_is)
        self.found.results = names_apart(self.found.results, form.match)

    def _exemplify(self) -> None:
        """Gives each failure lines to paste, and says which part differs first."""
        results = list(
            of_report(self.layer, self.candidate, self.found.results, self.seed, self.names)
        )
        own = {each.name: each for each in self.checks}
        laws = (each for each in results if each.word == "failed" and each.kind == "law")
        first = next((each for each in laws if each.name in own), None)
        if first is not None and self.layer.is_class:
            try:
                lines = self._shown(own[first.name])
            except (OutOfTime, KeyboardInterrupt):
                raise
            except BaseException:  # a reader's layer can raise anything, and the other lines stand
                lines = ""
            results[results.index(first)] = replace(first, example=lines or first.example)
        self.found.results = tuple(results)

    def _shown(self, one: Check) -> str:
        """Lines that show the values of a check that fails; notes on the way which part differs."""
        record = self._seen(one, self.form)
        if record is None:
            return ""
        inner, outer, first = record
        self.found.part = first.text + self._said_of(first)
        adapted = self.form.candidate
        if isinstance(adapted, Adapted) and (adapted.how["called"] or adapted.mask):
            return ""
        inner.ours = outer.built
        return of_values(self.layer, inner, self.form.match, self.seed)

    def _by_the_likeliest(self) -> str:
        """Which part differs first if the weights are what the likeliest match says; else empty."""
        match = self.likeliest
        if match is None or not self.layer.is_class:
            return ""
        try:
            record = self._seen(self.trial, replace(self.form, match=match))
            if record is None or record[2].ours is None or not record[2].after:
                return ""
            return f"with the names= below, {record[2].text}{self._said_of(record[2])}"
        except (OutOfTime, KeyboardInterrupt):
            raise
        except BaseException:  # a reader's layer can raise anything
            return ""

    def _said_of(self, first: Difference) -> str:
        """Which known mistake of the part that differs first gives its values, if one does."""
        tensors = isinstance(first.x, Tensor) and isinstance(first.output, Tensor)
        if first.ours is None or first.whole is None or not tensors:
            return ""
        mistake = mistake_in(first.ours, first.whole, first.x, first.output)
        return f"; {mistake.rstrip('.')}" if mistake else ""

    def _seen(self, one: Check, form: _Form) -> tuple[Record, Record, Difference] | None:
        """What a check built and called, by its names and by the book's, and what differs first."""
        if has_adapter(self.candidate):  # without which such lines are wrong
            return None
        inner = Record(self.candidate)
        outer = inner
        if isinstance(form.candidate, Adapted):
            adapted = copy.copy(form.candidate)
            adapted.candidate = inner
            outer = Record(adapted)
        self._result(one, replace(form, candidate=outer))
        if inner.layer is None or outer.built is None or outer.given is None:
            return None
        first = first_difference(self.layer, inner.layer, form.match, outer.built, outer.given)
        return inner, outer, first

    def _cannot_be_called(self) -> bool:
        """Whether each law ends with one error, which says that the call lacks an argument."""
        said = {each.text for each in self.found.results if each.kind == "law" and each.asked}
        return len(said) == 1 and bool(_LACKS.match(said.pop()))

    def _cannot(self, adapted: Adapted, problem: Result) -> None:
        again = self._problem(_Form(adapted)) or problem
        self.found.results = (again,)
        if again.text.startswith("TypeError"):
            self.found.adapter_lines = self._adapter(adapted)
        self.found.notes = (*adapted.notes, *adapted.remarks)
        self.found.not_run = len(self.checks)

    def _adapter(self, adapted: Adapted) -> str:
        """An adapter to paste and to fill in, where the candidate can be built."""
        record, again = Record(self.candidate), copy.copy(adapted)
        again.candidate = record
        self._problem(_Form(again))
        called = self.candidate if record.last is None else type(record.last).forward
        theirs = signature_of(called) if record.last is None else without_first(called)
        built = record.last is not None or is_the_layer(self.layer, self.candidate)
        if has_adapter(self.candidate) or (self.layer.is_class and not built):
            return ""
        return adapter_lines(self.layer, self.candidate, theirs)

    def _problem(self, form: _Form) -> Result | None:
        """Why the example does not run, None if it does."""
        signature, law = self.layer.signature, f"It is called as {self.layer.signature}."
        self.defaults.restore()
        try:
            with repeatable(self.seed), matched_by(form.match):
                given = self.layer.example(form.candidate)
        except CannotTakeError:  # the checks that ask for it say so
            return None
        except AssertionError as error:
            return Result(signature, law, False, failure(error))
        except (OutOfTime, KeyboardInterrupt):
            raise
        except BaseException as error:  # a reader's layer can raise anything
            return Result(signature, law, False, error_line(error))
        if not self.layer.is_class and isinstance(given, nn.Module):
            text = f"TypeError: a tensor expected, got a {type(given).__name__}, which is a module"
            return Result(signature, law, False, text)
        return None

    def _results(self, form: _Form) -> tuple[Result, ...]:
        return tuple(self._result(each, form) for each in self.checks)

    def _asked_by_name(
        self, plain: _Form, results: tuple[Result, ...]
    ) -> tuple[_Form, tuple[Result, ...]]:
        """Asks again by other names where an argument was handed over that is not taken.

        What it takes under no name is not asked.

        Args:
            plain: The candidate as it is.
            results: How the checks came out for it.

        Returns:
            The form in which more of the law holds, and its results.
        """
        if not any(map(cannot_be_asked, results)):
            return plain, results
        named = _Form(Adapted(self.layer, self.candidate))
        again = self._results(named)
        return (named, again) if _count(again) >= _count(results) else (plain, results)

    def _result(self, one: Check, form: _Form, seed: int | None = None) -> Result:
        self.found.running = one
        self.defaults.restore()
        with matched_by(form.match):
            seed = self.seed if seed is None else seed
            if not form.in_single:
                return run(one, form.candidate, seed)
            with compared_in_single():
                return run(one, form.candidate, seed)

    def _loaded(self, form: _Form) -> Loaded | None:
        """How the trial's weights are matched, None where it has none."""
        seen: list[tuple[nn.Module, Mapping[str, Tensor]]] = []
        with witnessed_by(lambda layer, weights: seen.append((layer, weights))):
            self._result(self.trial, form)
        return Loaded(*seen[0]) if seen and not is_lazy(seen[0][0]) else None

    def _choose_trial(self, form: _Form) -> None:
        """Takes a law for which the candidate has the arguments, where there is one."""
        for each in self.trials:
            if self._result(each, form).asked:
                self.trial = each
                return

    def _fitted(self, adapted: Adapted) -> _Form | None:
        """The form in which the trial holds on other weights and inputs than those of the report.

        None if it cannot be built or called in any form.
        """
        ours = signature_of(self.layer.right.forward) if self.layer.is_class else None
        makes_one = ours is not None and "mask" not in ours.parameters
        masks = CAUSAL if makes_one and wants_a_mask(self.candidate) else (None,)
        ways = list(product(TABLES if takes_tables(self.candidate) else (None,), masks))
        if len(ways) == 1:
            return self._fitted_to_masks(adapted)
        first: tuple[str | None, str | None] | None = None
        for way in ways:
            adapted.forget()
            (adapted.tables, adapted.causal), self.judged = way, True
            form = self._fitted_to_masks(adapted)
            if form is None:
                continue
            result = self._result(self.trial, replace(form, in_single=True), self.seed + 1)
            if result.held:
                return form
            if not result.raised:
                first = first or way
        if first is None:
            return None
        adapted.forget()
        (adapted.tables, adapted.causal), self.judged = first, True
        return self._fitted_to_masks(adapted)

    def _fitted_to_masks(self, adapted: Adapted) -> _Form | None:
        """The same, where angles are handed over in one way."""
        if self._problem(_Form(adapted)) is not None and not self._can_be_called(adapted):
            return None
        form = _Form(adapted)
        loaded = self._loaded(form)
        if adapted.edits:
            adapted.clones = True
            adapted.note("it changes its input: it is given copies")
        if loaded is not None and (self.names or not loaded.by_name):
            form = self._matched(form, loaded)
            for name in form.match.contrary if form.match else ():
                text = f"its {name} is read in another order than that of its name"
                adapted.remarks[text] = None
            for name, part in form.match.twice.items() if form.match else ():
                adapted.others[f"its {name} is no {part}: it is given the same values"] = None
        return self._masked(adapted, form)

    def _can_be_called(self, adapted: Adapted) -> bool:
        """Whether copies of the inputs, or another meaning of a mask, let the example run."""
        adapted.clones = adapted.edits
        masks = meanings_of_masks(self.candidate) if "mask" in self.layer.signature else ()
        for meaning in (None, *masks):
            adapted.mask = meaning
            if self._problem(_Form(adapted)) is None:
                return True
        adapted.mask = None
        return False

    def _matched(self, form: _Form, loaded: Loaded) -> _Form:
        """The form with the match that gives the right values, or else a known mistake's.

        Where none does, it is settled whether the weights are known to be the same.
        """
        parameters, weights = weights_of(loaded.layer), loaded.weights
        self._require_names(parameters, weights)
        tried: list[Match] = []
        heads = heads_of(loaded.layer)
        ways = matches(parameters, weights, self.names, layer=self.layer, heads=heads)
        for match in ways:
            if not all(map(self.layer.layout.may_lack, match.absent)):
                continue
            if match.doubted and (loaded.named or self.names):
                break
            again = _Form(form.candidate, match, in_single=True)
            if self._result(self.trial, again, self.seed + 1).held:
                if match.doubted:
                    self._leave_open(match, loaded)
                    self.exchanged = _exchanged(match, tried)
                return replace(form, match=replace(match, fits=True))
            if not match.doubted:
                tried.append(match)
        alike = next((each for each in tried if resembles(self.layer, form.candidate, each)), None)
        best = alike or (tried[0] if tried else None)
        whole = any(match.complete for match in tried) and not ways.cut_short
        known = loaded.named or loaded.holds_too_little or bool(self.names)
        if not (known or whole or (alike is not None and alike.complete)):
            self._leave_open(best, loaded)
        return replace(form, match=best)

    def _leave_open(self, match: Match | None, loaded: Loaded) -> None:
        """The weights are not known to be the same: the reader is to say which they are."""
        self.judged, self.likeliest = False, match
        self.experts = experts_in(self.layer, loaded.layer)
        parameters = weights_of(loaded.layer)
        self.suggested = names_line(self.layer, self.candidate, match, parameters, loaded.weights)

    def _require_names(
        self, parameters: Mapping[str, Tensor], weights: Mapping[str, Tensor]
    ) -> None:
        parts = cut(weights, self.layer.layout)
        known = {*weights, *parts}
        if wrong := sorted(set(self.names) - known):
            raise ValueError(f"names= has {wrong}; the weights of the book: {sorted(weights)}")
        theirs = set(named_by_hand(self.names, parts).values())
        ways = (*gatherings(parameters), *gatherings(parameters, of_model=True))
        of_lists = {name for each in ways for name in each.lists}
        if wrong := sorted(theirs - set(parameters) - of_lists):
            raise ValueError(f"names= has {wrong}; the layer's parameters: {sorted(parameters)}")

    def _masked(self, adapted: Adapted, form: _Form) -> _Form:
        """Hands masks over in the way in which most laws about masks hold."""
        asked = [each for each in self.checks if "mask" in each.name + each.law]
        asked = [each for each in asked if each.kind == "law"]

        def held() -> int:
            tried = replace(form, in_single=True)
            return sum(self._result(each, tried, self.seed + 1).held for each in asked)

        best, most = adapted.mask, held() if asked else 0
        for meaning in meanings_of_masks(self.candidate) if most < len(asked) else ():
            adapted.mask = meaning
            count = held()
            if count > most:
                best, most = meaning, count
        adapted.mask = best
        for meaning, text in MASKS.items():
            if meaning != best:
                adapted.others.pop(text, None)
        return form

    def _is_better(self, form: _Form, as_is: Sequence[Result], loaded: Loaded | None) -> bool:
        if not as_is:
            return True
        partial = loaded is not None and not loaded.complete
        if partial and form.match is not None:
            return True
        more = _count(self._results(form)) - _count(as_is)
        return more > 0 or (more == 0 and bool(form.candidate.notes))

    def _in_single(self, form: _Form, as_is: Sequence[Result] | None) -> _Form:
        """Compares in float32 where more of the law holds then, and float32 was computed."""
        results = as_is or self._results(form)
        self.found.results = tuple(results)
        if _law_holds(results):
            return form
        watched = Adapted(self.layer, self.candidate)
        if isinstance(form.candidate, Adapted):
            watched = form.candidate
        watched.singles = False
        with WatchForSingles(watched):
            self._result(self.trial, _Form(watched, form.match))
        computed, watched.singles = watched.singles, None
        if not computed:
            return form
        single = replace(form, in_single=True)
        again = self._results(single)
        if _count(again) > _count(results):
            self.found.results, self.found.in_single = again, True
            return single
        return form

    def _of_inputs(self, adapted: Adapted, form: _Form) -> tuple[Result, ...]:
        """The results, with what it does to its inputs where it is given no copies of them."""
        if not adapted.clones:
            return self.found.results
        adapted.clones = False
        asked = [each for each in self.checks if each.name == _OF_INPUTS]
        without = {each.name: self._result(each, form) for each in asked}
        adapted.clones = True
        return tuple(without.get(result.name, result) for result in self.found.results)

    def _arguments(self, adapted: Adapted) -> tuple[Result, ...]:
        """What it has with its callers that is not the book's: names alone, and what is more."""
        found = []
        if adapted.names:
            law = f"Its arguments have the names and the order of {self.layer.signature}."
            text = "; ".join(adapted.names)
            found.append(Result("names of arguments", law, False, text, "names"))
        if adapted.others:
            law = f"It is called as {self.layer.signature}, and returns a tensor."
            text = "; ".join(adapted.others)
            found.append(Result("arguments", law, False, text, "contract"))
        return tuple(found)

    def _add_own_sizes(self, form: _Form) -> None:
        """Asks a layer that does not take a size for its values at the sizes that it has."""
        results = {result.name: result for result in self.found.results}
        if not self.layer.is_class or results[self.trials[0].name].asked:
            return
        lenient = Adapted(self.layer, self.candidate)
        lenient.lenient = True
        first: list[nn.Module] = []

        def kept(*args: Any, **kwargs: Any) -> nn.Module:
            first.append(lenient(*args, **kwargs))
            return first[0]

        self._problem(_Form(kept))
        own = own_layer(self.layer, first[0]) if first else None
        if own is None:
            return
        of_its_own = Findings()

        def copy_of(*args: Any, **kwargs: Any) -> nn.Module:
            return copied(first[0])

        _Diagnosis(own, copy_of, self.names, self.seed, of_its_own).run()
        asked = [each for each in of_its_own.results if not each.of_form]
        self.found.results = (*asked, *self.found.results)
        self.judged &= of_its_own.judged

    def _mistakes(self, form: _Form, results: Sequence[Result]) -> Mistakes:
        return Naming(self.layer, self.seed).mistakes(form.candidate, form.match, results)

    def _name_the_mistake(self, plain: _Form, form: _Form, as_is: Sequence[Result]) -> None:
        results = self.found.results
        right = _law_holds(results)
        known = Mistakes()
        if form is not plain:
            apart = names_apart(results, form.match)
            known = self._mistakes(form, [each for each in apart if each.kind != "names"])
            if right and not known.exact:  # the contract is another one; the initialization is not
                known = self._mistakes(form, [each for each in results if each.kind == "start"])
        elif not right:
            known = self._mistakes(plain, as_is)
        self.found.mistakes = known


def _trials(layer: Layer) -> list[Check]:
    """The laws by one of which a candidate is fitted, those of values first."""
    checks = [each for each in layer.checks if not each.weak]
    laws = [each for each in checks if each.kind == "law"]
    return [*(each for each in laws if each.name.startswith("values")), *laws] or checks


def _has_values(layer: Layer, results: Iterable[Result]) -> bool:
    """Whether the first check of values holds, at whichever sizes."""
    first = _trials(layer)[0].name
    return any(each.held and each.name in (first, f"{first} at its own sizes") for each in results)


def _exchanged(match: Match, believed: Sequence[Match]) -> tuple[str, ...]:
    """Two parameters that a match takes for each other, against what their names say."""
    first = next((each for each in believed if each.complete), None)
    if first is None or first.sources.keys() != match.sources.keys():
        return ()
    moved = tuple(name for name, source in match.sources.items() if first.sources[name] != source)
    if len(moved) != 2 or match.sources[moved[0]] != first.sources[moved[1]]:
        return ()
    return moved


def _number(layer: Layer) -> int:
    """How many checks a layer has that decide something."""
    return sum(not each.weak for each in layer.checks)


def _law_holds(results: Iterable[Result]) -> bool:
    return all(result.held for result in results if result.kind == "law")


def _count(results: Iterable[Result]) -> int:
    return sum(result.held for result in results if result.kind == "law")
