"""The state of a run in one file, which is there whole or not at all."""

import errno
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from transformer_layers.checkpoints.regular_file import require_regular
from transformer_layers.checkpoints.safetensors_file import (
    DIGEST,
    open_tensors,
    read_all,
    write_tensors,
)
from transformer_training.config import TrainingError

_NAME = re.compile(r"step-(\d{8,})\.safetensors")
_UNFINISHED = ".unfinished"
_DAMAGED = ".damaged"
_RUN = "run"


@dataclass(frozen=True)
class State:
    """What a run goes on from. The rest (order, dropout, learning rate) follows from `step`.

    Attributes:
        step: Steps that were made.
        tensors: The weights, and AdamW's two moments of each, whole.
        fixed: The values of the configuration that must be the same, and the texts' fingerprint.
        best: The lowest validation loss so far; None if there was none.
    """

    step: int
    tensors: Mapping[str, Tensor]
    fixed: Mapping[str, Any]
    best: float | None


def save(folder: Path, state: State, keep: int) -> Path:
    """Writes a state aside, gives it its name when it is on the disk, and removes old ones.

    Files of later steps stay: a run goes on from the last that is whole, so it did not count them.

    Args:
        folder: Where states are; made if needed.
        state: The state.
        keep: How many files to keep, the last ones up to this state's.

    Returns:
        The file.

    Raises:
        OSError: If it cannot be written; the others stand.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / _name(state.step)
    metadata = {"step": state.step, "fixed": dict(state.fixed), "best": state.best}
    with replacing(path) as aside:
        write_tensors(aside, state.tensors, {_RUN: json.dumps(metadata)})
    up_to_this = [each for each in _files(folder) if _step(each) <= state.step]
    for old in up_to_this[:-keep]:
        old.unlink()
    return path


def load(
    folder: Path, fixed: Mapping[str, Any], keeper: bool = True
) -> tuple[State | None, list[str]]:
    """Reads the last state that is whole, and sets aside those after it, which are damaged.

    Args:
        folder: Where states are.
        fixed: What the state must have been saved with.
        keeper: Whether this process is the one that sets files aside.

    Returns:
        The state, None where none was saved; and a sentence for each that is damaged.

    Raises:
        TrainingError: If it was saved with other values, or all are damaged; all stay.
        OSError: If a file cannot be set aside.
    """
    damaged: dict[Path, str] = {}
    for path in reversed(_files(folder)):
        try:
            state = _read(path)
        except (ValueError, OSError) as error:
            damaged[path] = why_not(path, error)
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
        if keeper:
            for each in damaged:
                damaged[each] += f". It is kept as {set_aside(each).name}"
        return state, list(damaged.values())
    if damaged:
        raise TrainingError(
            f"{folder}: no checkpoint can be read; remove the folder to begin anew. "
            f"{next(iter(damaged.values()))}"
        )
    return None, []


def last_step(folder: Path) -> int:
    """The step of the last state, 0 where none was saved."""
    files = _files(folder)
    return _step(files[-1]) if files else 0


def set_aside(path: Path) -> Path:
    """Gives a file that is damaged another name, under which it is in nobody's way.

    Args:
        path: The file, or whatever is in its place.

    Returns:
        Where it is now.

    Raises:
        OSError: If it cannot be moved.
    """
    aside, number = path.with_name(path.name + _DAMAGED), 1
    while os.path.lexists(aside):
        number += 1
        aside = path.with_name(f"{path.name}{_DAMAGED}-{number}")
    return path.rename(aside)


def why_not(path: Path, error: Exception) -> str:
    """Says of a file that cannot be read why it cannot, naming it once."""
    if isinstance(error, OSError) and error.strerror:
        told = error.strerror
        return told if str(path) in told else f"{path}: cannot be read: {told}"
    return str(error)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Gives a place to write a file to, which takes its own place when all of it is on the disk.

    Args:
        path: Where it is to be.

    Raises:
        OSError: If it cannot be written; whatever was there stays.
    """
    aside = path.with_name(path.name + _UNFINISHED)
    for each in (path, aside):
        if each.is_dir() and not each.is_symlink():
            what = "is a folder where a file is to be written; move it away"
            raise IsADirectoryError(errno.EISDIR, f"{each}: {what}")
    try:
        aside.unlink(missing_ok=True)  # through a link, another file would be written
        yield aside
        with aside.open("rb+") as file:
            os.fsync(file.fileno())
        aside.replace(path)
    except BaseException as error:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
        if isinstance(error, OSError):
            what = f"{path}: cannot be written: {error.strerror}"
            raise OSError(error.errno, what) from error
        raise
    if os.name == "posix":
        descriptor = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)  # the name too
        finally:
            os.close(descriptor)


def _name(step: int) -> str:
    return f"step-{step:08}.safetensors"


def _step(path: Path) -> int:
    found = _NAME.fullmatch(path.name)
    return int(found[1]) if found else 0


def _files(folder: Path) -> list[Path]:
    """Whatever is called like a state, in the order of the steps."""
    return sorted((path for path in folder.glob("step-*") if _NAME.fullmatch(path.name)), key=_step)


def _read(path: Path) -> State:
    require_regular(path)
    with open_tensors(path) as (stored, metadata):
        if not {_RUN, DIGEST} <= metadata.keys():
            raise ValueError(f"{path}: is no checkpoint of a run")
        tensors = read_all(stored, metadata, path)
    run = json.loads(metadata[_RUN])
    if path.name != _name(run["step"]):
        raise ValueError(f"{path}: is the state of step {run['step']}, and has another's name")
    return State(run["step"], tensors, run["fixed"], run["best"])
