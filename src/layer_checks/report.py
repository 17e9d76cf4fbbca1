"""The diagnosis of a layer: which checks hold, and which known mistake it makes."""

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import torch
from torch import Tensor

from layer_checks.definitions import Candidate, Check, Layer, WrongVersion
from layer_checks.evidence import Evidence, error_line
from layer_checks.randomness import repeatable
from layer_checks.registry import layer_named, right_version

# What a layer computes on the probe, or the name of the error that it raises there.
Fingerprint: TypeAlias = Sequence[Tensor] | str


@dataclass(frozen=True, repr=False)
class Result:
    """How one check came out.

    Attributes:
        name: The check's name.
        law: What it states, in a sentence.
        held: Whether it holds for the candidate.
        text: What was measured, or what went wrong, in one line.
    """

    name: str
    law: str
    held: bool
    text: str

    def __repr__(self) -> str:
        return f"{'held' if self.held else 'failed':<8}{self.name}: {self.text}"


@dataclass(frozen=True, repr=False)
class Report:
    """What the checks of a layer found out about a candidate. True if all of them hold.

    Attributes:
        layer_name: The layer that the candidate is to be.
        results: One for each check.
        behaves_like: The known wrong version that computes the same, None if there is none.
        not_run: How many checks were left out, since the layer cannot be built or called.
    """

    layer_name: str
    results: tuple[Result, ...]
    behaves_like: WrongVersion | None = None
    not_run: int = 0

    @property
    def passed(self) -> tuple[Result, ...]:
        """The checks that hold."""
        return tuple(result for result in self.results if result.held)

    @property
    def failed(self) -> tuple[Result, ...]:
        """The checks that fail."""
        return tuple(result for result in self.results if not result.held)

    def __bool__(self) -> bool:
        return not self.failed

    def __repr__(self) -> str:
        total = len(self.results) + self.not_run
        lines = [f"{self.layer_name}: {len(self.passed)} of {total} checks hold"]
        lines += map(repr, self.results)
        if self.not_run:
            lines.append(f"not run {self.not_run} checks, which need this first")
        if self.behaves_like is not None:
            lines.append(f"behaves like: {self.behaves_like!r}")
        return "\n".join(wrapped(line, indent=8) for line in lines)


def wrapped(line: str, indent: int) -> str:
    """A line in the width of a page's column, with what follows indented."""
    return textwrap.fill(line, width=70, subsequent_indent=" " * indent, break_long_words=False)


def check(layer_name: str, candidate: Candidate, seed: int = 0) -> Report:
    """Runs a layer's checks on a class or function and says which known mistake it makes.

    Args:
        layer_name: The layer's name in `transformer_layers`.
        candidate: A class that is built with the layer's arguments, or a function. Parameters are
            matched by name, or by order where no name agrees.
        seed: Seed of the random weights and inputs.

    Returns:
        A report that shows one line for each check. An error of the candidate is such a line too.

    Raises:
        ValueError: If there is no layer of this name.

    Examples:
        >>> class Mine(torch.nn.LayerNorm):
        ...     def forward(self, x):
        ...         return super().forward(x) - self.bias if self.bias is not None else x
        >>> check("LayerNorm", Mine).behaves_like
        no bias - add the bias.
    """
    layer = layer_named(layer_name)
    checks = tuple(each for each in layer.checks if not each.weak)
    problem = _problem_with_example(layer, candidate, seed)
    if problem is not None:
        return Report(layer_name, (problem,), not_run=len(checks))
    results = tuple(run(each, candidate, seed) for each in checks)
    report = Report(layer_name, results)
    if report:
        return report
    return Report(layer_name, results, _match(layer, candidate, _failures(results)))


def run(one: Check, candidate: Candidate, seed: int = 0) -> Result:
    """Runs one check, with torch's global generator and default dtype set for its duration."""
    try:
        with repeatable(seed):
            evidence = one.run(candidate)
    except AssertionError as error:
        return Result(one.name, one.law, False, _failure(error))
    except Exception as error:  # a reader's layer can raise anything
        return Result(one.name, one.law, False, error_line(error))
    return Result(one.name, one.law, True, _measured(evidence))


def _problem_with_example(layer: Layer, candidate: Candidate, seed: int) -> Result | None:
    try:
        with repeatable(seed):
            layer.example(candidate)
    except Exception as error:  # a reader's layer can raise anything
        law = f"It is called as {layer.signature}."
        text = _failure(error) if isinstance(error, AssertionError) else error_line(error)
        return Result(layer.signature, law, False, text)
    return None


def _failure(error: AssertionError) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].removeprefix("not equal: ") if lines else error_line(error)


def _measured(evidence: Evidence) -> str:
    """The evidence without the measured number, which would differ between machines."""
    text = evidence.pattern.replace("largest difference ..., ", "")
    return text.removeprefix("holds: ").replace("equal: ", "equal, ", 1)


def _match(layer: Layer, candidate: Candidate, failures: frozenset[str]) -> WrongVersion | None:
    """The wrong version that computes the same, and fails the same checks if there is a choice.

    Mistakes that show in rounding, dtypes or errors only are told by their failed checks alone.
    """
    found = _fingerprint(layer, candidate)
    alike = [
        (version, its_failures)
        for version, fingerprint, its_failures in _known(layer)
        if _same(fingerprint, found)
    ]
    for version, its_failures in alike:
        if its_failures == failures:
            return version
    return alike[0][0] if alike and not _same(found, _right_fingerprint(layer)) else None


@cache
def _known(layer: Layer) -> tuple[tuple[WrongVersion, Fingerprint, frozenset[str]], ...]:
    return tuple(
        (
            version,
            _fingerprint(layer, version.layer),
            _failures(run(each, version.layer) for each in layer.checks if not each.weak),
        )
        for version in layer.wrong_versions
    )


@cache
def _right_fingerprint(layer: Layer) -> Fingerprint:
    return _fingerprint(layer, right_version(layer.name))


def _failures(results: Iterable[Result]) -> frozenset[str]:
    return frozenset(result.name for result in results if not result.held)


def _fingerprint(layer: Layer, candidate: Candidate) -> Fingerprint:
    try:
        with repeatable(0):
            return layer.probe(candidate)
    except Exception as error:  # a reader's layer can raise anything
        return type(error).__name__


def _same(left: Fingerprint, right: Fingerprint) -> bool:
    if isinstance(left, str) or isinstance(right, str):
        return isinstance(left, str) and isinstance(right, str) and left == right
    return len(left) == len(right) and all(
        one.shape == other.shape
        and torch.allclose(one.double(), other.double(), rtol=1e-6, atol=1e-9, equal_nan=True)
        for one, other in zip(left, right, strict=True)
    )
