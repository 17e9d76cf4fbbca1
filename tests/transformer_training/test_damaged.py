"""A run whose files are damaged goes on as if they were not, or says in a sentence why it cannot.

Each kind of file that a run reads again has a flipped bit, and some are cut, gone, or a pipe.
"""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file

from tests.transformer_training.processes import losses
from transformer_training import TrainingError, train
from transformer_training.config import parse
from transformer_training.run import Run

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


def flipped(path: Path) -> None:
    contents = bytearray(path.read_bytes())
    contents[len(contents) // 2] ^= 1
    path.write_bytes(contents)


def gone(path: Path) -> None:
    path.unlink()


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


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
        *((kind, flipped) for kind in _KINDS),
        *((kind, gone) for kind in ("sum", "best", "config", "merges")),
        *(("checkpoint", truncated), ("checkpoint", pipe)),
    ],
)
def test_a_damaged_file(kind, damage, out, options, unbroken, capsys):
    pattern, said = _KINDS[kind]
    (path,) = out.glob(pattern)
    damage(path)
    refused = said if said.endswith(_REFUSED) else None
    config = parse([*options, "--out", str(out)])
    if refused:
        with pytest.raises(TrainingError, match=refused):
            train(config)
        assert len(list(out.glob("checkpoints/*"))) == 2
        return
    train(config)
    assert same(out, unbroken, log=kind != "log")
    printed = capsys.readouterr().out.replace("\n", " ")
    assert re.search(said, printed), printed
    train(config)  # what was said is said once, but for lines that stay lost
    assert kind == "log" or not re.search(said or "anew", capsys.readouterr().out)
    assert len(list(out.rglob("*.damaged"))) <= 1


def test_a_checkpoint_that_was_moved_and_linked(out, options, unbroken, capsys):
    (path,) = out.glob(_KINDS["checkpoint"][0])
    path.symlink_to(path.rename(out / "moved"))
    train(parse([*options, "--out", str(out)]))
    assert same(out, unbroken)
    assert "anew" not in capsys.readouterr().out


@pytest.mark.parametrize("name", ["", "checkpoints"])
def test_a_folder_that_is_none(name, options, tmp_path):
    out = tmp_path / "out"
    if name:
        out.mkdir()
    Path.touch(out / name)
    with pytest.raises(TrainingError, match=rf"{name or 'out'}: must be a folder, and something"):
        train(parse([*options, "--out", str(out)]))
