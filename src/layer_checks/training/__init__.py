"""Checks of a reader's training loop, and the mistakes that people make in one.

Most of them leave the loss falling, only not as far or not as fast; no error says so.
"""

from functools import cache
from typing import Any

from layer_checks.diagnosis.report import Report
from layer_checks.diagnosis.running import Result, run
from layer_checks.kit.definitions import WrongVersion
from layer_checks.training import wrong as wrong
from layer_checks.training.checks import TRAINING, Candidate
from layer_checks.training.trainer import Options, Trainer

__all__ = ["TRAINING", "Options", "Trainer", "check_training"]


def check_training(candidate: Candidate | None = None, /, **functions: Any) -> Report:
    """Runs the checks of a training loop, and says which known mistake it makes.

    Args:
        candidate: A class that is made and used as :class:`Trainer`; that one if not given.
        **functions: Methods to put in place of its own, such as `train_step`, `gradients` or
            `make_optimizer`. Each is given the trainer first.

    Returns:
        A report with a line for each check.

    Examples:
        >>> import torch
        >>> def evaluate(trainer, ids):
        ...     with torch.no_grad():
        ...         return trainer.loss(ids).item()
        >>> report = check_training(evaluate=evaluate)
        >>> report.behaves_like
        dropout left on - call model.eval() before an evaluation.
    """
    base = Trainer if candidate is None else candidate
    unknown = [name for name in functions if not hasattr(Trainer, name)]
    if unknown:
        raise ValueError(f"a Trainer has no method {unknown[0]!r}")
    if functions:
        base = type("Yours", (base,), functions)  # type: ignore[arg-type]  # it is a class
    results = _results(base)
    failed = _failures(results)
    alike = (each for each in TRAINING.wrong_versions if _failures_of(each) == failed)
    return Report(TRAINING.name, results, next(alike, None) if failed else None)


def _results(candidate: Candidate) -> tuple[Result, ...]:
    return tuple(run(each, candidate) for each in TRAINING.checks if not each.weak)


def _failures(results: tuple[Result, ...]) -> frozenset[tuple[str, str]]:
    """What failed and by how much: two mistakes may fail alike, but not by the same numbers."""
    return frozenset((result.name, result.text) for result in results if not result.held)


@cache
def _failures_of(version: WrongVersion) -> frozenset[tuple[str, str]]:
    return _failures(_results(version.layer))
