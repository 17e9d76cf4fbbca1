"""Saving: with kills, and with what others have left in the folder."""

import os
import re
from functools import partial
from pathlib import Path

import pytest
import torch

from tests.transformer_layers.checkpoints.savers import (
    killed_at_each_step,
    needs_fork,
)
from transformer_layers import GPT2Config
from transformer_layers.checkpoints import checkpoint
from transformer_layers.models.gpt2.checkpoint import CODEC, weight_shapes

read_checkpoint = partial(checkpoint.read_checkpoint, CODEC)
write_checkpoint = partial(checkpoint.write_checkpoint, CODEC)

# The weights of one fit the config of the other: only the heads and the epsilon differ.
CONFIGS = [
    GPT2Config(vocab_size=5, n_positions=3, n_embd=4, n_layer=2, n_head=heads, dropout=share)
    for heads, share in ((1, 0.0), (2, 0.1), (4, 0.2))
]


def weights_of(which):
    """Made without a model on the meta device, which takes a new process seconds."""
    generator = torch.Generator().manual_seed(which)
    shapes = weight_shapes(CONFIGS[which])
    return {key: torch.randn(shape, generator=generator) for key, shape in shapes}


def save(folder, which):
    write_checkpoint(folder, CONFIGS[which], weights_of(which))


def loaded(folder):
    """Which of the models is in the folder; it must be one of them, whole."""
    config, weights = read_checkpoint(folder)
    which = CONFIGS.index(config)
    assert all(torch.equal(weights[key], each) for key, each in weights_of(which).items())
    return which


def names(folder):
    return sorted(path.name for path in folder.iterdir())


BOTH = ["config.json", "model.safetensors"]


# Kills


@needs_fork
def test_a_kill_at_any_step_leaves_a_whole_model(tmp_path):
    found = []
    for step in killed_at_each_step(tmp_path, save, tmp_path, 1):
        found.append(loaded(tmp_path) if (tmp_path / "config.json").exists() else None)
        save(tmp_path, 0)
        assert loaded(tmp_path) == 0
        assert names(tmp_path) == BOTH, f"what step {step} left is still there"
    # Before the new weights are in their place, and after it.
    assert found == sorted(found, key=[None, 0, 1].index)
    assert found.count(0) > 5
    assert found.count(1) > 3


# What others left


def test_what_a_process_left_is_removed_and_nothing_else(tmp_path):
    left = tmp_path / ".unfinished-abcdefgh"
    left.mkdir()
    for name in ("model.safetensors", "config.json"):
        (left / name).write_text("half")
    mine = tmp_path / ".unfinished-business"
    mine.mkdir()
    (mine / "thoughts.txt").write_text("whole")
    (tmp_path / ".unfinished-file").touch()
    save(tmp_path, 0)
    assert names(tmp_path) == [".unfinished-business", ".unfinished-file", *BOTH]
    assert names(mine) == ["thoughts.txt"]


@pytest.mark.parametrize("name", BOTH)
def test_a_folder_in_the_place_of_a_file_is_refused_before_anything_is_replaced(tmp_path, name):
    save(tmp_path, 0)
    (tmp_path / name).unlink()
    (tmp_path / name).mkdir()
    (other,) = set(BOTH) - {name}
    before = (tmp_path / other).read_bytes()
    message = f"{tmp_path / 'model.safetensors'} and config.json cannot be written: "
    with pytest.raises(OSError, match=f"{re.escape(message)}.*{re.escape(name)} is a folder"):
        save(tmp_path, 1)
    assert (tmp_path / other).read_bytes() == before
    assert names(tmp_path) == BOTH


def test_a_link_in_the_place_of_a_file_is_replaced_and_not_followed(tmp_path):
    other, folder = tmp_path / "other", tmp_path / "folder"
    for each in (other, folder):
        each.mkdir()
    for name in BOTH:
        (other / name).write_text("mine")
        (folder / name).symlink_to(other / name)
    save(folder, 0)
    assert loaded(folder) == 0
    assert {path.read_text() for path in other.iterdir()} == {"mine"}


# Disks


def test_files_are_on_the_disk_before_they_take_their_places(tmp_path, monkeypatch):
    done = []
    sync, replace = os.fsync, os.replace

    def fsync(descriptor):
        done.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        sync(descriptor)

    def moved(source, target):
        done.append(f"{Path(target).name} in place")
        replace(source, target)

    if not Path("/proc/self/fd").exists():
        pytest.skip("no names of open files")
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", moved)
    save(tmp_path, 0)
    assert done == [
        "model.safetensors",
        "config.json",
        "model.safetensors in place",
        "config.json in place",
        tmp_path.name,
    ]
