"""Runs of training in processes of their own, which can be killed.

Importing torch takes seconds, so a process that has done so is forked for each run.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

# Sums of float32 in another order differ by some 2**-24 of their size, 5.6 here. AdamW divides a
# gradient by its own size, so that where one is nearly 0 the weights may part by a share of a
# learning rate of 0.01; 30 steps have been seen to part by 1e-6, and wrong shares by 1e-2.
TOLERANCE = 3e-5

LIMIT = 600  # seconds; a run takes one or two, and longer on a machine that is busy

_PARENT = """
import json, os, sys, time
from torch.distributed import TCPStore
import torch._dynamo  # the first optimizer imports it
import transformer_training.run
from transformer_training.__main__ import main

def run(request):
    output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for descriptor in (1, 2):
        os.dup2(output, descriptor)
    os.environ.update(request["environment"])
    sys.argv[1:] = request["arguments"]
    exec(request["before"], {})
    try:
        status = main()
    except SystemExit as error:
        status = error.code
    except BaseException:
        import traceback
        traceback.print_exc()
        status = 70
    sys.stdout.flush()
    os._exit(status)

def meeting_place():
    # A process of its own: what is forked from the one with the store's threads
    # can wait for ever for a lock that a thread held. It ends with the parent.
    (alive, held), (port, said) = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.close(held)
        store = TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
        os.write(said, str(store.port).encode())
        os.close(said)
        os.read(alive, 1)
        os._exit(0)
    os.close(alive)
    os.close(said)
    with os.fdopen(port) as file:
        return int(file.read())

for line in sys.stdin:
    request = json.loads(line)
    if "store" in request:
        answer = meeting_place()
    elif "wait" in request:
        end = time.monotonic() + request["limit"]
        done, status = 0, 0
        while not done and time.monotonic() < end:
            done, status = os.waitpid(request["wait"], os.WNOHANG)
            time.sleep(0.005)
        answer = os.waitstatus_to_exitcode(status) if done else None
    else:
        answer = os.fork()
        if answer == 0:
            run(request)
    print(json.dumps(answer), flush=True)
"""


@dataclass
class Process:
    """A run in a process of its own."""

    parent: "Parent"
    pid: int
    output: Path

    def wait(self, limit: float = LIMIT) -> int:
        """Its status, negative for a signal."""
        status = self.parent.ask({"wait": self.pid, "limit": limit})
        if status is None:
            os.kill(self.pid, signal.SIGKILL)
            self.parent.ask({"wait": self.pid, "limit": LIMIT})
            raise AssertionError(f"still running after {limit} s: {self.said()}")
        return status

    def kill(self, number: int = signal.SIGKILL) -> None:
        os.kill(self.pid, number)

    def said(self) -> str:
        return self.output.read_text(encoding="utf-8")


class Parent:
    """The process that has torch loaded."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PARENT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    def ask(self, request: Mapping[str, Any]) -> Any:
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    def start(
        self,
        arguments: Sequence[str],
        output: Path,
        environment: Mapping[str, str] | None = None,
        before: str = "",
    ) -> Process:
        """Starts `python -m transformer_training`; `before` is what the process does first."""
        request = {
            "arguments": list(arguments),
            "output": str(output),
            "environment": dict(environment or {}),
            "before": before,
        }
        return Process(self, self.ask(request), output)

    def ranks(
        self, size: int, arguments: Sequence[str], outputs: Path, before: str = ""
    ) -> list[Process]:
        """Starts ranks as `torchrun` would, without the process that watches them.

        They meet where a process listens already: a port that they would open can be taken.
        """
        port = str(self.ask({"store": True}))
        common = {"WORLD_SIZE": str(size), "MASTER_ADDR": "localhost", "MASTER_PORT": port}
        common["TORCHELASTIC_USE_AGENT_STORE"] = "True"
        return [
            self.start(
                arguments,
                outputs.with_suffix(f".{rank}"),
                {**common, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                before,
            )
            for rank in range(size)
        ]

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def shared(
    parent: Parent,
    size: int,
    options: Sequence[str],
    out: Path,
    *more: str,
    before: str = "",
) -> None:
    """Runs ranks to their end, which must be a good one."""
    outputs = out.parent / f"{out.name}-said-{time.monotonic_ns()}"
    processes = parent.ranks(size, [*options, "--out", str(out), *more], outputs, before)
    statuses = [process.wait() for process in processes]
    said = "\n----\n".join(process.said()[-3000:] for process in processes)
    assert statuses == [0] * size, said


def without_checkpoints(out: Path, *steps: int) -> None:
    for step in steps:
        (out / "checkpoints" / f"step-{step:08}.safetensors").unlink()


def assert_close(left: Path, right: Path, atol: float = 10 * TOLERANCE) -> None:
    """Two runs logged the same losses and ended with the same weights, but for rounding."""
    torch.testing.assert_close(losses(left), losses(right), rtol=0, atol=TOLERANCE)
    # A bias of keys moves all scores of a query alike, which the softmax takes out again. Its
    # gradient is rounding, which Adam divides by the root of its square.
    ours, theirs = (
        {
            name: each
            for name, each in load_file(out / "final/model.safetensors").items()
            if not name.endswith("k_proj.bias")
        }
        for out in (left, right)
    )
    torch.testing.assert_close(ours, theirs, rtol=0, atol=atol)


def losses(out: Path) -> list[float]:
    """The losses in a run's log, whose lines must be those of its steps."""
    lines = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(1, len(lines) + 1))
    return [line["loss"] for line in lines]


def wait_for_step(out: Path, step: int, process: Process) -> None:
    """Waits until a run's log has a step."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        log = out / "log.jsonl"
        if log.is_file() and f'"step": {step},' in log.read_text():
            return
        time.sleep(0.002)
    raise AssertionError(f"never came to step {step}: {process.said()}")
