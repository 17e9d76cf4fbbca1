"""An answer that is kept is the one that would be found, and never another's."""

from pathlib import Path

import pytest

from layer_checks import detection_table
from layer_checks.diagnosis import kept_results, running
from layer_checks.kit.definitions import Check
from layer_checks.registry import layer_named
from transformer_layers import Conv1D

WRONG = layer_named("Conv1D").wrong_versions[0].layer
VALUES = next(each for each in layer_named("Conv1D").checks if each.name == "values")


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv(kept_results.FOLDER, str(tmp_path))
    monkeypatch.setattr(kept_results, "_found", {})
    return tmp_path


def in_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_results, "_found", {})


def test_what_is_kept_is_what_is_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = kept_results.run(VALUES, WRONG)
    assert not found.held
    assert found == running.run(VALUES, WRONG)
    in_another_process(monkeypatch)
    monkeypatch.setattr(running, "run", None)
    assert kept_results.run(VALUES, WRONG) == found
    with pytest.raises(TypeError):  # another seed is another question
        kept_results.run(VALUES, WRONG, 1)


def test_a_table_is_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = detection_table("gelu")
    in_another_process(monkeypatch)
    assert detection_table("gelu").caught == first.caught
    monkeypatch.delenv(kept_results.FOLDER)
    in_another_process(monkeypatch)
    assert detection_table("gelu").caught == first.caught


@pytest.mark.parametrize("damaged", [b"", b"\x80", b"no pickle"])
def test_what_is_damaged_is_found_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, damaged: bytes
) -> None:
    found = kept_results.run(VALUES, WRONG)
    (file,) = folder.iterdir()
    file.write_bytes(damaged)
    in_another_process(monkeypatch)
    assert kept_results.run(VALUES, WRONG) == found
    assert [each.name for each in folder.iterdir()] == [file.name]


def test_other_sources_are_other_answers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept_results.run(VALUES, WRONG)
    in_another_process(monkeypatch)
    monkeypatch.setattr(kept_results, "_circumstances", lambda: "another processor")
    kept_results.run(VALUES, WRONG)
    assert len(list(folder.iterdir())) == 2


def test_nothing_is_kept_of_layers_and_checks_of_others(folder: Path) -> None:
    class Own(Conv1D):
        """Called as it likes, and changed at any time."""

    Own.__name__ = Own.__qualname__ = "Conv1D"
    assert kept_results.run(VALUES, Own).held
    Own.forward = lambda self, x: x  # type: ignore[method-assign,assignment]
    assert not kept_results.run(VALUES, Own).held
    of_others = Check("values", "It is right.", VALUES.run)
    assert not kept_results.run(of_others, WRONG).held
    assert list(folder.iterdir()) == []
