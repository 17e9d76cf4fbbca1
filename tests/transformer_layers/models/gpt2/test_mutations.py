"""Ten thousand damaged checkpoints, and what else may lie in the place of a file.

Each is refused in words, or read as exactly what it holds.

Every mutation draws from a generator with a fixed seed, so that a failure can be made again: the
message has the number of the mutation, which is its seed.
"""

import copy
import errno
import json
import os
import random
import shutil
import signal
import struct
import sys
from collections import Counter
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import torch

from tests.transformer_layers import memory
from tests.transformer_layers.checkpoints.examples import random_weights, write_folder, write_shards
from transformer_layers import GPT2Config
from transformer_layers.checkpoints import checkpoint
from transformer_layers.models.gpt2.checkpoint import CODEC, weight_shapes
from transformer_layers.tokenizers import tokenizer
from transformer_layers.tokenizers.load import load_tokenizer
from transformer_layers.tokenizers.tokenizer import train_tokenizer

read_checkpoint = partial(checkpoint.read_checkpoint, CODEC)
write_checkpoint = partial(checkpoint.write_checkpoint, CODEC)

CALLS = 100_000  # of one reading
CONFIG = GPT2Config(vocab_size=3, n_positions=2, n_embd=2, n_layer=1, n_head=1)
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16}
DTYPES["BF16"] = torch.bfloat16

VALUES = [
    *(None, True, False, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 2.0, 0.5, -0.0, 1e400, float("nan")),
    *(2**31 - 1, 2**31, 2**63, 2**64, -(2**63), 10**30, 10**4000, "", "2", "gpt2", "gelu", "é"),
    *("../model.safetensors", "\0", "\ud800", "x" * 300, [], [1], [[2]], {}, {"a": 1}, {"0": [0]}),
]


# The mutations of bytes: each takes the content of a file and gives another.


def flip_anywhere(content, rng):
    content = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        content[rng.randrange(len(content))] ^= rng.randint(1, 255)
    return bytes(content)


def flip_in_data(content, rng):
    content = bytearray(content)
    start = 8 + struct.unpack("<Q", content[:8])[0]
    for _ in range(rng.randint(1, 4)):
        content[rng.randrange(start, len(content))] ^= rng.randint(1, 255)
    return bytes(content)


def truncate(content, rng):
    return content[: rng.randrange(len(content))]


def insert(content, rng):
    at = rng.randint(0, len(content))
    return content[:at] + rng.randbytes(rng.choice([1, 2, 4, 8, 100])) + content[at:]


def delete(content, rng):
    at = rng.randrange(len(content))
    return content[:at] + content[at + rng.choice([1, 2, 4, 8, 100]) :]


def duplicate(content, rng):
    a, b = sorted(rng.randrange(len(content)) for _ in range(2))
    return content[:b] + content[a:b] + content[b:]


def change_length(content, rng):
    length = struct.unpack("<Q", content[:8])[0]
    small = rng.randint(-16, 16)
    new = rng.choice([length + small, abs(small), 2 ** rng.randint(0, 63), rng.getrandbits(64)])
    return struct.pack("<Q", new) + content[8:]


# The mutations of JSON: the text stays JSON, mostly, and the length before it stays right.


def places(value, found=None):
    """Every place in a JSON value, as the container and the key or index in it."""
    found = [] if found is None else found
    keys = value.keys() if isinstance(value, dict) else range(len(value))
    for key in keys:
        found.append((value, key))
        if isinstance(value[key], dict | list):
            places(value[key], found)
    return found


def edit_json(text, rng):
    value = json.loads(text)
    for _ in range(rng.randint(1, 2)):
        container, key = rng.choice(places(value))
        other_container, other = rng.choice(places(value))
        edit = rng.choice(["replace", "add", "exchange", "delete", "rename", "nest"])
        if edit == "replace":
            container[key] = copy.deepcopy(rng.choice(VALUES))
        elif edit == "add" and isinstance(container[key], int):
            container[key] += rng.choice([-(2**62), -8, -4, -1, 1, 4, 8, 2**62])
        elif edit == "exchange":
            a, b = copy.deepcopy(container[key]), copy.deepcopy(other_container[other])
            container[key], other_container[other] = b, a
        elif edit == "delete":
            del container[key]
        elif edit == "rename" and isinstance(container, dict):
            name = rng.choice([str(other), f"{key}x", f"transformer.{key}", str(key)[:-1]])
            container[name] = container.pop(key)
        elif edit == "nest":
            container[key] = [container[key]]
        if not places(value):
            break
    text = json.dumps(value)
    if rng.random() < 0.1:  # a key twice
        key = f'"{rng.choice(list(value) or ["a"])}": '
        text = "{" + key + json.dumps(rng.choice(VALUES)) + ", " + text[1:]
    if rng.random() < 0.02:
        depth = rng.choice([50, 1000, 50_000])
        text = text[:-1] + ', "deep": ' + "[" * depth + "]" * depth + "}"
    return text.encode(errors="surrogatepass")


