"""Small checkpoints for tests, whole or with something wrong in them."""

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transformer_layers import GPT2, GPT2Config

CONFIG = GPT2Config(vocab_size=5, n_positions=3, n_embd=4, n_layer=2, n_head=2)


def random_weights(
    config: GPT2Config = CONFIG, dtype: torch.dtype = torch.float32, seed: int = 0
) -> dict[str, Tensor]:
    """Weights for a GPT-2 of these sizes, by its keys; no two numbers are likely to be equal."""
    with torch.device("meta"):
        shapes = {key: value.shape for key, value in GPT2(config).state_dict().items()}
    generator = torch.Generator().manual_seed(seed)
    return {
        key: torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)
        for key, shape in shapes.items()
    }


def entries_of(config: GPT2Config = CONFIG) -> dict[str, Any]:
    """What a `config.json` must say for these sizes, at least."""
    return {
        "model_type": "gpt2",
        "vocab_size": config.vocab_size,
        "n_positions": config.n_positions,
        "n_embd": config.n_embd,
        "n_layer": config.n_layer,
        "n_head": config.n_head,
    }


def write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Writes a safetensors file with nothing but the standard library."""
    header: dict[str, Any] = {}
    data = b""
    names = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16"}
    names |= {torch.bfloat16: "BF16", torch.int64: "I64", torch.uint8: "U8"}
    for name, tensor in tensors.items():
        content = bytes(tensor.contiguous().view(-1).view(torch.uint8).tolist())
        offsets = [len(data), len(data) + len(content)]
        shape = list(tensor.shape)
        header[name] = {"dtype": names[tensor.dtype], "shape": shape, "data_offsets": offsets}
        data += content
    write_parts(path, header, data)


def write_parts(path: Path, header: Any, data: bytes = b"", length: int | None = None) -> None:
    """Writes a file of a header, as it is or to be made JSON, and data."""
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(header) if length is None else length) + header + data)


def read_parts(content: bytes) -> tuple[Any, bytes]:
    """Takes the content of a safetensors file apart: header and data."""
    end = 8 + struct.unpack("<Q", content[:8])[0]
    return json.loads(content[8:end]), content[end:]


def write_folder(
    folder: Path, tensors: Mapping[str, Tensor], config: GPT2Config = CONFIG, **entries: Any
) -> Path:
    """Makes a checkpoint's folder; `entries` go into the config; those that are `...` leave it."""
    folder.mkdir(exist_ok=True)
    both = {**entries_of(config), **entries}
    write_json(folder / "config.json", {k: v for k, v in both.items() if v is not ...})
    write_tensors(folder / "model.safetensors", tensors)
    return folder


def write_shards(
    folder: Path, tensors: Mapping[str, Tensor], shards: int = 2, config: GPT2Config = CONFIG
) -> Path:
    """The same, with the tensors spread over several files."""
    folder.mkdir(exist_ok=True)
    write_json(folder / "config.json", entries_of(config))
    names = [f"model-{i + 1:05}-of-{shards:05}.safetensors" for i in range(shards)]
    places = {key: names[i % shards] for i, key in enumerate(tensors)}
    for name in names:
        part = {key: tensor for key, tensor in tensors.items() if places[key] == name}
        write_tensors(folder / name, part)
    write_json(folder / "model.safetensors.index.json", {"metadata": {}, "weight_map": places})
    return folder
