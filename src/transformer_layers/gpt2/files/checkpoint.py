"""Reading and writing of published checkpoints."""

import os
import shutil
import tempfile
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from transformer_layers.gpt2.config import GPT2Config
from transformer_layers.gpt2.files.config_file import read_config, write_config
from transformer_layers.gpt2.files.folder import CONFIG, WEIGHTS, find_folder, open_weights
from transformer_layers.gpt2.files.safetensors_file import StoredTensor
from transformer_layers.gpt2.files.weights import (
    HEAD,
    PREFIX,
    require_weights,
    weight_shapes,
    without_prefix_and_masks,
)


def read_checkpoint(name_or_folder: str | os.PathLike[str]) -> tuple[GPT2Config, dict[str, Tensor]]:
    """Reads the sizes and the weights of a GPT-2.

    Names, shapes and dtypes are checked before the first weight is read, and a head's values when
    all are, so that there is either a whole model or an error. Each weight is read once, into
    memory of its own.

    Args:
        name_or_folder: A folder with `config.json` and `model.safetensors`, or the latter's parts
            and `model.safetensors.index.json`; or a name on the Hugging Face hub.

    Returns:
        The sizes, and the weights by :class:`GPT2`'s keys, in the dtype that they are stored in.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the files are damaged, or not those of a GPT-2 that :class:`GPT2` computes.
    """
    folder = find_folder(name_or_folder)
    config = read_config(folder / CONFIG)
    with open_weights(folder) as (source, tensors):
        stored = without_prefix_and_masks(tensors)
        head = stored.pop(HEAD, None)
        require_weights(stored, config, source)
        weights = {key: stored[key].read() for key, _ in weight_shapes(config)}
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
        ValueError: If the weights are not those of a GPT-2 of these sizes, or on the meta device.
    """
    require_weights(weights, config, "weights")
    if any(weight.is_meta for weight in weights.values()):
        raise ValueError("weights: on the meta device there are no values to write")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".unfinished-") as unfinished:
        stored = {PREFIX + key: weight for key, weight in _apart(weights).items()}
        try:
            save_file(stored, Path(unfinished, WEIGHTS), metadata={"format": "pt"})
        except SafetensorError as error:
            raise OSError(f"{folder / WEIGHTS}: cannot be written: {error}") from error
        write_config(Path(unfinished, CONFIG), config, weights["wte.weight"].dtype)
        # The library lets nobody but the owner read its file.
        shutil.copymode(Path(unfinished, CONFIG), Path(unfinished, WEIGHTS))
        for name in (WEIGHTS, CONFIG):
            os.replace(Path(unfinished, name), folder / name)


def _is_tied(head: StoredTensor, embedding: Tensor) -> bool:
    if (head.dtype, head.shape) != (embedding.dtype, tuple(embedding.shape)):
        return False
    return torch.equal(head.read().view(torch.uint8), embedding.view(torch.uint8))  # NaN too


def _apart(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights as the format wants them: contiguous, and no two in the same memory."""
    storages = set()
    apart = {}
    for key, weight in weights.items():
        weight = weight.detach().contiguous()
        storage = weight.untyped_storage().data_ptr()
        apart[key] = weight.clone() if storage in storages else weight
        storages.add(storage)
    return apart
