"""Trials in forked processes, two at once: what was imported before, each of them has already."""

import json
import multiprocessing
import os
import signal
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path

from evaluation.mutation import trials
from evaluation.mutation.trials import Trial

AT_ONCE = 2
SECONDS = 300.0  # for one trial; a wrong version that hangs has failed the test that hangs


@dataclass(frozen=True)
class Result:
    """What became of a trial.

    Attributes:
        outcomes: For each test with its parameters: `passed`, `failed`, `not raised` (it failed
            since an error was due), `unfit` (the wrong version could not be called that way),
            `skipped` or `not run`.
        error: Why tests could not be run at all; empty if they could.
    """

    outcomes: dict[str, str]
    error: str = ""


def results_of(queue: Sequence[Trial], seconds: float = SECONDS) -> list[Result]:
    """Runs trials, and returns what became of each."""
    fork = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        folders = [Path(folder, str(number)) for number in range(len(queue))]
        waiting = [
            fork.Process(target=trials.run, args=each) for each in zip(queue, folders, strict=True)
        ]
        for each in folders:
            each.mkdir()
        deadlines: dict[multiprocessing.process.BaseProcess, float] = {}
        try:
            while waiting or deadlines:
                while waiting and len(deadlines) < AT_ONCE:
                    process = waiting.pop(0)
                    process.start()
                    deadlines[process] = time.monotonic() + seconds
                next_deadline = max(0.0, min(deadlines.values()) - time.monotonic())
                ended = wait([process.sentinel for process in deadlines], next_deadline)
                for process, deadline in list(deadlines.items()):
                    if process.sentinel in ended or time.monotonic() >= deadline:
                        end(process)
                        del deadlines[process]
        finally:
            for process in deadlines:
                end(process)
        return [read(each) for each in folders]


def end(process: multiprocessing.process.BaseProcess) -> None:
    """Ends a process and those that it started, as far as they have not ended by themselves."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:  # it has not come to leading a group
        process.kill()
    process.join()


def read(folder: Path) -> Result:
    """Reads what a trial has written."""
    records, log = (
        path.read_text() if path.exists() else "" for path in (folder / "records", folder / "log")
    )
    outcomes: dict[str, str] = {}
    status = None
    for record in map(json.loads, records.splitlines()):
        if "case" in record:
            outcomes[record["case"]] = record["outcome"]
        status = record.get("status", status)
    ran = any(outcome != "not run" for outcome in outcomes.values())
    if ran and status in (None, 0, 1):  # no status: it hung, or crashed, in a test
        return Result(outcomes)
    return Result({}, f"no test was run\n{log}".strip())
