"""How the checkpoints of Gemma 3's text model are written."""

from functools import partial
from pathlib import Path
from typing import Any

import torch

from transformer_layers.checkpoints.codec import Codec, Weights, shapes_of
from transformer_layers.checkpoints.config_entries import (
    COMPUTED_BY_ALL,
    flag_entry,
    number_entry,
    require_computed,
    size_entry,
)
from transformer_layers.checkpoints.json_file import shown
from transformer_layers.checkpoints.rotary_entries import rotary_settings
from transformer_layers.models.gemma3.block import Gemma3Block
from transformer_layers.models.gemma3.config import KINDS, Gemma3Config
from transformer_layers.models.rotary_checkpoint import (
    config_of_family,
    shapes_of_stack,
    text_of_config,
    tied_head,
)
from transformer_layers.validation import require_size

MODEL_TYPE = "gemma3_text"

_SIZES = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "max_position_embeddings",
    "sliding_window",
    "query_pre_attn_scalar",
)
_FLAGS = ("tie_word_embeddings", "attention_bias")
_NUMBERS = ("rms_norm_eps", "final_logit_softcapping")
_COMPUTED: dict[str, tuple[object, ...]] = {
    **COMPUTED_BY_ALL,
    "hidden_activation": ("gelu_pytorch_tanh",),
    "attn_logit_softcapping": (None,),
    "use_bidirectional_attention": (False, None),
}


def config_of(entries: dict[str, Any], path: Path) -> Gemma3Config:
    """Takes sizes and options out of a config, and refuses what :class:`Gemma3` does not compute.

    Args:
        entries: What `config.json` holds.
        path: The file that they come from, for the error.

    Returns:
        The sizes and options.

    Raises:
        ValueError: If they are not the config of such a model, or of one with other options.
    """
    return config_of_family(entries, path, (MODEL_TYPE,), lambda family: _config_of(entries))


def config_text(config: Gemma3Config, dtype: torch.dtype) -> str:
    """The `config.json` of which the class of `transformers` makes the same model.

    Args:
        config: The sizes and options.
        dtype: That of the weights.

    Returns:
        What the file is to hold.
    """
    entries: dict[str, Any] = {
        "hidden_activation": "gelu_pytorch_tanh",
        "layer_types": list(config.kinds),
        "rope_local_base_freq": config.rope_local_base_freq,
        **{name: getattr(config, name) for name in (*_SIZES, *_FLAGS, *_NUMBERS)},
    }
    return text_of_config(config, dtype, "Gemma3", MODEL_TYPE, entries)


def weight_shapes(config: Gemma3Config) -> Weights:
    """The key and the shape of each weight, in the order of :class:`Gemma3`'s state dict.

    Args:
        config: The sizes and options.

    Returns:
        Keys and shapes.
    """
    block = dict(shapes_of(partial(Gemma3Block, number=0))(config))
    return shapes_of_stack(config, lambda number: block.items())


def _config_of(entries: dict[str, Any]) -> Gemma3Config:
    for name, values in _COMPUTED.items():
        if name in entries:
            require_computed(name, entries[name], values, "Gemma3")
    found: dict[str, Any] = {
        name: size_entry(name, entries[name]) for name in _SIZES if name in entries
    }
    found |= {name: flag_entry(name, entries[name]) for name in _FLAGS if name in entries}
    found |= {
        name: number_entry(name, entries[name])
        for name in _NUMBERS
        if entries.get(name) is not None
    }
    theta, scaling = _rotation(entries, KINDS[1], "rope_theta", 1_000_000.0)
    local, other = _rotation(entries, KINDS[0], "rope_local_base_freq", 10_000.0)
    if other is not None:
        raise ValueError(f"rope_parameters has a scaling for {KINDS[0]}, and Gemma3 has none there")
    return Gemma3Config(
        **found,
        rope_theta=theta,
        rope_scaling=scaling,
        rope_local_base_freq=local,
        layer_types=_kinds(entries, found.get("num_hidden_layers", 26)),
    )


def _rotation(entries: dict[str, Any], kind: str, base: str, default: float) -> tuple[float, Any]:
    """Base and scaling of the blocks of a kind, from either of the two forms that configs have."""
    nested = entries.get("rope_parameters")
    own: dict[str, Any] = {"max_position_embeddings": entries.get("max_position_embeddings")}
    if nested is not None:
        if not isinstance(nested, dict) or not nested.keys() <= set(KINDS):
            raise ValueError(
                f"rope_parameters must have an object for each of {', '.join(KINDS)}, got "
                f"{shown(nested)}"
            )
        own["rope_parameters"] = nested.get(kind)
    if base in entries:
        own["rope_theta"] = entries[base]
    if kind == KINDS[1]:
        own["rope_scaling"] = entries.get("rope_scaling")
    if own["max_position_embeddings"] is None:
        own["max_position_embeddings"] = Gemma3Config.max_position_embeddings
    theta, scaling, share = rotary_settings(own, "Gemma3", default)
    require_computed("partial_rotary_factor", share, (1.0,), "Gemma3")
    return theta, scaling


def _kinds(entries: dict[str, Any], blocks: int) -> tuple[str, ...] | None:
    """The kind of each block; None where it is every sixth that sees all positions."""
    kinds = entries.get("layer_types")
    if kinds is not None:
        if not isinstance(kinds, list) or not all(isinstance(each, str) for each in kinds):
            raise ValueError(f"layer_types must be a list of text, got {shown(kinds)}")
        return None if tuple(kinds) == _by_turns(blocks, 6) else tuple(kinds)
    turn = entries.get("sliding_window_pattern")
    if turn in (None, 6):
        return None
    require_size("sliding_window_pattern", turn)
    return _by_turns(blocks, turn)


def _by_turns(blocks: int, turn: int) -> tuple[str, ...]:
    return tuple(KINDS[(i + 1) % turn == 0] for i in range(blocks))


CODEC = Codec(
    model_type=MODEL_TYPE,
    config_of=config_of,
    config_text=config_text,
    weight_shapes=weight_shapes,
    tied=tied_head,
    changeable=(
        "max_position_embeddings",
        "rms_norm_eps",
        "rope_local_base_freq",
        "rope_scaling",
        "rope_theta",
        "sliding_window",
    ),
    described=lambda config: f"{MODEL_TYPE} of num_hidden_layers = {config.num_hidden_layers}",
)
