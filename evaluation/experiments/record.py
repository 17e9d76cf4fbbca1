"""Which experiments there are, what each has measured, and whether it still would."""

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any
from unittest.mock import patch

from evaluation.recorded import read_results
from evaluation.renewed import renew
from evaluation.sources import changed, digests, facts, refuse_stale

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


def renewed(name: str, folder: Path = RESULTS, against: Path | None = None) -> None:
    """Runs an experiment with its first seed, and renews its record where it says the same.

    An experiment with one seed runs its `first_steps`. Where a run grows the last bits of a
    processor to other numbers, as one that diverges, it is held against the same run of the code
    that made the record.

    Args:
        name: One of :func:`names`.
        folder: Where records are.
        against: A checkout in which the sources are those of the record, to run it there too; if
            none is given, the record is what it is held against.

    Raises:
        ValueError: If there is no such experiment.
        SystemExit: If the record cannot be read, a number is another, or the checkout has other
            sources; with the remedy.
    """
    made_by = f"python -m evaluation.experiments {name}"

    def part_of(record: dict[str, Any]) -> tuple[Any, Any]:
        if against is None:
            return _first(name), record["result"]
        if other := changed(record["sources"], digests(sources(name), against)):
            raise SystemExit(f"{against}: {', '.join(other)} did not make the record of {name}")
        there = subprocess.run(
            [sys.executable, "-c", _FIRST, name],
            cwd=against,
            env={**os.environ, "PYTHONPATH": f"{against / 'src'}{os.pathsep}{against}"},
            check=True,
            capture_output=True,
            text=True,
        )
        return _first(name), json.loads(there.stdout)

    renew(folder / f"{name}.json", sources(name), made_by, part_of)


# What `_first` does, for a checkout that may not have it yet.
_FIRST = """
import importlib, json, sys, torch
from unittest.mock import patch
torch.set_num_threads(1)
module = importlib.import_module(f"evaluation.experiments.{sys.argv[1]}")
with patch.object(module, "SEEDS", 1):
    print(json.dumps(module.measure()))
"""


def _first(name: str) -> Any:
    module = _module(name)
    if hasattr(module, "first_steps"):
        return module.first_steps()
    with patch.object(module, "SEEDS", 1):
        return module.measure()


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
