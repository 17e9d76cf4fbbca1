"""Which experiments there are, what each has measured, and whether it still would."""

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any
from unittest.mock import patch

from evaluation.recorded import read_results
from evaluation.renewed import renew
from evaluation.sources import facts, refuse_stale

HERE = Path(__file__).parent
RESULTS = HERE / "results"
_OTHERS = {"__main__", "record"}


def names() -> tuple[str, ...]:
    """The names of all experiments, in order."""
    found = {module.name for module in iter_modules([str(HERE)])}
    return tuple(sorted(found - _OTHERS))


def sources(name: str) -> tuple[str, ...]:
    """Patterns of the files that an experiment's result depends on, its own module among them.

    Raises:
        ValueError: If there is no such experiment.
    """
    return (*_module(name).SOURCES, f"evaluation/experiments/{name}.py")


def measured(name: str) -> dict[str, Any]:
    """Runs an experiment.

    Returns:
        Its "result", beside when, with which versions and from which sources it was made.

    Raises:
        ValueError: If there is no such experiment.
    """
    begun = facts(sources(name))  # before minutes in which a source may change
    return {**begun, "result": _module(name).measure()}


def renewed(name: str, folder: Path = RESULTS) -> None:
    """Runs an experiment with its first seed, and renews its record where it says the same.

    An experiment with one seed runs its `first_steps`.

    Args:
        name: One of :func:`names`.
        folder: Where records are.

    Raises:
        ValueError: If there is no such experiment.
        SystemExit: If the record cannot be read, or a number is another; with the remedy.
    """
    module = _module(name)

    def part_of(record: dict[str, Any]) -> tuple[Any, Any]:
        if hasattr(module, "first_steps"):
            return module.first_steps(), record["result"]
        with patch.object(module, "SEEDS", 1):
            return module.measure(), record["result"]

    renew(
        folder / f"{name}.json", sources(name), f"python -m evaluation.experiments {name}", part_of
    )


def recorded(name: str, folder: Path = RESULTS) -> dict[str, Any]:
    """What an experiment has measured.

    Args:
        name: One of :func:`names`.
        folder: Where records are.

    Returns:
        What its `measure` returned.

    Raises:
        ValueError: If there is no such experiment.
        SystemExit: If the record cannot be read, or sources have changed since; with the remedy.
    """
    patterns = sources(name)
    made_by = f"python -m evaluation.experiments {name}"
    file = folder / f"{name}.json"
    results = read_results(file, ("date", "sources", "result"), f"run {made_by}")
    refuse_stale(file, results["sources"], patterns, made_by)
    return dict(results["result"])


def _module(name: str) -> Any:
    if name not in names():
        raise ValueError(f"the experiments are {', '.join(names())}; got {name!r}")
    return import_module(f"evaluation.experiments.{name}")
