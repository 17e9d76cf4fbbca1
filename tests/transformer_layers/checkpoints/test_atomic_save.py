"""Saving, with kills, a full disk, others that save, and others that read."""

import errno
import itertools
import os
import re
import threading
import time
from functools import partial
from pathlib import Path

import pytest
import torch

from tests.transformer_layers.checkpoints.savers import (
    killed_at_each_step,
    needs_fork,
    saver,
    stepped,
)
from transformer_layers import GPT2Config
from transformer_layers.checkpoints import checkpoint
from transformer_layers.checkpoints.atomic_save import (
    CHECKPOINT,
    TOKENIZER,
    left_behind,
    saving,
)
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


def save_without_end(folder):
    for which in itertools.cycle(range(len(CONFIGS))):
        save(folder, which)


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


@needs_fork
def test_a_load_at_any_step_of_a_save_is_of_one_model(tmp_path):
    save(tmp_path, 0)
    found = [loaded(tmp_path) for _ in stepped(tmp_path, save, tmp_path, 1)]
    assert found == sorted(found)
    assert set(found) == {0, 1}
    assert loaded(tmp_path) == 1


@needs_fork
def test_a_save_at_any_step_of_a_load_leaves_it_one_model(tmp_path):
    for first in itertools.count(1):
        save(tmp_path, 0)
        steps = 0
        for steps in stepped(tmp_path, loaded, tmp_path):
            if steps in (first, first + 1):  # a second one while it reads again
                save(tmp_path, 1 + steps - first)
        if steps < first:
            break
    assert first > 2


@needs_fork
def test_two_savers_do_not_mix(tmp_path):
    with saver(save_without_end, tmp_path), saver(save_without_end, tmp_path):
        time.sleep(0.5)
    loaded(tmp_path)


def test_threads_that_save_do_not_mix(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)
    threads = [threading.Thread(target=save, args=(tmp_path, i % 3)) for i in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    loaded(tmp_path)
    assert names(tmp_path) == BOTH


# What others left


def test_what_a_process_left_is_removed_and_nothing_else(tmp_path):
    left = tmp_path / ".unfinished-abcdefgh"
    left.mkdir()
    for name in ("model.safetensors", "config.json", "vocab.json", "merges.txt"):
        (left / name).write_text("half")
    mine = tmp_path / ".unfinished-business"
    mine.mkdir()
    (mine / "thoughts.txt").write_text("whole")
    (tmp_path / ".unfinished-file").touch()
    save(tmp_path, 0)
    assert names(tmp_path) == [".unfinished-business", ".unfinished-file", *BOTH]
    assert names(mine) == ["thoughts.txt"]


FOUR = ["config.json", "merges.txt", "model.safetensors", "vocab.json"]


def of_somebody(folder):
    """A folder of somebody's, with files of the names that we write."""
    folder.mkdir()
    for name in FOUR:
        (folder / name).write_text("mine")
    return folder


@pytest.mark.parametrize("saved", ["a checkpoint", "a tokenizer"])
def test_nothing_that_a_link_leads_to_is_touched(tmp_path, saved):
    other, folder = of_somebody(tmp_path / "other"), tmp_path / "folder"
    folder.mkdir()
    (folder / ".unfinished-x").symlink_to(other, target_is_directory=True)
    inner = folder / ".unfinished-abcdefgh"
    inner.mkdir()
    (inner / "config.json").symlink_to(other / "config.json")
    (inner / "model.safetensors").symlink_to(other, target_is_directory=True)
    if saved == "a checkpoint":
        save(folder, 0)
    else:
        with saving(folder, TOKENIZER) as unfinished:
            for name in TOKENIZER:
                (unfinished / name).write_text("new")
    assert {path.name: path.read_text() for path in other.iterdir()} == dict.fromkeys(FOUR, "mine")
    assert (folder / ".unfinished-x").readlink() == other
    assert names(inner) == BOTH
    assert left_behind(folder, CHECKPOINT) == []


def test_a_folder_with_anything_that_is_not_ours_stays_as_it_is(tmp_path):
    one, another = (of_somebody(tmp_path / f".unfinished-{name}") for name in ("one", "another"))
    (one / "thoughts.txt").touch()
    (another / "vocab.json").unlink()
    (another / "vocab.json").mkdir()
    save(tmp_path, 0)
    assert names(one) == sorted([*FOUR, "thoughts.txt"])
    assert names(another) == FOUR


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
    other, folder = of_somebody(tmp_path / "other"), tmp_path / "folder"
    folder.mkdir()
    for name in BOTH:
        (folder / name).symlink_to(other / name)
    save(folder, 0)
    assert loaded(folder) == 0
    assert {path.name: path.read_text() for path in other.iterdir()} == dict.fromkeys(FOUR, "mine")


def test_what_another_is_writing_is_not_removed(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    lock, refused = fcntl.flock, []

    def locked(descriptor, operation):
        if operation == fcntl.LOCK_EX and entered.is_set():  # the second one
            with pytest.raises(BlockingIOError) as caught:
                lock(descriptor, operation | fcntl.LOCK_NB)
            refused.append(caught.value)
            (unfinished,) = tmp_path.glob(".unfinished-*")
            assert names(unfinished) == BOTH
            leave.set()
        lock(descriptor, operation)

    def slow():
        with saving(tmp_path, CHECKPOINT) as unfinished:
            for name in CHECKPOINT:
                (unfinished / name).write_text("slow")
            entered.set()
            leave.wait()

    monkeypatch.setattr(fcntl, "flock", locked)
    entered, leave = threading.Event(), threading.Event()
    first = threading.Thread(target=slow, daemon=True)
    first.start()
    entered.wait()
    try:
        save(tmp_path, 0)  # it waits for the first one
    finally:
        leave.set()
        first.join()
    assert len(refused) == 1
    assert loaded(tmp_path) == 0
    assert names(tmp_path) == BOTH


def test_where_there_are_no_locks_nothing_of_others_is_removed(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    left = tmp_path / ".unfinished-abcdefgh"
    left.mkdir()
    (left / "model.safetensors").touch()
    save(tmp_path, 0)
    assert loaded(tmp_path) == 0
    assert names(tmp_path) == [".unfinished-abcdefgh", *BOTH]


def test_only_a_second_file_without_the_first_was_left_behind(tmp_path):
    for name, files in (("a", ["config.json"]), ("b", BOTH), ("c", ["model.safetensors"])):
        (tmp_path / f".unfinished-{name}").mkdir()
        for file in files:
            (tmp_path / f".unfinished-{name}" / file).touch()
    assert left_behind(tmp_path, CHECKPOINT) == [tmp_path / ".unfinished-a" / "config.json"]


# Disks


def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch):
    save(tmp_path, 0)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    calls = itertools.count()

    def full(whole, at):
        def flush_or_fail(*args):
            if next(calls) == at:
                raise OSError(errno.ENOSPC, "No space left on device")
            return whole(*args)

        return flush_or_fail

    message = (
        f"{tmp_path / 'model.safetensors'} and config.json cannot be written: "
        "[Errno 28] No space left on device"
    )
    for at in range(2):
        calls = itertools.count()
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full(os.fsync, at))
            with pytest.raises(OSError, match=re.escape(message)) as caught:
                save(tmp_path, 1)
        assert caught.value.errno == errno.ENOSPC
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


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


# No folder
