"""What the checkpoints of all decoders with rotary positions have in common."""

import json
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, TypeVar

import torch

from transformer_layers.checkpoints.codec import Weights
from transformer_layers.checkpoints.json_file import shown
from transformer_layers.checkpoints.rotary_entries import scaling_entries

HEAD = "lm_head.weight"
EMBEDDING = "model.embed_tokens.weight"

Config = TypeVar("Config")


def config_of_family(
    entries: dict[str, Any],
    path: Path,
    families: Collection[str],
    config_of: Callable[[str], Config],
) -> Config:
    """Makes a config of entries that come from a file, which errors name.

    Args:
        entries: What `config.json` holds.
        path: The file.
        families: Which model types there may be.
        config_of: Makes the config, of the model type.

    Returns:
        The config.

    Raises:
        ValueError: If the model type is another one, or no config can be made.
    """
    family = entries.get("model_type")
    if not isinstance(family, str) or family not in families:
        among = f"one of {', '.join(families)}" if len(families) > 1 else next(iter(families))
        raise ValueError(
            f"{path}: model_type must be {among}, got {shown(family)}: these are the weights of "
            "another model"
        )
    try:
        return config_of(family)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error


def text_of_config(
    config: Any, dtype: torch.dtype, name: str, model_type: str, entries: dict[str, Any]
) -> str:
    """The text of a `config.json`.

    Rotary positions are written under the names of published folders, `rope_theta` and
    `rope_scaling`. There are no tokens that begin and end a text: they are the tokenizer's.

    Args:
        config: The sizes and options.
        dtype: That of the weights.
        name: That of the model, with which its class in `transformers` begins.
        model_type: That of the config.
        entries: What else the file is to hold.

    Returns:
        What the file is to hold.
    """
    common = {
        "architectures": [f"{name}ForCausalLM"],
        "bos_token_id": None,
        "dtype": str(dtype).removeprefix("torch."),
        "eos_token_id": None,
        "model_type": model_type,
        "pad_token_id": None,
        "rms_norm_eps": float(config.rms_norm_eps),  # transformers refuses an int
        "rope_scaling": scaling_entries(config.rope_scaling),
        "rope_theta": config.rope_theta,
    }
    return json.dumps(common | entries, indent=2, sort_keys=True) + "\n"


def shapes_of_stack(config: Any, block: Callable[[int], Iterable[tuple[str, Any]]]) -> Weights:
    """The key and the shape of each weight, in the order of the state dict.

    Args:
        config: The sizes and options.
        block: The keys and shapes of a block, by its number.

    Yields:
        Key and shape.
    """
    yield EMBEDDING, (config.vocab_size, config.hidden_size)
    for i in range(config.num_hidden_layers):
        for name, shape in block(i):
            yield f"model.layers.{i}.{name}", shape
    yield "model.norm.weight", (config.hidden_size,)
    if not config.tie_word_embeddings:
        yield HEAD, (config.vocab_size, config.hidden_size)


def tied_head(config: Any) -> dict[str, str]:
    """The name that a file may have for the embedding, where that is the head."""
    return {HEAD: EMBEDDING} if config.tie_word_embeddings else {}
