"""A run whose files are damaged goes on as if they were not, or says in a sentence why it cannot.

Each kind of file that a run reads again meets two kinds of damage, and one of them each kind.
"""

import os
import random
import re
import shutil
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.transformer_training.processes import losses
from transformer_training import TrainingConfig, TrainingError, train
from transformer_training.config import parse
from transformer_training.ranks import Ranks
from transformer_training.run import Run
from transformer_training.tokens import prepare

_GIGABYTE = 1 << 30
_LAST = "checkpoints/step-00000010.safetensors"


pytestmark = pytest.mark.usefixtures("ended_if_it_waits")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    estimate = sys.modules[
        "transformer_training.estimate"
    ]  # the package has a function of this name
    monkeypatch.setattr(estimate, "_speed", lambda *_: 1e9)  # a twentieth of a second


@pytest.fixture(scope="module")
def options(text: Path) -> list[str]:
    sizes = "--steps 12 --batch-size 2 --seq 8 --n-layer 1 --n-head 2 --n-embd 4 --lr 1e-2"
    more = "--vocab-size 260 --checkpoint-every 5 --evaluate-every 5 --dropout 0.1"
    return ["--data", str(text), *sizes.split(), *more.split()]


@pytest.fixture(scope="module")
def unbroken(options: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("unbroken")
    train(parse([*options, "--out", str(out)]))
    return out


@pytest.fixture(scope="module")
def lost(options: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was lost after step 11: checkpoints of 5 and 10."""
    out = tmp_path_factory.mktemp("lost")
    step = Run.next_step

    def ended(self: Run) -> None:
        if self.step == 11:
            raise KeyboardInterrupt
        step(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "next_step", ended)
        with pytest.raises(KeyboardInterrupt):
            train(parse([*options, "--out", str(out)]))
    return out


@pytest.fixture
def out(lost: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(lost, tmp_path / "out"))


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def emptied(path: Path) -> None:
    os.truncate(path, 0)


def flipped(path: Path, draws: random.Random | None = None) -> None:
    contents = bytearray(path.read_bytes())
    place = draws.randrange(8 * len(contents)) if draws else 4 * len(contents)
    contents[place // 8] ^= 1 << place % 8
    path.write_bytes(contents)


def no_text(path: Path) -> None:
    path.write_bytes(b"\xff\xfe" * 400)


def zeros(path: Path) -> None:
    os.truncate(path, 0)
    os.truncate(path, _GIGABYTE)


def gone(path: Path) -> None:
    path.unlink()


def leading_nowhere(path: Path) -> None:
    path.unlink()
    path.symlink_to("nothing")


def unreadable(path: Path) -> None:
    """A mode would not keep the superuser out."""
    path.unlink()
    path.symlink_to("/proc/self/mem")


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def link(path: Path) -> None:
    moved = path.rename(path.with_name("moved-" + path.name))
    path.symlink_to(moved)


_DAMAGES = (
    *(truncated, emptied, flipped, no_text, zeros, gone),
    *(leading_nowhere, unreadable, folder, pipe, device),
)
_ANEW = r"tokens-\w+\.(bin|sum).*; the tokens are encoded anew"
_REFUSED = r"is not there as the run wrote it; remove the folder \S+tokens, and .* is made anew"
_KINDS = {  # where the file is, and what is said of it
    "checkpoint": ("checkpoints/step-00000010.*", "left out: .*step-00000010.*g on after step 5"),
    "tokens": ("tokens/tokens-*.bin", _ANEW),
    "sum": ("tokens/tokens-*.sum", _ANEW),
    "log": ("log.jsonl", r"log\.jsonl: .*has no whole line of step"),
    "best": ("best/model.safetensors", "best.*; the best model from here on is kept in .*best"),
    "config": ("config.toml", ""),  # which is written only
    "seal": ("tokens/made-of.txt", f"made-of.txt: {_REFUSED}"),
    "merges": ("tokens/merges.txt", f"merges.txt: {_REFUSED}"),
    "vocabulary": ("tokens/vocab.json", f"vocab.json: {_REFUSED}"),
}
# A folder may hold anything, so it is not replaced.
_FOLDERS = dict.fromkeys(("tokens", "sum", "config"), "is a folder where a file is to be written")
_SILENT = {("checkpoint", gone), ("tokens", gone)}  # nothing there is nothing damaged


def same(left: Path, right: Path, log: bool = True) -> bool:
    """Whether two runs ended with the same weights, and logged the same losses."""
    name = "final/model.safetensors"
    alike = (left / name).read_bytes() == (right / name).read_bytes()
    last = "checkpoints/step-00000012.safetensors"
    states_alike = all(
        each.equal(load_file(right / last)[key]) for key, each in load_file(left / last).items()
    )
    return alike and states_alike and (not log or losses(left) == losses(right))


@pytest.mark.parametrize(
    ("kind", "damage"),
    [
        *((kind, damage) for kind in _KINDS for damage in (flipped, gone)),
        *(("checkpoint", damage) for damage in _DAMAGES if damage not in (flipped, gone)),
        *(("config", folder), ("tokens", folder), ("sum", folder)),
    ],
)
def test_a_damaged_file(kind, damage, out, options, unbroken, capsys):
    pattern, said = _KINDS[kind]
    (path,) = out.glob(pattern)
    damage(path)
    refused = said if said.endswith(_REFUSED) else None
    if damage is folder:
        refused = _FOLDERS.get(kind, refused)
    config = parse([*options, "--out", str(out)])
    if refused:
        with pytest.raises((TrainingError, OSError), match=refused):
            train(config)
        assert len(list(out.glob("checkpoints/*"))) == 2
        return
    train(config)
    assert same(out, unbroken, log=kind != "log")
    printed = capsys.readouterr().out.replace("\n", " ")
    assert (kind, damage) in _SILENT or re.search(said, printed), printed
    train(config)  # what was said is said once, but for lines that stay lost
    assert kind == "log" or not re.search(said or "anew", capsys.readouterr().out)
    assert len(list(out.rglob("*.damaged"))) <= 1


@pytest.mark.parametrize("kind", ["checkpoint", "tokens", "log"])
def test_a_file_that_was_moved_and_linked(kind, out, options, unbroken, capsys):
    (path,) = out.glob(_KINDS[kind][0])
    path.symlink_to(path.rename(out / "moved"))
    train(parse([*options, "--out", str(out)]))
    assert same(out, unbroken)
    assert "anew" not in capsys.readouterr().out


@pytest.mark.parametrize("name", ["", "tokens", "checkpoints", "best", "final"])
def test_a_folder_that_is_none(name, options, tmp_path):
    out = tmp_path / "out"
    if name:
        out.mkdir()
    Path.touch(out / name)
    with pytest.raises(TrainingError, match=rf"{name or 'out'}: must be a folder, and something"):
        train(parse([*options, "--out", str(out)]))


@pytest.mark.parametrize("kind", ["checkpoint", "tokens"])
def test_any_bit_of_a_file(kind, lost, out, options, capsys):
    """What is taken up is as it was, or it is said that it is not."""
    draws = random.Random(kind)
    unsaid = []
    for trial in range(10):
        shutil.rmtree(out)
        shutil.copytree(lost, out)
        (path,) = out.glob(_KINDS[kind][0])
        flipped(path, draws)
        capsys.readouterr()
        try:
            said = taken_up(parse([*options, "--out", str(out)]), lost, capsys)
        except TrainingError as error:
            said = str(error)
        if not re.search(_KINDS[kind][1], said.replace("\n", " ")):
            unsaid.append((trial, said))
    assert unsaid == []


def taken_up(config: TrainingConfig, lost: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Goes on with a run, up to its first step, and sees where it is; what it said."""
    run = Run(config, Ranks(0, 1, torch.device("cpu")))
    try:
        run.go_on()
        checkpoint = load_file(lost / f"checkpoints/step-{run.step:08}.safetensors")
        for name, part in run._parts():
            assert part.equal(checkpoint[name])
        whole = prepare(config, lost / "tokens")
        assert run.tokens.train.equal(whole.train)
        said = capsys.readouterr().out
        if "has no whole line of" not in said:
            lines = (lost / "log.jsonl").read_text().splitlines()
            assert (run.out / "log.jsonl").read_text().splitlines() == lines[: run.step]
        return said
    finally:
        run.close()
