"""Loading of whichever model a folder holds."""

import os
from typing import Any

from transformer_layers.checkpoints.folder import CONFIG, find_folder
from transformer_layers.checkpoints.json_file import read_json_object, shown
from transformer_layers.models.gemma3.model import Gemma3
from transformer_layers.models.gpt2.model import GPT2
from transformer_layers.models.llama.config import FAMILIES
from transformer_layers.models.llama.model import Llama
from transformer_layers.models.transformer.model import Transformer

MODELS: dict[str, type[GPT2] | type[Llama] | type[Gemma3] | type[Transformer]] = {
    "gpt2": GPT2,
    **dict.fromkeys(FAMILIES, Llama),
    "gemma3_text": Gemma3,
    "marian": Transformer,
    "transformer": Transformer,
}


def load_model(
    name_or_folder: str | os.PathLike[str], *, revision: str | None = None
) -> GPT2 | Llama | Gemma3 | Transformer:
    """Loads a published checkpoint by the `model_type` of its `config.json`, for evaluation.

    Args:
        name_or_folder: A folder with `config.json` and `model.safetensors` (or its parts and
            `model.safetensors.index.json`), or a name on the Hugging Face hub, which needs the
            package `huggingface_hub` and, if its cache has not the files, a network.
        revision: The branch, the tag or the commit on the hub; its main branch if not given.

    Returns:
        The model, in the dtype it is stored in, in evaluation mode.

    Raises:
        FileNotFoundError: If there is no such file.
        OSError: If a file cannot be opened.
        ValueError: If no class computes the model, or its own class refuses the files; the message
            names what is wrong.

    Examples:
        >>> import tempfile
        >>> from transformer_layers import LlamaConfig
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Llama(LlamaConfig(50, 12, 20, 2, 3, 1)).save_pretrained(folder)
        ...     type(load_model(folder)).__name__
        'Llama'
    """
    folder = find_folder(name_or_folder, revision=revision)
    path = folder / CONFIG
    found: Any = read_json_object(path).get("model_type")
    if not isinstance(found, str) or found not in MODELS:
        raise ValueError(
            f"{path}: model_type is {shown(found)}, which no class computes; there are classes for "
            f"{', '.join(MODELS)}"
        )
    return MODELS[found].from_pretrained(name_or_folder, revision=revision)
