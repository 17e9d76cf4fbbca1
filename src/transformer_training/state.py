"""The state of a run in one file, which is there whole or not at all."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from transformer_layers.gpt2.files.safetensors_file import open_tensors, write_tensors
from transformer_training.config import TrainingError

_NAME = re.compile(r"step-(\d{8})\.safetensors")
_UNFINISHED = ".unfinished"
_RUN = "run"


@dataclass(frozen=True)
class State:
    """What a run goes on from. The rest (order, dropout, learning rate) follows from `step`.

    Attributes:
        step: Steps that were made.
        tensors: The weights, and AdamW's two means of each, whole.
        fixed: The values of the configuration that must be the same, and the texts' fingerprint.
        best: The lowest validation loss so far; None if there was none.
    """

    step: int
    tensors: Mapping[str, Tensor]
    fixed: Mapping[str, Any]
    best: float | None


def save(folder: Path, state: State, keep: int) -> Path:
    """Writes a state aside, gives it its name when it is on the disk, and removes old ones.

    Args:
        folder: Where states are; made if needed.
        state: The state.
        keep: How many files to keep, the last ones.

    Returns:
        The file.

    Raises:
        OSError: If it cannot be written; the others stand.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"step-{state.step:08}.safetensors"
    remarks = {"step": state.step, "fixed": dict(state.fixed), "best": state.best}
    with replacing(path) as aside:
        write_tensors(aside, state.tensors, {_RUN: json.dumps(remarks)})
    for old in _files(folder)[:-keep]:
        old.unlink()
    return path


def load(folder: Path, fixed: Mapping[str, Any]) -> tuple[State | None, list[str]]:
    """Reads the last state that is whole.

    Args:
        folder: Where states are.
        fixed: What the state must have been saved with.

    Returns:
        The state, None where none was saved; and a sentence for each that is damaged.

    Raises:
        TrainingError: If it was saved with other values, or all are damaged.
    """
    damaged: list[str] = []
    files = _files(folder)
    for path in reversed(files):
        try:
            state = _read(path)
        except ValueError as error:
            damaged.append(str(error))
            continue
        differing = [
            f"{name} is {fixed.get(name)!r}, not {value!r}"
            for name, value in state.fixed.items()
            if fixed.get(name) != value
        ]
        if differing:
            raise TrainingError(
                f"{path}: was saved with another configuration: {', '.join(differing)}; give the "
                "same values, or another --out"
            )
        return state, damaged
    if files:
        raise TrainingError(
            f"{folder}: no checkpoint can be read; remove the folder to begin anew. {damaged[0]}"
        )
    return None, damaged


def last_step(folder: Path) -> int:
    """The step of the last state, 0 where none was saved."""
    files = _files(folder)
    return int(_NAME.fullmatch(files[-1].name)[1]) if files else 0  # type: ignore[index]  # they match


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Gives a place to write a file to, which takes its own place when all of it is on the disk.

    Args:
        path: Where it is to be.

    Raises:
        OSError: If it cannot be written; whatever was there stays.
    """
    aside = path.with_name(path.name + _UNFINISHED)
    try:
        yield aside
        with aside.open("rb+") as file:
            os.fsync(file.fileno())
        aside.replace(path)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise OSError(error.errno, f"{path}: cannot be written: {error.strerror}") from error
    if os.name == "posix":
        descriptor = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)  # the name too
        finally:
            os.close(descriptor)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("step-*") if _NAME.fullmatch(path.name))


def _read(path: Path) -> State:
    with open_tensors(path) as (stored, remarks):
        run = json.loads(remarks.get(_RUN, "null"))
        if not isinstance(run, dict):
            raise ValueError(f"{path}: is no checkpoint of a run")
        tensors = {name: each.read() for name, each in stored.items()}
    return State(run["step"], tensors, run["fixed"], run["best"])
