"""One check, run on a candidate: its result, whatever the candidate does."""

from dataclasses import dataclass

from layer_checks.definitions import Candidate, Check, Kind
from layer_checks.evidence import Evidence, error_line
from layer_checks.randomness import repeatable


@dataclass(frozen=True, repr=False)
class Result:
    """How one check came out.

    Attributes:
        name: The check's name.
        law: What it states, in a sentence.
        held: Whether it holds for the candidate.
        text: What was measured, or what went wrong, in one line.
        kind: Which kind of statement it is.
    """

    name: str
    law: str
    held: bool
    text: str
    kind: Kind = "law"

    def __repr__(self) -> str:
        return f"{'held' if self.held else 'failed':<8}{self.name}: {self.text}"


def run(one: Check, candidate: Candidate, seed: int = 0) -> Result:
    """Runs one check, with torch's global generator and default dtype set for its duration."""
    try:
        with repeatable(seed):
            evidence = one.run(candidate)
    except AssertionError as error:
        return Result(one.name, one.law, False, failure(error), one.kind)
    except Exception as error:  # a reader's layer can raise anything
        return Result(one.name, one.law, False, error_line(error), one.kind)
    return Result(one.name, one.law, True, _measured(evidence), one.kind)


def failure(error: AssertionError) -> str:
    """What went wrong, in one line."""
    lines = str(error).strip().splitlines()
    return lines[0].removeprefix("not equal: ") if lines else error_line(error)


def _measured(evidence: Evidence) -> str:
    """The evidence without the measured number, which would differ between machines."""
    text = evidence.pattern.replace("largest difference ..., ", "")
    return text.removeprefix("holds: ").replace("equal: ", "equal, ", 1)
