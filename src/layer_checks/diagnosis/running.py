"""One check, run on a candidate: its result, whatever the candidate does."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from layer_checks.diagnosis.sandbox import OutOfTime
from layer_checks.evidence.evidence import Evidence, error_line
from layer_checks.evidence.gradients import IN_INFERENCE_MODE
from layer_checks.evidence.randomness import repeatable
from layer_checks.kit.arguments import CannotTakeError
from layer_checks.kit.definitions import Candidate, Check, Kind

# Methods of the book's models, which others' models do not have.
_LACKING = re.compile(
    r"has no attribute '(loss|generate|stream|new_caches|last_hidden_state|logits)'$"
)

# How the text of a result begins where an error was raised.
_RAISED = re.compile(r"\w*(Error|Exception)\b")
# Names of results that say what was adapted.
_OF_FORM = ("arguments", "names of arguments")

_NUMBER = r"-?\d+\.\d+(?:e[-+]\d+)?|-?\d+e[-+]\d+|-?\d+(?=[ ,]|$)|nan|-?inf"

_RESIDUE = 1e-14


@dataclass(frozen=True, repr=False)
class Result:
    """How one check came out.

    Attributes:
        name: The check's name.
        law: What it states, in a sentence.
        held: Whether it holds for the candidate.
        text: What was measured, or what went wrong, in one line.
        kind: Which kind of statement it is.
        where: Where it went wrong: the index, both values and the shape.
        asked: Whether the candidate has the arguments with which the check asks.
        example: Lines to paste that show the failure.
    """

    name: str
    law: str
    held: bool
    text: str
    kind: Kind = "law"
    where: str = field(default="", compare=False)
    asked: bool = True
    example: str = field(default="", compare=False)

    @property
    def word(self) -> str:
        """The result in one word."""
        return "held" if self.held else "failed" if self.asked else "unasked"

    @property
    def raised(self) -> bool:
        """Whether an error was raised, so that there is no value to compare."""
        return _RAISED.match(self.text) is not None

    @property
    def of_form(self) -> bool:
        """Whether it is no check, but says how the candidate is called."""
        return self.name in _OF_FORM

    def __repr__(self) -> str:
        return f"{self.word:<8}{self.name}: {self.text}"


def in_one_line(results: Iterable[Result]) -> list[Result]:
    """Results of which those that say the same are one, with all their names and laws."""
    found: dict[tuple[str, str], list[Result]] = {}
    for each in results:
        found.setdefault((each.word, each.text), []).append(each)
    return [
        replace(
            first,
            name=", ".join(each.name for each in (first, *others)),
            law=" ".join(dict.fromkeys(each.law for each in (first, *others))),
        )
        for first, *others in found.values()
    ]


def run(one: Check, candidate: Candidate, seed: int = 0) -> Result:
    """Runs one check, with torch's global generator and default dtype set for its duration."""
    try:
        with repeatable(seed):
            evidence = one.run(candidate)
    except CannotTakeError as error:
        return Result(one.name, one.law, False, str(error), one.kind, asked=False)
    except AssertionError as error:
        asked = not str(error).startswith(IN_INFERENCE_MODE)
        text = failure(error)
        return Result(one.name, one.law, False, text, one.kind, where_of(error), asked)
    except (OutOfTime, KeyboardInterrupt):
        raise
    except AttributeError as error:
        lacking = _LACKING.search(str(error))
        text = f"it has no {lacking[1]}" if lacking else shortened(error_line(error))
        return Result(one.name, one.law, False, text, one.kind, asked=lacking is None)
    except NotImplementedError as error:
        asked = str(error).startswith("Module [")  # it has no `forward`, which torch says so
        text = shortened(error_line(error) if asked else str(error) or "not implemented")
        return Result(one.name, one.law, False, text, one.kind, asked=asked)
    except BaseException as error:  # a reader's layer can raise anything
        asked = not str(error).startswith("Inference tensors cannot be saved for backward")
        text = shortened(error_line(error)) if asked else IN_INFERENCE_MODE
        return Result(one.name, one.law, False, text, one.kind, asked=asked)
    return Result(one.name, one.law, True, _measured(evidence), one.kind)


def failure(error: AssertionError) -> str:
    """What went wrong, in one line."""
    lines = str(error).strip().splitlines()
    return shortened(lines[0].removeprefix("not equal: ") if lines else error_line(error))


def where_of(error: AssertionError) -> str:
    """Where it went wrong, without how often."""
    lines = [line.strip() for line in str(error).strip().splitlines()[1:]]
    where = [line.split(";")[0] for line in lines if line.startswith(("at index", "shape"))]
    text = ", ".join(where).removesuffix(", torch.float64")
    text = re.sub(rf"({_NUMBER}) against ({_NUMBER})", _shortened_pair, text)
    return text


def apart(value: float, expected: float) -> tuple[str, str]:
    """Two numbers with four digits, or as many as tell them apart, and one more.

    What rounding has left beside a number of ordinary size is 0: its digits, and whether it has
    any, are the processor's.
    """
    value, expected = _without_residue(value, expected), _without_residue(expected, value)
    for digits in range(3, 17):
        if f"{value:.{digits}g}" != f"{expected:.{digits}g}":
            return f"{value:.{digits + 1}g}", f"{expected:.{digits + 1}g}"
    return repr(value), repr(expected)


def _without_residue(number: float, other: float) -> float:
    return 0.0 if abs(number) < _RESIDUE * min(1.0, abs(other)) else number


def _shortened_pair(pair: re.Match[str]) -> str:
    return " against ".join(apart(float(pair[1]), float(pair[2])))


def shortened(text: str) -> str:
    """An error's line as far as a report has room for it."""
    return text if len(text) <= 200 else f"{text[:199]}…"


def _measured(evidence: Evidence) -> str:
    """The evidence without the measured number, which would differ between machines."""
    text = evidence.pattern.replace("largest difference ..., ", "")
    return text.removeprefix("holds: ").replace("equal: ", "equal, ", 1)