def edit_header(content, rng):
    end = 8 + struct.unpack("<Q", content[:8])[0]
    header = edit_json(content[8:end], rng)
    return struct.pack("<Q", len(header)) + header + content[end:]


# The mutations of a folder: each takes the files by name and changes the dict.


def in_weights(mutate):
    def mutated(files, rng):
        name = rng.choice(sorted(name for name in files if name.endswith(".safetensors")))
        files[name] = mutate(files[name], rng)

    return mutated


def in_json(mutate):
    def mutated(files, rng):
        name = rng.choice(sorted(name for name in files if name.endswith(".json")))
        files[name] = mutate(files[name], rng)

    return mutated


def exchange_files(files, rng):
    a, b = rng.sample(sorted(files), 2)
    files[a], files[b] = files[b], files[a]


def copy_over(files, rng):
    a, b = rng.sample(sorted(files), 2)
    files[a] = files[b]


def remove_file(files, rng):
    del files[rng.choice(sorted(files))]


KINDS = {
    "bytes flipped anywhere": in_weights(flip_anywhere),
    "bytes flipped in the data": in_weights(flip_in_data),
    "truncated": in_weights(truncate),
    "bytes inserted": in_weights(insert),
    "bytes deleted": in_weights(delete),
    "part repeated": in_weights(duplicate),
    "header's length": in_weights(change_length),
    "header edited": in_weights(edit_header),
    "files exchanged": exchange_files,
    "file copied over another": copy_over,
    "file removed": remove_file,
    "config or index edited": in_json(edit_json),
    "config or index flipped": in_json(flip_anywhere),
    "config or index truncated": in_json(truncate),
}


def whole_checkpoints(tmp_path):
    """A plain one; one with prefix, masks and head; one in two files; one with a digest."""
    weights = random_weights(CONFIG)
    more = {f"transformer.{key}": tensor for key, tensor in weights.items()}
    more["transformer.h.0.attn.bias"] = torch.ones(1, 1, 2, 2, dtype=torch.uint8).tril()
    more["transformer.h.0.attn.masked_bias"] = torch.tensor(-1e4)
    more["lm_head.weight"] = weights["wte.weight"]
    options = {"activation_function": "gelu_new", "attn_pdrop": 0.1, "n_inner": None}
    write_checkpoint(tmp_path / "digest", CONFIG, weights)
    return [
        write_folder(tmp_path / "plain", weights, CONFIG),
        write_folder(tmp_path / "more", more, CONFIG, **options),
        write_shards(tmp_path / "shards", weights, config=CONFIG),
        tmp_path / "digest",
    ]


def parsed(text):
    """A JSON value, in which no key may stand twice: it would say two things."""

    def without_repeats(pairs):
        assert len(dict(pairs)) == len(pairs)
        return dict(pairs)

    return json.loads(text, object_pairs_hook=without_repeats)


def held(files):
    """The dtype and the bytes of each tensor that a folder's files hold, taken out by hand."""
    names = [WEIGHTS]
    if WEIGHTS not in files:
        names = sorted(set(parsed(files[INDEX])["weight_map"].values()))
    tensors = {}
    for name in names:
        content = files[name]
        start = 8 + struct.unpack("<Q", content[:8])[0]
        for key, entry in parsed(content[8:start]).items():
            if key != "__metadata__":
                begin, end = entry["data_offsets"]
                tensors[key] = entry["dtype"], content[start + begin : start + end]
    return tensors


def held_config(files):
    """The config that the weights hold, which is read where there is none beside them."""
    end = 8 + struct.unpack("<Q", files[WEIGHTS][:8])[0]
    return parsed(files[WEIGHTS][8:end])["__metadata__"]["config.json"]


