"""Tensors in files of the safetensors format."""

import ctypes
import errno
import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from transformer_layers.checkpoints.json_file import parse_json_object, shown
from transformer_layers.checkpoints.regular_file import open_regular

_FLOATING = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
}
_NAMES = {dtype: name for name, dtype in _FLOATING.items()}

_LONGEST_HEADER = 2**22  # bytes; that of the largest GPT-2 has a sixtieth of it
_NOT_ONE = "not a safetensors file, or a damaged one"
_REMEDY = "download or copy it again"

# The entry of the metadata that holds the digest. Files of others have none.
DIGEST = "sha256"
_NOT_YET = "0" * 64


@dataclass(frozen=True)
class StoredTensor:
    """A tensor that is described in the header of an open file and has not been read yet.

    Attributes:
        name: Its name in the file.
        dtype: Its dtype; for one that is none of torch's four usual floating dtypes, the format's
            own name, such as `"I64"`.
        shape: Its shape.
        path: The file.
        file: The open file.
    """

    name: str
    dtype: torch.dtype | str
    shape: tuple[int, ...]
    path: Path
    file: safe_open

    def read(self) -> Tensor:
        """Reads the tensor into memory of its own, while the file is open.

        Returns:
            The tensor.

        Raises:
            OSError: If there is no memory for it.
            ValueError: If the file has become shorter since it was opened.
        """
        try:
            with _naming(self.path):
                return self.file.get_tensor(self.name)  # type: ignore[no-untyped-call]  # its stub has no types
        except MemoryError as error:
            what = (
                f"{self.path}: {self.name} is of shape {self.shape}, for which there is no memory"
            )
            raise OSError(errno.ENOMEM, what) from error


@contextmanager
def open_tensors(path: Path) -> Iterator[tuple[dict[str, StoredTensor], dict[str, str]]]:
    """Opens a file of the safetensors format, https://github.com/huggingface/safetensors.

    It is eight bytes with the header's length, the header in JSON, which has the dtype, the shape
    and the place of every tensor, and the tensors. The library checks that the header fits the file
    to the byte: no tensor is outside it, none overlap, nothing is left over, and every size is that
    of its shape. It takes the last of two entries with one name; that is refused here.

    The bytes are read, not mapped: a mapped tensor changes with the file, and a process that reads
    it dies when the file has become shorter.

    Args:
        path: The file.

    Yields:
        The tensors by name, and the metadata that whoever wrote the file left in its header.

    Raises:
        FileNotFoundError: If there is no such file.
        OSError: If it cannot be opened.
        ValueError: If the file is damaged, or of another format, or its header is longer than
            4 MiB.
    """
    with open_regular(path) as raw:
        length = int.from_bytes(raw.read(8), "little")
        if length > _LONGEST_HEADER:
            raise ValueError(
                f"{path}: {_NOT_ONE}: a header of {length:,} bytes, of at most "
                f"{_LONGEST_HEADER:,}; {_REMEDY}"
            )
        with _naming(path):
            opened = safe_open(path, framework="pt", backend="pread")
        header = raw.read(length)
    with opened as file:
        parse_json_object(header, path)
        tensors = {}
        for name in file.keys():
            part = file.get_slice(name)
            dtype = part.get_dtype()
            tensors[name] = StoredTensor(
                name, _FLOATING.get(dtype, dtype), tuple(part.get_shape()), path, file
            )
        yield tensors, file.metadata() or {}


def read_all(
    stored: Mapping[str, StoredTensor], metadata: Mapping[str, str], path: Path
) -> dict[str, Tensor]:
    """Reads tensors, and holds them against the digest that :func:`write_tensors` left.

    A file without a digest is read as it is.

    Args:
        stored: The tensors of an open file, by any keys.
        metadata: The file's metadata.
        path: The file, for the error.

    Returns:
        The tensors by these keys.

    Raises:
        ValueError: If they, or the metadata, are not those that were written.
    """
    tensors = {key: each.read() for key, each in stored.items()}
    if DIGEST not in metadata:
        return tensors
    digest = _begun({name: value for name, value in metadata.items() if name != DIGEST})
    for key, each in sorted(stored.items(), key=lambda item: item[1].name):
        _add(digest, each.name, tensors[key])
    if digest.hexdigest() != metadata[DIGEST]:
        raise ValueError(
            f"{path}: damaged: what it holds has the SHA-256 {digest.hexdigest()}, and was saved "
            f"with {shown(metadata[DIGEST])}; copy it again. If it was changed on purpose, take "
            f"the metadata {DIGEST!r} out of its header"
        )
    return tensors


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Writes a file of the safetensors format, the tensors in the order of their names.

    A further entry has the SHA-256 of the tensors and the other metadata, for :func:`read_all`. The
    library's own function writes metadata in an order of chance, and so not the same file twice.

    Args:
        path: The file.
        tensors: The tensors by name, of torch's four usual floating dtypes.
        metadata: What else the header is to say.

    Raises:
        OSError: If it cannot be written.
    """
    entries: dict[str, object] = {}
    end = 0
    for name, tensor in sorted(tensors.items()):
        begin, end = end, end + tensor.numel() * tensor.element_size()
        shape = list(tensor.shape)
        entries[name] = {
            "dtype": _NAMES[tensor.dtype],
            "shape": shape,
            "data_offsets": [begin, end],
        }

    def head(digest: str) -> bytes:
        header = {"__metadata__": {**metadata, DIGEST: digest}, **entries}
        text = json.dumps(header, separators=(",", ":")).encode()
        text = text.ljust(
            8 * math.ceil(len(text) / 8)
        )  # numbers begin where a processor reads fast
        return len(text).to_bytes(8, "little") + text

    digest = _begun(metadata)
    with path.open("wb") as file:
        file.write(head(_NOT_YET))
        for name, tensor in sorted(tensors.items()):
            tensor = tensor.detach().cpu().contiguous()
            _add(digest, name, tensor)
            file.write(_content(tensor))
        file.seek(0)
        file.write(head(digest.hexdigest()))


def _begun(metadata: Mapping[str, str]) -> "hashlib._Hash":
    return hashlib.sha256(json.dumps(sorted(metadata.items())).encode())


def _add(digest: "hashlib._Hash", name: str, tensor: Tensor) -> None:
    digest.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
    digest.update(_content(tensor))


def _content(tensor: Tensor) -> "ctypes.Array[ctypes.c_char]":
    """The bytes of a contiguous tensor on the CPU, where they are."""
    size = tensor.numel() * tensor.element_size()
    return (ctypes.c_char * size).from_address(tensor.data_ptr())


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turns the library's errors into one that names the file and the remedy."""
    try:
        yield
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{path}: {_NOT_ONE}: {error}; {_REMEDY}") from error
