"""Settings for the tests of the checks."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from tests.book_results import kept_by_the_book

FOLDER = "CHECK_RESULTS"


@pytest.fixture(autouse=True)
def _no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives a layer an hour where a test names no time: what a machine is busy with is no fault."""
    from layer_checks import check  # not before a wrong version is in its place

    monkeypatch.setitem(check.__kwdefaults__, "timeout", 3600.0)


@pytest.fixture(scope="session")
def _answers(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, object]]:
    """A folder that all workers of this run share, and what this process knows.

    The folder is that of the book, if it has been built.
    """
    base = tmp_path_factory.getbasetemp()
    own = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "answers"
    with kept_by_the_book():
        of_book = os.environ.get(FOLDER)
    mutated = "MUTANT_UNDER_TEST" in os.environ  # whose sources do not tell which one it is
    return str(own) if mutated or not of_book else of_book, {}


@pytest.fixture(autouse=True)
def _known_once(
    monkeypatch: pytest.MonkeyPatch,
    as_users_run_it: None,
    _answers: tuple[str, dict[str, object]],
) -> None:
    """Has what is asked of known wrong versions asked once for all tests, as users would ask."""
    from layer_checks.diagnosis import kept_results

    folder, found = _answers
    monkeypatch.setenv(FOLDER, folder)
    monkeypatch.setattr(kept_results, "_found", found)


class Distribution(Protocol):
    """Puts a distribution with entry points on `sys.path`."""

    def __call__(self, name: str, points: str, **modules: str) -> Path: ...


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Distribution]:
    """Distributions of others, which are known for the time of a test."""
    from layer_checks import registry

    monkeypatch.setattr(registry, "LAYERS", dict(registry.LAYERS))
    monkeypatch.setattr(registry, "_asked", False)
    monkeypatch.syspath_prepend(tmp_path)
    written: list[str] = []

    def write(name: str, points: str, **modules: str) -> Path:
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[layer_checks]\n{points}\n")
        for module, text in modules.items():
            (tmp_path / f"{module}.py").write_text(text, encoding="utf-8")
            written.append(module)
        return tmp_path

    yield write
    for module in written:
        sys.modules.pop(module, None)


@pytest.fixture
def gated(distribution: Distribution) -> Path:
    """The folder of a distribution that has a gated layer with checks and two wrong versions."""
    text = (Path(__file__).parent / "others/gated_layers.py").read_text(encoding="utf-8")
    return distribution("gated", "layers = gated_layers", gated_layers=text)
