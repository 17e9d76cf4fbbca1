"""Reading and writing of checkpoints: sizes and weights of a model, by its codec."""

import dataclasses
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn

from transformer_layers.checkpoints.atomic_save import CHECKPOINT, PAUSES, left_behind, saving
from transformer_layers.checkpoints.codec import Codec, Config
from transformer_layers.checkpoints.folder import (
    CONFIG,
    GENERATION,
    WEIGHTS,
    StoredWeights,
    find_folder,
    open_weights,
)
from transformer_layers.checkpoints.json_file import parse_json_object, read_json_object
from transformer_layers.checkpoints.safetensors_file import (
    StoredTensor,
    read_all,
    write_tensors,
)
from transformer_layers.checkpoints.weights import (
    fused,
    require_weights,
    stored_shapes,
    taken_apart,
)

_Model = TypeVar("_Model", bound=nn.Module)


def load(
    model_class: Callable[[Config], _Model],
    codec: Codec[Config],
    name_or_folder: str | os.PathLike[str],
    *,
    revision: str | None = None,
) -> _Model:
    """Makes a model of a checkpoint, in the dtype that it is stored in, for evaluation.

    Args:
        model_class: Makes a model of its sizes.
        codec: That of the model.
        name_or_folder: See :func:`read_checkpoint`, as for the errors.
        revision: See there.

    Returns:
        The model.
    """
    config, weights = read_checkpoint(codec, name_or_folder, revision=revision)
    with torch.device("meta"):
        model = model_class(config)
    model.load_state_dict(weights, assign=True)
    return model.eval()


def read_checkpoint(
    codec: Codec[Config], name_or_folder: str | os.PathLike[str], *, revision: str | None = None
) -> tuple[Config, dict[str, Tensor]]:
    """Reads the sizes and the weights of a model.

    Names, shapes and dtypes are checked before the first weight is read, and a head's values when
    all are, so that there is either a whole model or an error. Each weight is read once, into
    memory of its own.

    A file of weights that :func:`write_checkpoint` wrote has its config and a digest in its header:
    another `config.json` beside it is refused, and so are other weights than were written. One that
    differs only in options that are changed on purpose, such as the base of rotary positions,
    counts, with a warning. While a process saves there, what is read is the model from before or
    the one that it saves.

    Args:
        codec: That of the model.
        name_or_folder: A folder with `config.json` and `model.safetensors`, or the latter's parts
            and `model.safetensors.index.json`; or a name on the Hugging Face hub.
        revision: The branch, the tag or the commit on the hub; its main branch if not given.

    Returns:
        The sizes, and the weights by the model's keys, in the dtype that they are stored in.

    Raises:
        FileNotFoundError: If there is no such file.
        OSError: If a file cannot be opened.
        TypeError: If `revision` is no str.
        ValueError: If the files are damaged, do not belong together, or are not those of a model
            that the codec knows; or if a folder is to have a revision.
    """
    with _open(codec, find_folder(name_or_folder, revision=revision)) as (config, found):
        source = found.source
        stored = codec.renamed(found.tensors)
        tied = codec.tied(config)
        twins = {name: stored.pop(name) for name in tied if name in stored}
        require_weights(codec, stored, config, source, stored_shapes(codec, config))
        wanted = {key: stored[key] for key, _ in stored_shapes(codec, config)}
        weights = taken_apart(codec, config, read_all(wanted, found.metadata, source))
        for name, twin in twins.items():
            if not _is_tied(twin, weights[tied[name]]):
                raise ValueError(
                    f"{source}: {name} is not the same as {tied[name]}, and the model has "
                    "one weight for both"
                )
    return config, weights


def write_checkpoint(
    codec: Codec[Config],
    folder: str | os.PathLike[str],
    config: Config,
    weights: dict[str, Tensor],
    entries: Mapping[str, object] = MappingProxyType({}),
) -> None:
    """Writes what :func:`read_checkpoint` and `transformers` read.

    Both files are written whole under other names before they take their own, the weights first, so
    that what goes wrong in writing leaves what was there.

    Where a model has options of `generate`, these are in `config.json`. A `generation_config.json`
    that is there and says something else is of another model, and is removed.

    Args:
        codec: That of the model.
        folder: Where `config.json` and `model.safetensors` are written; made if needed.
        config: The sizes.
        weights: The weights by the model's keys, of one floating dtype.
        entries: What else `config.json` is to say, of what changes nothing in the model.

    Raises:
        OSError: If a file cannot be written.
        ValueError: If the weights are not those of a model of these sizes, or on the meta device,
            or `folder` is the empty text.
    """
    require_weights(codec, weights, config, "weights")
    if any(weight.is_meta for weight in weights.values()):
        raise ValueError("weights: on the meta device there are no values to write")
    text = codec.config_text(config, next(iter(weights.values())).dtype)
    if entries:
        text = json.dumps(json.loads(text) | dict(entries), indent=2, sort_keys=True) + "\n"
    stored = {codec.stored_as(key): weight for key, weight in fused(codec, config, weights).items()}
    with saving(folder, CHECKPOINT) as unfinished:
        # Of the metadata, transformers needs the format.
        write_tensors(unfinished / WEIGHTS, stored, {"format": "pt", CONFIG: text})
        (unfinished / CONFIG).write_text(text, encoding="utf-8")
    if codec.with_generation is not None:
        _remove_other_generation(codec, Path(folder), text)


