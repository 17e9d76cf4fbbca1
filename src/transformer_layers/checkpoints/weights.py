"""Which weights a checkpoint must hold: those of a model of its sizes, of one dtype."""

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transformer_layers.checkpoints.codec import Codec, Config, Weights
from transformer_layers.checkpoints.json_file import shown
from transformer_layers.checkpoints.safetensors_file import StoredTensor

_DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def stored_shapes(codec: Codec[Config], config: Config) -> Weights:
    """The key and the shape of each weight of a file, in which some of the model's can be one.

    Args:
        codec: That of the model.
        config: The sizes.

    Yields:
        Key and shape.
    """
    for key, parts in _by_stored_key(codec, config):
        shapes = [shape for _, shape in parts]
        yield key, (sum(shape[0] for shape in shapes), *shapes[0][1:])


def fused(codec: Codec[Config], config: Config, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a model as its files have them.

    Args:
        codec: That of the model.
        config: The sizes.
        weights: The weights by the model's keys.

    Returns:
        The weights by the keys of files.
    """
    return {
        key: torch.cat([weights[name] for name, _ in parts])
        if len(parts) > 1
        else weights[parts[0][0]]
        for key, parts in _by_stored_key(codec, config)
    }


def taken_apart(
    codec: Codec[Config], config: Config, stored: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Undoes :func:`fused`.

    Args:
        codec: That of the model.
        config: The sizes.
        stored: The weights by the keys of files.

    Returns:
        The weights by the model's keys, each in memory of its own.
    """
    weights = {}
    for key, parts in _by_stored_key(codec, config):
        rows = stored[key].split([shape[0] for _, shape in parts]) if len(parts) > 1 else ()
        for (name, _), part in zip(parts, rows or [stored[key]], strict=True):
            weights[name] = part.clone() if rows else part
    return weights


def _by_stored_key(
    codec: Codec[Config], config: Config
) -> Iterator[tuple[str, list[tuple[str, tuple[int, ...]]]]]:
    """Each key of a file, with the keys and shapes of the model's weights that are stored there."""
    shapes = codec.weight_shapes(config)
    for key, parts in itertools.groupby(shapes, lambda each: codec.fused_into(config, each[0])):
        yield key, list(parts)


def require_weights(
    codec: Codec[Any],
    found: Mapping[str, Tensor | StoredTensor],
    config: Any,
    source: Path | str,
    shapes: Weights | None = None,
) -> None:
    """Refuses anything but the weights of a model of these sizes, all of one floating dtype.

    Args:
        codec: That of the model.
        found: What there is, by key.
        config: The sizes.
        source: Where it was found, for the error.
        shapes: Keys and shapes that it must have; those of the model if not given.

    Raises:
        ValueError: If a key is missing or not known, or a shape or a dtype is wrong.
    """
    # One more than were found is enough to find one that is missing, however many it should have.
    shapes = codec.weight_shapes(config) if shapes is None else shapes
    expected = dict(itertools.islice(shapes, len(found) + 1))
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
