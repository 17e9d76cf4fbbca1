"""Tensors in safetensors files: what the header says, what is read, and what is refused."""

import hashlib
import random
import struct

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from tests.transformer_layers.checkpoints.examples import write_parts
from transformer_layers.checkpoints import safetensors_file
from transformer_layers.checkpoints.json_file import shown
from transformer_layers.checkpoints.safetensors_file import open_tensors, read_all

ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
DATA = struct.pack("<2f", 1.5, -2.0)


def entry(**changes):
    return {"a": {**ENTRY, **changes}}


def read(path):
    with open_tensors(path) as (tensors, _):
        return {name: tensor.read() for name, tensor in tensors.items()}


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_reads_what_was_written(tmp_path, dtype):
    path = tmp_path / "a.safetensors"
    written = {"b": torch.randn(3, 2).to(dtype), "a": torch.randn(5).to(dtype)}
    save_file(written, path)
    with open_tensors(path) as (tensors, _):
        described = {name: (t.name, t.dtype, t.shape, t.path) for name, t in tensors.items()}
        assert described == {"a": ("a", dtype, (5,), path), "b": ("b", dtype, (3, 2), path)}
    found = read(path)
    assert found.keys() == written.keys()
    for name, tensor in found.items():
        assert torch.equal(tensor, written[name])


def test_refuses_a_file_that_became_shorter(tmp_path):
    path = tmp_path / "a.safetensors"
    write_parts(path, entry(), DATA)
    with open_tensors(path) as (tensors, _):
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size - 4)
        with pytest.raises(ValueError, match=r"a\.safetensors: not a safetensors file, or a damag"):
            tensors["a"].read()


ONE = '"dtype":"F32","shape":[2],"data_offsets":[0,8]'


@pytest.mark.parametrize(
    ("header", "data", "length", "reason"),
    [
        (entry(), DATA[:-1], None, "incomplete metadata, file not fully covered"),
        (entry(), DATA, 2**64 - 1, "a header of 18,446,744,073,709,551,615 bytes"),
        (entry(), DATA, 10, "invalid JSON in header"),
        (entry(shape=[2**62, 2**62]), DATA, None, "overflow"),
        (entry(dtype="F33"), DATA, None, "unknown variant `F33`"),
        (entry(data_offsets=[8, 0]), DATA, None, "invalid offset"),
        ({"a": ENTRY, "b": ENTRY}, DATA, None, "invalid offset"),
        (b'{"\xff": 1}', b"", None, "invalid UTF-8 in header"),
    ],
)
def test_refuses_a_header_that_does_not_fit_the_file(tmp_path, header, data, length, reason):
    path = tmp_path / "a.safetensors"
    write_parts(path, header, data, length)
    with pytest.raises(ValueError, match=reason) as caught:
        read(path)
    start = f"{path}: not a safetensors file, or a damaged one: "
    assert str(caught.value).startswith(start)
    assert str(caught.value).endswith("; download or copy it again")


def test_refuses_two_tensors_of_one_name_which_the_library_does_not(tmp_path):
    path = tmp_path / "a.safetensors"
    write_parts(path, f'{{"a":{{{ONE}}},"\\u0061":{{{ONE}}}}}'.encode(), DATA)
    with safe_open(path, framework="pt") as file:
        assert file.get_tensor("a").tolist() == [1.5, -2.0]
    with pytest.raises(ValueError, match=r"a\.safetensors: cannot be read as JSON: the key 'a' st"):
        read(path)


# The digest

TENSORS = {
    "b": torch.tensor([[1.5, -2.0, 0.25]], dtype=torch.bfloat16),
    "a": torch.tensor([3.0, -0.5, 7.0]),
    "none": torch.zeros(0, 2),
}


def found_in(path):
    with open_tensors(path) as (stored, metadata):
        return read_all(stored, metadata, path), metadata


def test_what_is_written_is_read_with_its_digest(tmp_path):
    path = tmp_path / "a.safetensors"
    safetensors_file.write_tensors(path, TENSORS, {"run": "7"})
    tensors, metadata = found_in(path)
    assert tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert tensors[name].dtype == tensor.dtype
        assert torch.equal(tensors[name], tensor)
    # By hand: the other metadata, and each tensor's name, dtype, shape and bytes.
    content = b'[["run", "7"]]'
    content += b'["a", "torch.float32", [3]]' + struct.pack("<3f", 3.0, -0.5, 7.0)
    content += b'["b", "torch.bfloat16", [1, 3]]' + bytes.fromhex("c03f 00c0 803e")
    content += b'["none", "torch.float32", [0, 2]]'
    assert metadata == {"run": "7", "sha256": hashlib.sha256(content).hexdigest()}


def test_a_flipped_bit_of_any_byte_is_refused_or_changes_nothing(tmp_path):
    path = tmp_path / "a.safetensors"
    safetensors_file.write_tensors(path, TENSORS, {"run": "7"})
    whole, (expected, _) = path.read_bytes(), found_in(path)
    rng, changed, nameless = random.Random(0), [], 0
    for at in range(len(whole)):
        content = bytearray(whole)
        content[at] ^= 1 << rng.randrange(8)
        path.write_bytes(content)
        try:
            tensors, others = found_in(path)
        except ValueError as error:
            nameless += not str(error).startswith(f"{path}: ")
            continue
        changed.append(at)
        assert tensors.keys() == expected.keys()
        assert all(torch.equal(tensors[name], each) for name, each in expected.items())
        assert others.get("run") == "7"
    assert nameless == 0
    # What is left is the digest's name: without one a file is read as it is.
    name = whole.index(b"sha256")
    assert set(changed) <= set(range(name, name + 6))


def test_the_error_of_a_digest_names_file_and_remedy(tmp_path):
    path = tmp_path / "a.safetensors"
    safetensors_file.write_tensors(path, TENSORS, {})
    (_, metadata), content = found_in(path), bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="damaged: what it holds has the SHA-256 ") as caught:
        found_in(path)
    assert str(caught.value).startswith(f"{path}: damaged")
    assert shown(metadata["sha256"]) in str(caught.value)
    assert str(caught.value).endswith(
        "; copy it again. If it was changed on purpose, take the metadata 'sha256' out of "
        "its header"
    )
