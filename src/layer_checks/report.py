"""The diagnosis of a layer: which checks hold, and which known mistake it makes."""

import textwrap
from dataclasses import dataclass

from layer_checks.definitions import Candidate, Layer, WrongVersion
from layer_checks.evidence import error_line
from layer_checks.likeness import failures_of, known_mistakes
from layer_checks.randomness import repeatable
from layer_checks.registry import layer_named
from layer_checks.running import Result, failure, run


@dataclass(frozen=True, repr=False)
class Report:
    """What the checks of a layer found out about a candidate. True if all of them hold.

    Attributes:
        layer_name: The layer that the candidate is to be.
        results: One for each check.
        behaves_like: The known wrong version that computes the same, None if there is none.
        not_run: How many checks were left out, since the layer cannot be built or called.
        fails_like: Known wrong versions that no value shows, which fail checks that it fails.
    """

    layer_name: str
    results: tuple[Result, ...]
    behaves_like: WrongVersion | None = None
    not_run: int = 0
    fails_like: tuple[WrongVersion, ...] = ()

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
        lines += [f"fails the same checks as: {version!r}" for version in self.fails_like]
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
        >>> import torch
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
    mistakes = known_mistakes(layer, candidate, failures_of(results))
    return Report(layer_name, results, mistakes.behaves_like, fails_like=mistakes.fails_like)


def _problem_with_example(layer: Layer, candidate: Candidate, seed: int) -> Result | None:
    try:
        with repeatable(seed):
            layer.example(candidate)
    except Exception as error:  # a reader's layer can raise anything
        law = f"It is called as {layer.signature}."
        text = failure(error) if isinstance(error, AssertionError) else error_line(error)
        return Result(layer.signature, law, False, text)
    return None
