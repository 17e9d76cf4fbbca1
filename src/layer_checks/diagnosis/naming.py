"""Which known mistake a candidate has: one that fails as it does, by the same values."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from layer_checks.diagnosis import kept_results
from layer_checks.diagnosis.mistake_matching import Mistakes, failures_of, known_mistakes
from layer_checks.diagnosis.running import Result
from layer_checks.diagnosis.sandbox import OutOfTime
from layer_checks.kit.definitions import Candidate, Layer, WrongVersion
from layer_checks.kit.matching import Match
from layer_checks.kit.oracles import lacking

# Checks whose failing value depends on names of parameters, or on draws that others make.
_SAYS_LITTLE = re.compile(r"gradient|drop|draw")
_ORDER = {"law": 0, "contract": 1, "start": 2}


@dataclass(frozen=True)
class Difference:
    """Where a check failed first, as a result says it.

    Attributes:
        index: Of the number, in brackets.
        value: What the candidate has there; NaN where it is no number.
        expected: What should stand there, likewise.
        words: The value as it is written.
    """

    index: str
    value: float
    expected: float
    words: str

    @classmethod
    def of(cls, result: Result) -> "Difference | None":
        """That of a result, if it has one."""
        found = re.match(r"at index (\(.*?\)): (\S+) against ([^\s,]+)", result.where)
        return found and cls(found[1], _number(found[2]), _number(found[3]), found[2])

    def has_the_value_of(self, other: "Difference") -> bool:
        """Whether both have the same value at the same place."""
        if math.isnan(self.value) or math.isnan(other.value):
            return (self.index, self.words) == (other.index, other.words) or (
                self.words == other.words == "nan"
            )
        close = math.isclose(self.value, other.value, rel_tol=2e-3, abs_tol=1e-6)
        return self.index == other.index and close

    def is_off_as(self, other: "Difference") -> bool:
        """Whether both are off by the same from the same value, up to the digits of a report."""
        if self.index != other.index or not math.isfinite(
            self.value + self.expected + other.value + other.expected
        ):
            return False
        allowed = 0.02 * abs(self.value - self.expected) + 1e-4 * abs(self.value)
        return abs(self.value - other.value) <= allowed and math.isclose(
            self.expected, other.expected, rel_tol=1e-3
        )


@dataclass(frozen=True)
class Naming:
    """Names mistakes of one layer.

    Attributes:
        layer: What the candidate is to be.
        seed: With which it was asked.
    """

    layer: Layer
    seed: int
    _results: dict[tuple[WrongVersion, str], Result | None] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def mistakes(
        self, candidate: Candidate, match: Match | None, results: Sequence[Result]
    ) -> Mistakes:
        """The known mistakes of a candidate.

        Args:
            candidate: A class or function.
            match: How its weights are matched.
            results: How the checks came out for it, and what is said of its form.

        Returns:
            What it behaves like.
        """
        asked = [each for each in results if not each.of_form]
        failures = failures_of(asked)
        if not any(each.word == "failed" for each in asked):
            return Mistakes()  # what could not be asked is no mistake
        try:
            untold = self._untold(results)
            known = known_mistakes(self.layer, candidate, failures, match, untold)
            with lacking(match.absent if match else frozenset()):
                known = self._confirmed(known, results)
                if known.behaves_like is None:
                    version = self._of_equal_values(results)
                    known = known if version is None else replace(known, behaves_like=version)
            return known
        except (OutOfTime, KeyboardInterrupt):
            raise
        except BaseException:  # where even the probe ends the program, nothing is known
            return Mistakes()

    def _confirmed(self, known: Mistakes, results: Sequence[Result]) -> Mistakes:
        """What it behaves like only where that gives the same on the input that fails.

        Otherwise it fails the same checks, or other ones.
        """
        version = known.behaves_like
        failed = [each for each in results if each.word == "failed" and each.kind in _ORDER]
        first = min(failed, key=lambda each: _ORDER[each.kind], default=None)
        if known.and_like is not None or first is None:
            return known
        if version is None:
            return replace(known, fails_like=self._alike(known.fails_like, first))
        if self._fails_alike(first, version):
            return known
        exact = (version,) if known.exact else ()
        alike = self._alike((*exact, *known.fails_like), first)
        return replace(known, behaves_like=None, exact=False, fails_like=alike)

    def _fails_alike(self, result: Result, version: WrongVersion) -> bool:
        """Whether a wrong version has the value or the error with which a candidate fails."""
        its = self._result_of(version, result.name)
        if its is None:
            return True
        if its.held:
            return False
        difference, its_difference = Difference.of(result), Difference.of(its)
        if difference is None or its_difference is None:
            return difference is its_difference and _kind_of(result.text) == _kind_of(its.text)
        return difference.has_the_value_of(its_difference)

    def _of_equal_values(self, results: Sequence[Result]) -> WrongVersion | None:
        """The wrong version that has the values of a candidate where its law fails.

        Those of the first law that fails, and of more of the others than any other version; of
        masks, which are right or wrong and have few values, those of all. What else the two do may
        differ: others drop, mask or refuse in other ways.
        """
        own = {each.name for each in self.layer.checks if not (each.generic or each.weak)}
        laws = [each for each in results if each.kind == "law" and each.name in own and each.asked]
        failed = [
            each
            for each in laws
            if each.word == "failed" and each.where and not _SAYS_LITTLE.search(each.name)
        ]
        if not failed:
            return None
        first, *rest = failed
        fitting: list[tuple[int, int, WrongVersion]] = []
        for version in self.layer.wrong_versions:
            if version.generic or not self._is_off_alike(first, version):
                continue
            same = [self._is_off_alike(each, version) for each in rest]
            if all(same) or "torch.bool" not in first.where:
                its = [self._result_of(version, each.name) for each in laws]
                other = {each.name for each in its if each is not None and not each.held}
                apart = other ^ {each.name for each in laws if each.word == "failed"}
                fitting.append((sum(same), -len(apart), version))
        fitting.sort(key=lambda each: each[:2])
        if not fitting or [each[:2] for each in fitting].count(fitting[-1][:2]) > 1:
            return None
        return fitting[-1][2]

    def _is_off_alike(self, result: Result, version: WrongVersion) -> bool:
        its = self._result_of(version, result.name)
        difference, its_difference = Difference.of(result), its and Difference.of(its)
        return bool(difference and its_difference and difference.is_off_as(its_difference))

    def _result_of(self, version: WrongVersion, name: str) -> Result | None:
        """How a check comes out for a wrong version; None of what is no check of the layer."""
        if (version, name) not in self._results:
            one = next((each for each in self.layer.checks if each.name == name), None)
            result = None if one is None else kept_results.run(one, version.layer, self.seed)
            self._results[version, name] = result
        return self._results[version, name]

    def _alike(self, versions: tuple[WrongVersion, ...], first: Result) -> tuple[WrongVersion, ...]:
        """Of those that fail the same checks, the ones that fail as this does.

        What raises an error does not fail as what gives another value.
        """
        if not first.raised:
            return versions
        found = {each: self._result_of(each, first.name) for each in versions}
        return tuple(each for each, its in found.items() if its is None or its.raised)

    def _untold(self, results: Sequence[Result]) -> frozenset[str]:
        """The checks whose failure tells nothing.

        Those that could not be asked, and probes of the law where the layer's own law fails, which
        ask for the same values elsewhere.
        """
        laws = [each for each in self.layer.checks if each.kind == "law" and not each.weak]
        own = {each.name for each in laws if not each.generic}
        fails = any(result.word == "failed" and result.name in own for result in results)
        probes = {each.name for each in laws if each.generic and fails}
        return frozenset(probes | {result.name for result in results if not result.asked})


def _number(text: str) -> float:
    truth = {"True": 1.0, "False": 0.0}
    try:
        return truth[text] if text in truth else float(text)
    except ValueError:
        return math.nan


def _kind_of(text: str) -> str:
    """A failure's text without what it measured and without names of classes."""
    return re.sub(r"[\d.]+(e[-+]?\d+)?|\b[A-Z]\w*\(.*", "#", text)
