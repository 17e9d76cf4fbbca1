"""What the package knows about a layer: its checks and its known wrong versions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from torch import Tensor

from layer_checks.evidence import Evidence

# A class of layers, or a function: what a reader hands in.
Candidate: TypeAlias = Callable[..., Any]


@dataclass(frozen=True)
class Check:
    """One statement about a layer, and the code that settles it.

    Attributes:
        name: A few words, as they stand in a report.
        law: The statement in one sentence.
        run: Builds the candidate and returns evidence; raises `AssertionError` where the statement
            fails. Draws from torch's global generator, which the caller seeds.
        weak: Whether it is a popular check that lets most wrong versions pass: such a check stands
            in the table of what catches what, and decides nothing.
    """

    name: str
    law: str
    run: Callable[[Candidate], Evidence]
    weak: bool = False


@dataclass(frozen=True, repr=False)
class WrongVersion:
    """A mistake that people make in a layer, in a few lines of our own.

    Attributes:
        name: A few words, as they stand in a report.
        advice: One sentence on what to look at.
        layer: The class, or the function.
        published: Work and file or thread in which it was published; None for a mistake that is
            only easy to make.
    """

    name: str
    advice: str
    layer: Candidate
    published: str | None = None

    def __repr__(self) -> str:
        return f"{self.name} - {self.advice}"


@dataclass(frozen=True)
class Layer:
    """Everything that is known about one layer.

    Attributes:
        name: The public name in `transformer_layers`.
        signature: How it is called, for reports.
        example: Builds the candidate, or calls it, once: what must work before any check can say
            more.
        probe: Values of the candidate that tell the wrong versions apart: outputs and gradients.
        checks: The checks, weak ones first.
        wrong_versions: The known wrong versions.
    """

    name: str
    signature: str
    example: Callable[[Candidate], object]
    probe: Callable[[Candidate], Sequence[Tensor]]
    checks: tuple[Check, ...]
    wrong_versions: tuple[WrongVersion, ...]
