"""The table of one module of tests: which test fails on which wrong version."""

from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.mutation.processes import Result
from evaluation.mutation.subjects import Subject
from evaluation.mutation.trials import path_of
from evaluation.mutation.wrongs import Replacement

# In the order in which they count for a test of several cases.
MARKS = {
    "failed": "x",
    "not raised": "x",
    "unfit": "-",
    "passed": ".",
    "skipped": " ",
    "not run": " ",
}
FAILED = ("failed", "not raised")


@dataclass(frozen=True)
class Table:
    """What became of each test of a module.

    Attributes:
        subject: The module of tests, and what it was held against.
        right: What became of the tests on the package as it is.
        results: What became of them on each of the wrong versions.
    """

    subject: Subject
    right: Result
    results: Sequence[Result]

    @property
    def tests(self) -> list[str]:
        """The tests, each once whatever its parameters."""
        return list(dict.fromkeys(function_of(case) for case in self.right.outcomes))

    def outcome(self, test: str, result: Result) -> str:
        """What became of a test: it fails if it does with one of its parameters."""
        found = {each for case, each in result.outcomes.items() if function_of(case) == test}
        return next((outcome for outcome in MARKS if outcome in found), "not run")

    def noticed(self, number: int) -> set[tuple[str, str]]:
        """The cases that fail because of a wrong version's own mistake, and how.

        A wrong version of `layer_checks` has few of the layers' errors and does not print itself
        as they do: a case that all wrong versions of a layer fail, in the same way, does not say
        which mistake it notices.
        """
        wrong, failed = self.subject.wrongs[number], failed_cases(self.results[number])
        failed_by_others = [
            failed_cases(result)
            for other, result in zip(self.subject.wrongs, self.results, strict=True)
            if isinstance(wrong, Replacement)
            and isinstance(other, Replacement)
            and other.layer == wrong.layer
            and other != wrong
        ]
        return failed - set.intersection(*failed_by_others) if failed_by_others else failed

    def problems(self) -> list[str]:
        """What a table shows that it should not, a line for each."""
        name = path_of(self.subject.tests)
        labels = ["the package as it is", *(wrong.label for wrong in self.subject.wrongs)]
        problems = [
            f"{name} cannot be run on {label}: {result.error}"
            for label, result in zip(labels, [self.right, *self.results], strict=True)
            if result.error
        ]
        for test in self.tests:
            if self.outcome(test, self.right) not in ("passed", "not run"):
                problems.append(f"{name}: {test} does not pass on the package as it is")
            if all(self.outcome(test, result) not in FAILED for result in self.results):
                problems.append(f"{name}: {test} has been seen to fail on no wrong version")
        problems += [
            f"{name}: no test notices {wrong.label}"
            for number, wrong in enumerate(self.subject.wrongs)
            if not self.results[number].error and not self.noticed(number)
        ]
        return problems

    def __str__(self) -> str:
        count = len(self.subject.wrongs)
        width = max(map(len, self.tests), default=0)
        numbers = [str(number) for number in range(1, count + 1)]
        digits = len(str(count))
        lines = [f"{path_of(self.subject.tests)}, {len(self.tests)} tests", ""]
        lines += [
            f"{'':<{width}}  {''.join(number.rjust(digits)[place] for number in numbers)}"
            for place in range(digits)
        ]
        for test in self.tests:
            found = [self.outcome(test, result) for result in self.results]
            marks = "".join(MARKS[each] for each in found)
            lines.append(f"{test:<{width}}  {marks}{marks.count('x'):>5}")
        lines.append("")
        lines += [
            f"{number:>{digits + 2}}  {wrong.label}"
            for number, wrong in zip(numbers, self.subject.wrongs, strict=True)
        ]
        return "\n".join(lines)


def function_of(case: str) -> str:
    """The name of a test without its parameters."""
    return case.partition("[")[0]


def failed_cases(result: Result) -> set[tuple[str, str]]:
    """The cases that fail on a wrong version, and how."""
    return {(case, outcome) for case, outcome in result.outcomes.items() if outcome in FAILED}