def read_config(codec: Codec[Config], path: Path) -> Config:
    """Reads the sizes of a model.

    Where the model has options of `generate`, those in the `generation_config.json` beside the file
    count, as in `transformers`.

    Args:
        codec: That of the model.
        path: The file.

    Returns:
        The sizes.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is not JSON, or not the config of such a model.
    """
    entries = read_json_object(path)
    generation = path.with_name(GENERATION)
    if codec.with_generation is not None and os.path.lexists(generation):
        entries = codec.with_generation(entries, read_json_object(generation))
        path = path.with_name(f"{path.name} with {GENERATION}")
    return codec.config_of(entries, path)


def _remove_other_generation(codec: Codec[Any], folder: Path, text: str) -> None:
    """Removes options of `generate` that are not those of the config."""
    path = folder / CONFIG
    if not os.path.lexists(folder / GENERATION):
        return
    saved = codec.config_of(parse_json_object(text.encode(), path), path)
    try:
        found = read_config(codec, path)
    except (OSError, ValueError):
        found = None
    if found != saved:
        (folder / GENERATION).unlink(missing_ok=True)


class _MixedFilesError(ValueError):
    """Files that do not belong together, for good or while another process saves.

    Args:
        message: What does not fit.
        config: The config beside the weights, if it can be one that was changed on purpose.
        differing: What it has, and what the weights were saved with.
    """

    def __init__(self, message: str, config: Any = None, differing: str = "") -> None:
        super().__init__(message)
        self._config = config
        self._differing = differing

    def changed_config(self, weights: Path, path: Path) -> Any:
        """The config that was changed on purpose, with a warning; refuses any other."""
        if self._config is None:
            raise ValueError(str(self)) from None
        warnings.warn(
            f"{path}: was changed since {weights.name} was saved, and counts: {self._differing}",
            stacklevel=2,
        )
        return self._config


@contextmanager
def _open(codec: Codec[Config], folder: Path) -> Iterator[tuple[Config, StoredWeights]]:
    """Opens the weights and finds their config."""
    for pause in PAUSES:
        with open_weights(folder) as stored:
            try:
                config = _config_of(codec, stored, folder)
            except _MixedFilesError as error:
                found = error
            else:
                yield config, stored
                return
            if pause == PAUSES[-1]:
                yield found.changed_config(stored.source, folder / CONFIG), stored
                return
        time.sleep(pause)


def _config_of(codec: Codec[Config], stored: StoredWeights, folder: Path) -> Config:
    """The config that the weights hold, if it is that beside them; the latter if they hold none."""
    path = folder / CONFIG
    if CONFIG not in stored.metadata:
        config = read_config(codec, path)
        if not stored.are_in_place():
            raise _MixedFilesError(f"{stored.source}: was replaced while it was read; try again")
        return config
    entries = parse_json_object(stored.metadata[CONFIG].encode(), stored.source)
    config = codec.config_of(entries, stored.source)
    beside = _config_in(codec, path)
    if beside is None or beside == config:
        return config
    if any(_config_in(codec, left) == config for left in left_behind(folder, CHECKPOINT)):
        return config
    sizes = [
        (each.name, getattr(beside, each.name), getattr(config, each.name))
        for each in dataclasses.fields(cast(Any, config))
    ]
    changed = {name for name, a, b in sizes if a != b}
    differing = ", ".join(f"{name} is {a}, not {b}" for name, a, b in sizes if a != b)
    both = codec.with_generation is not None and os.path.lexists(folder / GENERATION)
    removed = f"{CONFIG} and {GENERATION}" if both else CONFIG
    # While another process saves, either can be replaced meanwhile.
    on_purpose = changed <= set(codec.changeable) and stored.are_in_place()
    raise _MixedFilesError(
        f"{path}: not the config that {stored.source.name} was saved with: {differing}. If the "
        f"weights are the right ones, remove {removed}; they hold theirs",
        beside if on_purpose and _config_in(codec, path) == beside else None,
        differing,
    )


def _config_in(codec: Codec[Config], path: Path) -> Config | None:
    try:
        return read_config(codec, path)
    except FileNotFoundError:
        return None


def _is_tied(head: StoredTensor, embedding: Tensor) -> bool:
    if (head.dtype, head.shape) != (embedding.dtype, tuple(embedding.shape)):
        return False
    return torch.equal(head.read().view(torch.uint8), embedding.view(torch.uint8))  # NaN too
