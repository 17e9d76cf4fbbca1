"""Which weights a checkpoint must hold: those of a model of its sizes, of one dtype."""

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transformer_layers.checkpoints.codec import Codec
from transformer_layers.checkpoints.json_file import shown
from transformer_layers.checkpoints.safetensors_file import StoredTensor

_DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def require_weights(
    codec: Codec[Any], found: Mapping[str, Tensor | StoredTensor], config: Any, source: Path | str
) -> None:
    """Refuses anything but the weights of a model of these sizes, all of one floating dtype.

    Args:
        codec: That of the model.
        found: What there is, by key.
        config: The sizes.
        source: Where it was found, for the error.

    Raises:
        ValueError: If a key is missing or not known, or a shape or a dtype is wrong.
    """
    # One more than were found is enough to find one that is missing, however many it should have.
    expected = dict(itertools.islice(codec.weight_shapes(config), len(found) + 1))
    missing = [key for key in expected if key not in found]
    if missing:
        raise ValueError(
            f"{source}: {missing[0]} is missing, which a {codec.described(config)} has"
        )
    unknown = sorted(found.keys() - expected.keys())
    if unknown:
        raise ValueError(f"{source}: {shown(unknown)} is not part of a {codec.described(config)}")
    for key, shape in expected.items():
        _require_shape(key, tuple(found[key].shape), shape, source, codec.layout)
    _require_one_dtype({key: found[key].dtype for key in expected}, source)


def _require_shape(
    key: str, found: tuple[int, ...], expected: tuple[int, ...], source: Path | str, layout: str
) -> None:
    if found == expected:
        return
    remedy = ""
    if found == expected[::-1]:
        remedy = f"; it is transposed: {layout}"
    raise ValueError(
        f"{source}: {key} has the shape {shown(found)}, and the sizes of the config need "
        f"{expected}{remedy}"
    )


def _require_one_dtype(dtypes: dict[str, torch.dtype | str], source: Path | str) -> None:
    first_key, first = next(iter(dtypes.items()))
    for key, dtype in dtypes.items():
        if dtype not in _DTYPES:
            raise ValueError(
                f"{source}: {key} is {dtype}, and weights must be float64, float32, float16 or "
                "bfloat16; a quantized checkpoint must be converted first"
            )
        if dtype != first:
            raise ValueError(
                f"{source}: {first_key} is {first} and {key} is {dtype}; convert all weights to "
                "one dtype"
            )
