"""What the process that clears up does with the reports of its owner."""

import io
from pathlib import Path

import pytest

from verified_book.kernels import reaper


@pytest.mark.parametrize(
    ("reports", "killed"),
    [
        (b"", []),
        (b"+12\n+34\n-12\n", [34]),
        (b"+12\n+345", [12]),
    ],
)
def test_the_kernels_that_still_run_are_ended_and_the_folder_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reports: bytes, killed: list[int]
):
    ended: list[int] = []
    monkeypatch.setattr(reaper, "kill_group", ended.append)
    folder = tmp_path / "runtime_dir"
    (folder / "ipython").mkdir(parents=True)
    reaper.keep_watch(io.BytesIO(reports), str(folder))
    assert ended == killed
    assert not folder.exists()
    reaper.keep_watch(io.BytesIO(reports), str(folder))
