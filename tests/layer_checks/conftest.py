"""Settings for the tests of the checks."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest


@pytest.fixture(autouse=True)
def _no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives a layer an hour where a test names no time: what a machine is busy with is no fault."""
    from layer_checks import check  # not before a wrong version is in its place

    monkeypatch.setitem(check.__kwdefaults__, "timeout", 3600.0)


@pytest.fixture(scope="session")
def _folder_of_workers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of this run share."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "known"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(autouse=True)
def _known_once(monkeypatch: pytest.MonkeyPatch, _folder_of_workers: Path) -> None:
    """Has what `check` asks of known wrong versions asked once for all tests."""
    from layer_checks.diagnosis import mistake_matching
    from tests.layer_checks.once import ONCE

    ONCE.folder = _folder_of_workers
    monkeypatch.setattr(mistake_matching, "run", ONCE.run)
    monkeypatch.setattr(mistake_matching, "_fingerprint", ONCE.fingerprint)


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
