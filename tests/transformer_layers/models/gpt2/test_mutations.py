"""What may lie in the place of a file: it is refused by its name, or read as what was there."""

import errno
import os
import random
import shutil
import signal
from functools import partial
from pathlib import Path

import pytest
import torch

from tests.transformer_layers import memory
from tests.transformer_layers.checkpoints.examples import random_weights, write_shards
from transformer_layers import GPT2Config
from transformer_layers.checkpoints import checkpoint
from transformer_layers.models.gpt2.checkpoint import CODEC
from transformer_layers.tokenizers import tokenizer
from transformer_layers.tokenizers.load import load_tokenizer
from transformer_layers.tokenizers.tokenizer import train_tokenizer

read_checkpoint = partial(checkpoint.read_checkpoint, CODEC)
write_checkpoint = partial(checkpoint.write_checkpoint, CODEC)

CONFIG = GPT2Config(vocab_size=3, n_positions=2, n_embd=2, n_layer=1, n_head=1)


# A table of file and damage.


def some_of(content, rng):
    return content[: rng.randrange(1, len(content))]


def with_a_bit_flipped(content, rng):
    content = bytearray(content)
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    return bytes(content)


def rewritten(change):
    def damage(path, rng):
        path.write_bytes(change(path.read_bytes(), rng))

    return damage


def linked(path, _):
    elsewhere = path.parent.parent / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def replaced(make):
    def damage(path, _):
        path.unlink()
        make(path)

    return damage


def hollow(path):
    with path.open("wb") as file:
        file.truncate(2**30)  # a gigabyte of zeros, which takes no room


def closed(path):
    """What may not be read: a mark for `unreadable`, since root may read everything."""
    path.write_bytes(b"closed")


DAMAGES = {
    **{f"truncated {i}": rewritten(some_of) for i in range(2)},
    **{f"a bit flipped {i}": rewritten(with_a_bit_flipped) for i in range(4)},
    "empty": rewritten(lambda *_: b""),
    "binary": rewritten(lambda _, rng: rng.randbytes(5000)),
    "a link": linked,
    "a dangling link": replaced(lambda path: path.symlink_to(path.parent / "nothing")),
    "a loop of links": replaced(lambda path: path.symlink_to(path)),
    "a folder": replaced(Path.mkdir),
    "a pipe": replaced(os.mkfifo) if hasattr(os, "mkfifo") else replaced(Path.mkdir),
    "a gigabyte of zeros": replaced(hollow),
    "unreadable": replaced(closed),
}
# Files of others have no digest: a flipped bit gives other weights, or another number of heads.
UNSEEN = {"shards/config.json", "shards/model-00002-of-00002.safetensors"}


def same_checkpoint(a, b):
    return a[0] == b[0] and all(torch.equal(a[1][key], b[1][key]) for key in b[1])


def same_tokenizer(a, b):
    return (a._vocab, a._merges) == (b._vocab, b._merges)


HOSTILE = {
    "ours/config.json": (read_checkpoint, same_checkpoint),
    "ours/model.safetensors": (read_checkpoint, same_checkpoint),
    "shards/config.json": (read_checkpoint, same_checkpoint),
    "shards/model.safetensors.index.json": (read_checkpoint, same_checkpoint),
    "shards/model-00002-of-00002.safetensors": (read_checkpoint, same_checkpoint),
    "tokenizer/vocab.json": (load_tokenizer, same_tokenizer),
    "tokenizer/merges.txt": (load_tokenizer, same_tokenizer),
}


@pytest.fixture
def unreadable(monkeypatch):
    """Files that are marked as closed cannot be opened."""
    opening = os.open

    def open_unless_closed(path, *args, **options):
        if Path(path).is_file() and Path(path).stat().st_size == len(b"closed"):
            raise PermissionError(errno.EACCES, "Permission denied", os.fspath(path))
        return opening(path, *args, **options)

    monkeypatch.setattr(os, "open", open_unless_closed)


@pytest.fixture
def no_hang():
    """Ends what waits for ever, such as for somebody to write into a pipe."""

    def tell(*_):
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, tell) if hasattr(signal, "SIGALRM") else None
    if before is not None:
        signal.alarm(120)
    yield
    if before is not None:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("as_users_run_it", "unreadable", "no_hang")
@pytest.mark.parametrize("file", HOSTILE)
def test_whatever_lies_in_a_files_place_is_refused_by_its_name_or_right(
    tmp_path, monkeypatch, file
):
    monkeypatch.setattr(tokenizer, "PAUSES", (0.0,))
    monkeypatch.setattr(checkpoint, "PAUSES", (0.0,))
    load, same = HOSTILE[file]
    folder, name = (tmp_path / file).parent, (tmp_path / file).name
    if load is load_tokenizer:
        train_tokenizer(["low lower lowest, it's newer"], 270).save(folder)
    elif folder.name == "ours":
        write_checkpoint(folder, CONFIG, random_weights(CONFIG))
    else:
        write_shards(folder, random_weights(CONFIG), config=CONFIG)
    whole = load(folder)
    keep = tmp_path / "keep"
    shutil.copytree(folder, keep)
    before, wrong = memory.peak(), []
    for seed, (damage, make) in enumerate(DAMAGES.items()):
        shutil.rmtree(folder)
        shutil.copytree(keep, folder)
        make(folder / name, random.Random(seed))
        try:
            found = load(folder)
        except (ValueError, OSError) as error:
            said = str(error)
            if str(folder) not in said or "\n" in said or len(said) > 1000:
                wrong.append((damage, said[:1000]))
        except BaseException as error:
            wrong.append((damage, repr(error)[:1000]))
        else:
            if not same(found, whole) and not (file in UNSEEN and "flipped" in damage):
                wrong.append((damage, "another"))
    assert not wrong
    assert memory.peak() - before < 300 * 2**20
