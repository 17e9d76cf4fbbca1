"""The folder of a checkpoint: where it is, and which files hold the weights."""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from transformer_layers.checkpoints.json_file import read_json_object, shown
from transformer_layers.checkpoints.regular_file import open_regular
from transformer_layers.checkpoints.safetensors_file import StoredTensor, open_tensors
from transformer_layers.validation import require_text

CONFIG = "config.json"
GENERATION = "generation_config.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?", re.ASCII)
_SHARD = re.compile(r"[^/\\:\0]+\.safetensors")
_PICKLES = (".bin", ".ckpt", ".pickle", ".pkl", ".pt", ".pth")


def find_folder(
    name_or_folder: str | os.PathLike[str],
    wanted: Sequence[str] = (CONFIG, GENERATION, "model*.safetensors", INDEX),
    *,
    revision: str | None = None,
) -> Path:
    """Finds a folder, and fetches it from the hub where it is a name there.

    Whatever else lies under the name here, such as a link that leads nowhere, is no reason to ask
    the hub.

    Args:
        name_or_folder: A folder, or a name on the Hugging Face hub.
        wanted: The files to be fetched; a checkpoint's if not given.
        revision: The branch, the tag or the commit on the hub; its main branch if not given.

    Returns:
        The folder, for a name that of the hub's cache.

    Raises:
        FileNotFoundError: If there is no such folder, and no such name within reach.
        TypeError: If `revision` is no str.
        ValueError: If there is something else of the name, or a revision is asked for of a folder,
            or is the empty text.
    """
    if revision is not None:
        require_text("revision", revision)
        if not revision:
            raise ValueError("revision must name a branch, a tag or a commit, got ''; leave it out")
    if os.path.isdir(name_or_folder):
        if revision is not None:
            raise ValueError(
                f"{os.fspath(name_or_folder)!r} is a folder, which has no revision {revision!r}; "
                "leave it out, or pass a name on the Hugging Face hub that is no folder here"
            )
        return Path(name_or_folder)
    if os.path.isfile(name_or_folder):
        raise ValueError(f"{os.fspath(name_or_folder)!r} is a file; pass the folder that it is in")
    if os.path.lexists(name_or_folder):
        raise ValueError(
            f"{os.fspath(name_or_folder)!r} is neither a folder nor a link to one; pass a folder"
        )
    if isinstance(name_or_folder, str) and _HUB_NAME.fullmatch(name_or_folder):
        return _fetch(name_or_folder, wanted, revision)
    raise FileNotFoundError(
        f"there is no folder {os.fspath(name_or_folder)!r}, and it is no name on the Hugging Face "
        "hub, such as 'openai-community/gpt2'"
    )


@dataclass(frozen=True)
class StoredWeights:
    """Weights in open files.

    Attributes:
        source: The file, or the index of several.
        tensors: All tensors by name.
        metadata: What else the file's header says; nothing for several.
        opened: Which file it is that was opened.
    """

    source: Path
    tensors: dict[str, StoredTensor]
    metadata: dict[str, str]
    opened: tuple[int, ...]

    def are_in_place(self) -> bool:
        """Whether the file has not been replaced since."""
        return self.opened == _identity(self.source)


@contextmanager
def open_weights(folder: Path) -> Iterator[StoredWeights]:
    """Opens the file with the weights, or the files that an index names.

    Args:
        folder: The checkpoint's folder.

    Yields:
        The weights.

    Raises:
        FileNotFoundError: If there is neither, or a file that the index names is missing.
        OSError: If a file cannot be opened.
        ValueError: If a file is damaged, or is none; the index and the files disagree; or there are
            only pickle files.
    """
    weights, index = folder / WEIGHTS, folder / INDEX
    with ExitStack() as stack:
        if os.path.lexists(weights):  # a link that leads nowhere is told, not passed over
            opened = _identity(weights)
            tensors, metadata = stack.enter_context(open_tensors(weights))
            yield StoredWeights(weights, tensors, metadata, opened)
        elif os.path.lexists(index):
            opened = _identity(index)
            yield StoredWeights(index, _open_shards(index, stack), {}, opened)
        else:
            _refuse(folder)


def _identity(path: Path) -> tuple[int, ...]:
    with open_regular(path) as file:
        found = os.fstat(file.fileno())
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _open_shards(index: Path, stack: ExitStack) -> dict[str, StoredTensor]:
    places = _read_places(index)
    tensors: dict[str, StoredTensor] = {}
    for shard in sorted(set(places.values())):
        path = index.parent / shard
        if not os.path.exists(path):
            raise FileNotFoundError(f"{path}: there is no such file, and {index.name} names it")
        found, _ = stack.enter_context(open_tensors(path))
        for name in found:
            if places.get(name) != shard:
                place = shown(places.get(name, "no file"))
                raise ValueError(
                    f"{path}: holds {shown(name)}, which {index.name} says is in {place}"
                )
        tensors |= found
    for name, shard in places.items():
        if name not in tensors:
            raise ValueError(f"{index}: says that {shown(name)} is in {shard}, and it is not")
    return tensors


def _read_places(index: Path) -> dict[str, str]:
    """The file of each tensor: a name in the index's own folder, so that it leads nowhere else."""
    places = read_json_object(index).get("weight_map")
    if not isinstance(places, dict):
        raise ValueError(f"{index}: weight_map must be an object, got {shown(places)}")
    for name, shard in places.items():
        if not isinstance(shard, str) or not _SHARD.fullmatch(shard):
            raise ValueError(
                f"{index}: places {shown(name)} in {shown(shard)}, which must be the "
                "name of a .safetensors file in the same folder"
            )
    return places


def _refuse(folder: Path) -> NoReturn:
    pickles = sorted(path.name for path in folder.iterdir() if path.suffix in _PICKLES)
    if pickles:
        raise ValueError(
            f"{folder}: {pickles[0]} is a pickle file, which can run any code when it is read; "
            f"where you trust it, let transformers convert it: {_class_for(folder)}"
            ".from_pretrained(old).save_pretrained(new)"
        )
    raise FileNotFoundError(f"{folder}: there is neither {WEIGHTS} nor {INDEX}")


def _class_for(folder: Path) -> str:
    """The class of `transformers` that reads a folder's model, by what its config says."""
    try:
        entries = read_json_object(folder / CONFIG)
    except (OSError, ValueError):  # the pickle file is what is told
        entries = {}
    # Old configs of Marian's leave the flag to the class.
    if entries.get("is_encoder_decoder") is True or entries.get("model_type") == "marian":
        return "AutoModelForSeq2SeqLM"
    return "AutoModelForCausalLM"


def _fetch(name: str, wanted: Sequence[str], revision: str | None) -> Path:
    try:
        from huggingface_hub import snapshot_download  # optional, and half a second to import
    except ImportError as error:
        raise FileNotFoundError(
            f"there is no folder {name!r}; if it is a name on the Hugging Face hub, install "
            "huggingface_hub"
        ) from error
    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=list(wanted)))
    except Exception as error:  # those of the package and of its HTTP client have no common base
        reason = str(error).strip().partition("\n")[0]
        of_it = "it" if revision is None else f"revision {revision!r} of it"
        raise FileNotFoundError(
            f"there is no folder {name!r}, and the Hugging Face hub could not be asked for {of_it} "
            f"or does not have it: {reason}"
        ) from error
