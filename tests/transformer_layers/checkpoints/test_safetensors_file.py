"""Tensors in safetensors files: what the header says, what is read, and what is refused."""

import hashlib
import random
import struct

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from tests.transformer_layers.checkpoints.examples import write_parts, write_tensors
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


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
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


def test_reads_by_hand(tmp_path):
    path = tmp_path / "a.safetensors"
    write_parts(path, entry(), DATA)
    assert read(path)["a"].tolist() == [1.5, -2.0]


def test_keeps_the_formats_name_of_other_dtypes(tmp_path):
    path = tmp_path / "a.safetensors"
    write_parts(path, entry(dtype="F4", shape=[16]), DATA)
    with open_tensors(path) as (tensors, _):
        assert tensors["a"].dtype == "F4"
    write_tensors(path, {"a": torch.arange(3), "b": torch.ones(2, dtype=torch.uint8)})
    with open_tensors(path) as (tensors, _):
        assert [t.dtype for t in tensors.values()] == ["I64", "U8"]


def test_refuses_a_file_that_became_shorter(tmp_path):
    path = tmp_path / "a.safetensors"
    write_parts(path, entry(), DATA)
    with open_tensors(path) as (tensors, _):
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size - 4)
        with pytest.raises(ValueError, match=r"a\.safetensors: not a safetensors file, or a damag"):
            tensors["a"].read()


def test_names_a_tensor_that_there_is_no_memory_for(tmp_path):
    path = tmp_path / "a.safetensors"
    write_parts(path, entry(), DATA)

    class Full:
        def get_tensor(self, name):
            raise MemoryError

    with open_tensors(path) as (tensors, _):
        object.__setattr__(tensors["a"], "file", Full())
        with pytest.raises(OSError, match=r"a\.safetensors: a is of shape \(2,\), for which there"):
            tensors["a"].read()


ONE = '"dtype":"F32","shape":[2],"data_offsets":[0,8]'


LIES = {
    "truncated": (entry(), DATA[:-1], None, "incomplete metadata, file not fully covered"),
    "a byte more": (entry(), DATA + b"x", None, "incomplete metadata, file not fully covered"),
    "length beyond the file": (entry(), DATA, 10**6, "invalid header length"),
    "length above the limit": (entry(), DATA, 2**63, "a header of 9,223,372,036,854,775,808 by"),
    "largest length": (entry(), DATA, 2**64 - 1, "a header of 18,446,744,073,709,551,615 bytes"),
    "a byte too long": (entry(), DATA, 2**22 + 1, "4,194,305 bytes, of at most 4,194,304; downl"),
    "no length": (entry(), DATA, 0, "invalid JSON in header"),
    "length too small": (entry(), DATA, 10, "invalid JSON in header"),
    "shape too large": (entry(shape=[3]), DATA, None, "invalid shape, data type, or offset"),
    "negative shape": (entry(shape=[-2]), DATA, None, "invalid value: integer `-2`"),
    "overflowing shape": (entry(shape=[2**62, 2**62]), DATA, None, "overflow"),
    "shape above 64 bits": (entry(shape=[2**70]), DATA, None, "invalid JSON in header"),
    "shape of floats": (entry(shape=[2.0]), DATA, None, "floating point `2.0`"),
    "shape that is no list": (entry(shape=2), DATA, None, "invalid JSON in header"),
    "unknown dtype": (entry(dtype="F33"), DATA, None, "unknown variant `F33`"),
    "other dtype": (entry(dtype="F64"), DATA, None, "invalid shape, data type, or offset"),
    "negative offset": (entry(data_offsets=[-8, 0]), DATA, None, "invalid value: integer `-8`"),
    "offsets exchanged": (entry(data_offsets=[8, 0]), DATA, None, "invalid offset"),
    "a hole before": (entry(data_offsets=[4, 12]), DATA + bytes(4), None, "invalid offset"),
    "offset beyond the file": (
        entry(data_offsets=[0, 2**63]),
        DATA,
        None,
        "invalid shape, data type, or offset",
    ),
    "two in one place": ({"a": ENTRY, "b": ENTRY}, DATA, None, "invalid offset"),
    "no offsets": (
        {"a": {"dtype": "F32", "shape": [2]}},
        DATA,
        None,
        "missing field `data_offsets`",
    ),
    "list": ([], b"", None, "invalid JSON in header"),
    "not UTF-8": (b'{"\xff": 1}', b"", None, "invalid UTF-8 in header"),
    "deep": (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, b"", None, "recursion limit exceeded"),
    "metadata that are no text": ({"__metadata__": {"a": 1}}, b"", None, "invalid JSON in header"),
}


@pytest.mark.parametrize("name", LIES)
def test_refuses_a_header_that_does_not_fit_the_file(tmp_path, name):
    header, data, length, reason = LIES[name]
    path = tmp_path / "a.safetensors"
    write_parts(path, header, data, length)
    with pytest.raises(ValueError, match=reason) as caught:
        read(path)
    start = f"{path}: not a safetensors file, or a damaged one: "
    assert str(caught.value).startswith(start)
    assert str(caught.value).endswith("; download or copy it again")


@pytest.mark.parametrize("content", [b"", b"1234567", b"PK\x03\x04" + bytes(100)])
def test_refuses_other_files(tmp_path, content):
    path = tmp_path / "a.safetensors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.safetensors: not a safetensors file, or a damaged"):
        read(path)


@pytest.mark.parametrize("again", ["a", "\\u0061"])
def test_refuses_two_tensors_of_one_name_which_the_library_does_not(tmp_path, again):
    path = tmp_path / "a.safetensors"
    write_parts(path, f'{{"a":{{{ONE}}},"{again}":{{{ONE}}}}}'.encode(), DATA)
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


def test_tensors_that_are_written_again_elsewhere_keep_their_digest(tmp_path):
    path = tmp_path / "a.safetensors"
    safetensors_file.write_tensors(path, TENSORS, {"run": "7"})
    tensors, metadata = found_in(path)
    save_file(tensors, path, metadata)  # in another order
    assert found_in(path)[0].keys() == TENSORS.keys()
