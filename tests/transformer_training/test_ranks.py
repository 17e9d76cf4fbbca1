"""Ranks that share a run: they compute what one process does, and what one saved the other reads.

The ranks are forked as `torchrun` would start them; one test has `torchrun` itself.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore

from tests.transformer_training.processes import (
    assert_close,
    shared,
    wait_for_step,
    without_checkpoints,
)
from transformer_training import TrainingError
from transformer_training.config import TrainingConfig, parse
from transformer_training.ranks import Ranks, _axes
from transformer_training.run import Run, train
from transformer_training.tokens import rows_of_step

pytestmark = pytest.mark.xdist_group("ranks")  # one process has the run to compare with


@pytest.fixture
def thirty(small: list[str]) -> list[str]:
    return [*small, *"--n-head 4 --checkpoint-every 10 --keep 9".split()]


@pytest.fixture(scope="module")
def alone(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One process's run with the options of `thirty`."""
    out = tmp_path_factory.mktemp("alone")
    options = "--steps 30 --batch-size 4 --seq 8 --n-layer 1 --n-head 4 --n-embd 8 --lr 1e-2"
    more = "--vocab-size 260 --checkpoint-every 10 --evaluate-every 10 --keep 9"
    train(parse(["--data", str(text), "--out", str(out), *options.split(), *more.split()]))
    return out


@pytest.mark.parametrize(
    ("size", "options"),
    [(2, ["--parallel", "ddp", "--micro-batch", "1"]), (4, ["--parallel", "fsdp+tp"])],
    ids=["ddp", "fsdp+tp"],
)
def test_ranks_compute_what_one_process_does(thirty, tmp_path, alone, parent, size, options):
    shared(parent, size, thirty, tmp_path / "out", *options)
    assert_close(tmp_path / "out", alone)


def test_a_step_sends_gradients_once(small, tmp_path):
    """One of two ranks under ddp, told by torch that the other one answers."""
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    try:
        ranks = Ranks(0, 2, torch.device("cpu"), "ddp", init_device_mesh("cpu", (2,)))
        options = ["--out", str(tmp_path), "--parallel", "ddp", "--micro-batch", "1"]
        run = Run(parse([*small, *options]), ranks)
        sent = []

        def send(state: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
            sent.append(bucket.buffer().clone())
            done: torch.futures.Future[torch.Tensor] = torch.futures.Future()
            done.set_result(bucket.buffer())
            return done

        run.loss.register_comm_hook(None, send)
        run.next_step()
        assert len(sent) == 1
        assert sent[0].numel() == sum(each.numel() for each in run.model.parameters())
    finally:
        dist.destroy_process_group()


@pytest.mark.parametrize(("first", "then", "size"), [("fsdp", "tp", 2), ("tp", "none", 1)])
def test_what_some_ranks_saved_others_go_on_from(
    thirty, tmp_path, alone, parent, first, then, size
):
    out = tmp_path / "out"
    shared(parent, 2, thirty, out, "--parallel", first)
    without_checkpoints(out, 20, 30)
    shared(parent, size, thirty, out, "--parallel", then)
    assert_close(out, alone)


def test_a_rank_that_is_killed_ends_the_others(thirty, tmp_path, parent):
    command = [*thirty, "--steps", "5000", "--out", str(tmp_path / "out"), "--parallel", "ddp"]
    first, second = parent.ranks(2, command, tmp_path / "said")
    wait_for_step(tmp_path / "out", 25, first)
    second.kill(signal.SIGKILL)
    assert first.wait() == 1
    assert "transformer_training (rank 0): the ranks cannot go on together" in first.said()
    assert second.wait() == -signal.SIGKILL


@pytest.mark.nightly  # what ranks saved others go on from, and torchrun starts them
def test_torchrun_takes_it_up_from_the_last_checkpoint(thirty, tmp_path, alone):
    out = tmp_path / "out"
    # The first time that rank 1 comes to step 16 it is killed.
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys\n"
        "from pathlib import Path\n"
        "from transformer_training.__main__ import main\n"
        "from transformer_training.run import Run\n"
        "step, mark = Run.next_step, Path(sys.argv.pop(1))\n"
        "def lost(self):\n"
        "    if self.step == 15 and self.ranks.rank == 1 and not mark.exists():\n"
        "        mark.touch()\n"
        "        os.kill(os.getpid(), 9)\n"
        "    step(self)\n"
        "Run.next_step = lost\n"
        "sys.exit(main())\n"
    )
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command = [*torchrun, "--nproc-per-node", "2", "--max-restarts", "1", str(program)]
    command += [str(tmp_path / "mark"), *thirty, "--out", str(out), "--parallel", "ddp"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "mark").exists()
    assert "going on after step 10" in done.stdout
    assert_close(out, alone)


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_steps_sequences_are_shared_without_overlap_or_loss(ranks: int):
    rows = rows_of_step(3, 8, rows=100, seed=0)

    class Axis:
        def __init__(self, rank: int) -> None:
            self.get_local_rank = lambda: rank

        def size(self) -> int:
            return ranks

    shares = [
        Ranks(i, ranks, torch.device("cpu"), "ddp", Axis(i)).share(rows) for i in range(ranks)
    ]
    assert torch.cat(shares).equal(rows)
    assert {len(share) for share in shares} == {8 // ranks}
    assert len(set(rows.tolist())) == 8


@pytest.mark.parametrize(
    ("options", "size", "said"),
    [
        ({}, 2, "torchrun started 2 ranks; say how they share the work, with --parallel ddp"),
        ({"parallel": "ddp", "batch_size": 3}, 2, "--batch-size 3 must be a multiple of 2"),
        ({"parallel": "tp", "n_head": 1}, 2, "2 ranks cannot share --n-head 1 evenly; give a mul"),
        ({"parallel": "fsdp+tp"}, 3, "3 ranks cannot be cut into --tensor-ranks 2"),
    ],
)
def test_ranks_that_cannot_share(options, size, said):
    with pytest.raises(TrainingError, match=said):
        _axes(TrainingConfig(data=("a",), out="b", **options), size)
