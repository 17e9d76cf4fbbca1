"""Reading and writing of published checkpoints."""

import dataclasses
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor

from transformer_layers.checkpoints.atomic_save import CHECKPOINT, PAUSES, left_behind, saving
from transformer_layers.checkpoints.folder import (
    CONFIG,
    WEIGHTS,
    StoredWeights,
    find_folder,
    open_weights,
)
from transformer_layers.checkpoints.json_file import parse_json_object
from transformer_layers.checkpoints.safetensors_file import (
    StoredTensor,
    read_all,
    write_tensors,
)
from transformer_layers.models.gpt2.config import GPT2Config
from transformer_layers.models.gpt2.config_file import config_of, config_text, read_config
from transformer_layers.models.gpt2.weights import (
    HEAD,
    PREFIX,
    require_weights,
    weight_shapes,
    without_prefix_and_masks,
)


def read_checkpoint(
    name_or_folder: str | os.PathLike[str], *, revision: str | None = None
) -> tuple[GPT2Config, dict[str, Tensor]]:
    """Reads the sizes and the weights of a GPT-2.

    Names, shapes and dtypes are checked before the first weight is read, and a head's values when
    all are, so that there is either a whole model or an error. Each weight is read once, into
    memory of its own.

    A file of weights that :func:`write_checkpoint` wrote has its config and a digest in its header:
    another `config.json` beside it is refused, and so are other weights than were written. While a
    process saves there, what is read is the model from before or the one that it saves.

    Args:
        name_or_folder: A folder with `config.json` and `model.safetensors`, or the latter's parts
            and `model.safetensors.index.json`; or a name on the Hugging Face hub.
        revision: The branch, the tag or the commit on the hub; its main branch if not given.

    Returns:
        The sizes, and the weights by :class:`GPT2`'s keys, in the dtype that they are stored in.

    Raises:
        FileNotFoundError: If there is no such file.
        OSError: If a file cannot be opened.
        TypeError: If `revision` is no str.
        ValueError: If the files are damaged, do not belong together, or are not those of a GPT-2
            that :class:`GPT2` computes; or if a folder is to have a revision.
    """
    with _open(find_folder(name_or_folder, revision=revision)) as (config, found):
        source = found.source
        stored = without_prefix_and_masks(found.tensors)
        head = stored.pop(HEAD, None)
        require_weights(stored, config, source)
        wanted = {key: stored[key] for key, _ in weight_shapes(config)}
        weights = read_all(wanted, found.remarks, source)
        if head is not None and not _is_tied(head, weights["wte.weight"]):
            raise ValueError(
                f"{source}: {HEAD} is not the same as wte.weight, and GPT2 has no weight for a "
                "head of its own"
            )
    return config, weights


def write_checkpoint(
    folder: str | os.PathLike[str], config: GPT2Config, weights: dict[str, Tensor]
) -> None:
    """Writes what :func:`read_checkpoint` and `transformers.GPT2LMHeadModel` read.

    Both files are written whole under other names before they take their own, the weights first, so
    that what goes wrong in writing leaves what was there.

    Args:
        folder: Where `config.json` and `model.safetensors` are written; made if needed.
        config: The sizes.
        weights: The weights by :class:`GPT2`'s keys, of one floating dtype.

    Raises:
        OSError: If a file cannot be written.
        ValueError: If the weights are not those of a GPT-2 of these sizes, or on the meta device,
            or `folder` is the empty text.
    """
    require_weights(weights, config, "weights")
    if any(weight.is_meta for weight in weights.values()):
        raise ValueError("weights: on the meta device there are no values to write")
    text = config_text(config, weights["wte.weight"].dtype)
    stored = {PREFIX + key: weight for key, weight in weights.items()}
    with saving(folder, CHECKPOINT) as unfinished:
        # Of the remarks, transformers needs the format.
        write_tensors(unfinished / WEIGHTS, stored, {"format": "pt", CONFIG: text})
        (unfinished / CONFIG).write_text(text, encoding="utf-8")


class _MixedFilesError(ValueError):
    """Files that do not belong together, for good or while another process saves."""


@contextmanager
def _open(folder: Path) -> Iterator[tuple[GPT2Config, StoredWeights]]:
    """Opens the weights and finds their config."""
    for pause in PAUSES:
        with open_weights(folder) as stored:
            try:
                config = _config_of(stored, folder)
            except _MixedFilesError as error:
                if pause == PAUSES[-1]:
                    raise ValueError(str(error)) from None
            else:
                yield config, stored
                return
        time.sleep(pause)


def _config_of(stored: StoredWeights, folder: Path) -> GPT2Config:
    """The config that the weights hold, if it is that beside them; the latter if they hold none."""
    path = folder / CONFIG
    if CONFIG not in stored.remarks:
        config = read_config(path)
        if not stored.are_in_place():
            raise _MixedFilesError(f"{stored.source}: was replaced while it was read; try again")
        return config
    entries = parse_json_object(stored.remarks[CONFIG].encode(), stored.source)
    config = config_of(entries, stored.source)
    beside = _config_in(path)
    if beside is None or beside == config:
        return config
    if any(_config_in(left) == config for left in left_behind(folder, CHECKPOINT)):
        return config
    sizes = [
        (each.name, getattr(beside, each.name), getattr(config, each.name))
        for each in dataclasses.fields(config)
    ]
    differing = ", ".join(f"{name} is {a}, not {b}" for name, a, b in sizes if a != b)
    raise _MixedFilesError(
        f"{path}: not the config that {stored.source.name} was saved with: {differing}. If the "
        f"weights are the right ones, remove {CONFIG}; they hold theirs"
    )


def _config_in(path: Path) -> GPT2Config | None:
    try:
        return read_config(path)
    except FileNotFoundError:
        return None


def _is_tied(head: StoredTensor, embedding: Tensor) -> bool:
    if (head.dtype, head.shape) != (embedding.dtype, tuple(embedding.shape)):
        return False
    return torch.equal(head.read().view(torch.uint8), embedding.view(torch.uint8))  # NaN too