def require_exactly(files, config, weights):
    """What was read must be a whole model, and what the files hold."""
    entries = parsed(files["config.json"] if "config.json" in files else held_config(files))
    assert config.n_layer == entries.get("n_layer", entries.get("num_hidden_layers"))
    assert [(k, tuple(v.shape)) for k, v in weights.items()] == list(weight_shapes(config))
    assert len({tensor.dtype for tensor in weights.values()}) == 1
    tensors = {key.removeprefix("transformer."): each for key, each in held(files).items()}
    for key, tensor in weights.items():
        dtype, content = tensors[key]
        assert tensor.dtype == DTYPES[dtype]
        assert bytes(tensor.reshape(-1).view(torch.uint8).tolist()) == content
    assert tensors.get("lm_head.weight", tensors["wte.weight"]) == tensors["wte.weight"]


@contextmanager
def at_most(most):
    """Counts the calls in the block, of C functions too: no damage may make reading endless."""
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event in ("call", "c_call")
        if calls > most:
            raise TooManyCallsError(f"over {most} calls")

    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(None)


class TooManyCallsError(BaseException):
    """No `Exception`: nothing that is read may take it for damage."""


def mutate_and_read(folder, original, seed):
    """One mutation: gives its kind and what came of it, and restores the folder."""
    rng = random.Random(seed)
    kind = list(KINDS)[seed % len(KINDS)]
    files = dict(original)
    KINDS[kind](files, rng)
    changed = [name for name in original if files.get(name) != original[name]]
    for name in changed:
        if name in files:
            (folder / name).write_bytes(files[name])
        else:
            (folder / name).unlink()
    try:
        with at_most(CALLS):
            config, weights = read_checkpoint(folder)
    except FileNotFoundError:
        outcome = "not found"
    except ValueError:
        outcome = "refused"
    else:
        require_exactly(files, config, weights)
        outcome = "read" if changed else "unchanged"
    for name in changed:
        (folder / name).write_bytes(original[name])
    return kind, outcome


def table(outcomes):
    columns = ("refused", "not found", "read", "unchanged")
    rows = {kind: [outcomes[kind, column] for column in columns] for kind in KINDS}
    rows["all"] = [sum(numbers) for numbers in zip(*rows.values(), strict=True)]
    lines = [f"{'':<28}" + "".join(f"{column:>12}" for column in columns)]
    lines += [f"{kind:<28}" + "".join(f"{n:>12}" for n in row) for kind, row in rows.items()]
    return "\n" + "\n".join(lines)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize("number", [500, pytest.param(10_000, marks=pytest.mark.nightly)])
def test_every_damaged_checkpoint_is_refused_or_read_as_what_it_holds(tmp_path, number):
    folders = whole_checkpoints(tmp_path)
    originals = [{path.name: path.read_bytes() for path in each.iterdir()} for each in folders]
    before = memory.peak()
    outcomes, with_a_digest = Counter(), Counter()
    for seed in range(number):
        which = seed // len(KINDS) % len(folders)
        try:
            outcome = mutate_and_read(folders[which], originals[which], seed)
        except BaseException as error:
            raise AssertionError(f"mutation {seed} of {folders[which].name}: {error!r}") from error
        outcomes[outcome] += 1
        if folders[which].name == "digest":
            with_a_digest[outcome] += 1
    assert memory.peak() - before < 200 * 2**20
    for folder in folders:
        read_checkpoint(folder)
    print(table(outcomes))  # pytest -s shows it
    assert outcomes.total() == number
    # Damage that must be seen: there is no file of another length that is whole.
    for kind in ("truncated", "bytes inserted", "bytes deleted"):
        assert outcomes[kind, "read"] == 0
    # Damage that cannot be seen where there is no digest: other numbers are read.
    assert outcomes["bytes flipped in the data", "read"] > number / 25
    assert with_a_digest["bytes flipped in the data", "refused"] > number / 100
    assert with_a_digest["bytes flipped in the data", "read"] == 0


# What else may lie in the place of each file that is read: a table of file and damage.


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
    **{f"truncated {i}": rewritten(some_of) for i in range(5)},
    **{f"a bit flipped {i}": rewritten(with_a_bit_flipped) for i in range(20)},
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
