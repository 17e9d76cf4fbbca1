"""Which states of a run are kept, and how files are replaced."""

import os
import shutil
from pathlib import Path

import pytest
import torch

from transformer_training import TrainingError
from transformer_training import state as states

pytestmark = pytest.mark.usefixtures("ended_if_it_waits")

FIXED = {"lr": 1}


def saved(folder: Path, step: int, keep: int) -> None:
    states.save(folder, states.State(step, {"x": torch.ones(9)}, FIXED, None), keep)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


class TestWhatIsKept:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        for step in (100, 200):
            saved(tmp_path, step, keep=2)
        return tmp_path

    def test_a_run_that_goes_back_keeps_what_it_saves(self, folder):
        truncated(folder / "step-00000200.safetensors")
        found, (said,) = states.load(folder, FIXED)
        assert found is not None
        assert found.step == 100 == states.last_step(folder)
        assert said.endswith(". It is kept as step-00000200.safetensors.damaged")
        saved(folder, 150, keep=1)
        assert names(folder) == ["step-00000150.safetensors", "step-00000200.safetensors.damaged"]
        assert states.last_step(folder) == 150
        assert states.load(folder, FIXED)[0].step == 150

    def test_another_rank_sets_nothing_aside(self, folder):
        truncated(folder / "step-00000200.safetensors")
        assert states.load(folder, FIXED, keeper=False)[0].step == 100
        assert names(folder) == ["step-00000100.safetensors", "step-00000200.safetensors"]

    def test_nothing_is_moved_where_a_run_cannot_go_on(self, folder):
        truncated(folder / "step-00000200.safetensors")
        with pytest.raises(
            TrainingError, match="was saved with another configuration: lr is 2, not 1"
        ):
            states.load(folder, {"lr": 2})
        truncated(folder / "step-00000100.safetensors")
        with pytest.raises(TrainingError, match="no checkpoint can be read"):
            states.load(folder, FIXED)
        assert names(folder) == ["step-00000100.safetensors", "step-00000200.safetensors"]

    def test_a_copy_under_another_name_does_not_count(self, folder):
        shutil.copy(folder / "step-00000200.safetensors", folder / "step-00000300.safetensors")
        found, (said,) = states.load(folder, FIXED)
        assert found.step == 200
        assert "is the state of step 200, and has another's name. It is kept as" in said


class TestReplacing:
    def test_what_is_in_the_way_is_not_written_through(self, tmp_path):
        (tmp_path / "precious").write_text("precious")
        for name in ("file", "file.unfinished"):
            (tmp_path / name).symlink_to("precious")
        with states.replacing(tmp_path / "file") as aside:
            aside.write_text("new")
        assert (tmp_path / "file").read_text() == "new"
        assert (tmp_path / "precious").read_text() == "precious"
        assert names(tmp_path) == ["file", "precious"]
