"""How the checkpoints of Llama and its relatives are written."""

import dataclasses
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch

from transformer_layers.checkpoints.codec import Codec
from transformer_layers.checkpoints.config_entries import (
    flag_entry,
    number_entry,
    require_computed,
    size_entry,
)
from transformer_layers.checkpoints.json_file import shown
from transformer_layers.models.llama.config import FAMILIES, LlamaConfig, RopeScaling
from transformer_layers.positions.scaling import LinearScaling, Llama3Scaling, YaRNScaling

HEAD = "lm_head.weight"
EMBEDDING = "model.embed_tokens.weight"

_SIZES = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "max_position_embeddings",
)
_FLAGS = ("tie_word_embeddings", "attention_bias", "mlp_bias")
_SCALINGS: dict[str, type[RopeScaling]] = {
    "linear": LinearScaling,
    "llama3": Llama3Scaling,
    "yarn": YaRNScaling,
}
_ARCHITECTURES = {"olmo2": "Olmo2"}  # else the name of the family, capitalized

# Options that change what a model computes, and the values for which it is what Llama computes.
_COMPUTED: dict[str, tuple[object, ...]] = {
    "hidden_act": ("silu",),
    "attention_dropout": (0.0, 0, None),
    "partial_rotary_factor": (1.0, 1, None),
    "pretraining_tp": (1, None),  # more than one sums products in another order
    "clip_qkv": (None,),
    "quantization_config": (None,),
}

_T = TypeVar("_T")


def config_of(entries: dict[str, Any], path: Path) -> LlamaConfig:
    """Takes sizes and options out of a config, and refuses what :class:`Llama` does not compute.

    An entry that is left out has the default of the family's config in `transformers`. Keys that
    change no result are ignored.

    Args:
        entries: What `config.json` holds.
        path: The file that they come from, for the error.

    Returns:
        The sizes and options.

    Raises:
        ValueError: If they are not the config of such a model, or of one with other options.
    """
    family = entries.get("model_type")
    if not isinstance(family, str) or family not in FAMILIES:
        raise ValueError(
            f"{path}: model_type must be one of {', '.join(FAMILIES)}, got {shown(family)}: these "
            "are the weights of another model"
        )
    try:
        return _config_of(family, {**dict(FAMILIES[family].defaults), **entries})
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error


def config_text(config: LlamaConfig, dtype: torch.dtype) -> str:
    """The `config.json` of which the class of `transformers` makes the same model.

    Rotary positions are written under the names of published folders, `rope_theta` and
    `rope_scaling`. There are no tokens that begin and end a text: they are the tokenizer's.

    Args:
        config: The sizes and options.
        dtype: That of the weights.

    Returns:
        What the file is to hold.
    """
    family = config.model_type
    name = _ARCHITECTURES.get(family, family.capitalize())
    options = FAMILIES[family].options
    entries: dict[str, Any] = {
        "architectures": [f"{name}ForCausalLM"],
        "bos_token_id": None,
        "dtype": str(dtype).removeprefix("torch."),
        "eos_token_id": None,
        "hidden_act": "silu",
        "model_type": family,
        "pad_token_id": None,
        "rms_norm_eps": config.rms_norm_eps,
        "rope_scaling": _scaling_entries(config.rope_scaling),
        "rope_theta": config.rope_theta,
        "tie_word_embeddings": config.tie_word_embeddings,
        **{size: getattr(config, size) for size in _SIZES},
        **{option: getattr(config, option) for option in sorted(options)},
    }
    if "max_window_layers" in options:
        entries["use_sliding_window"] = config.sliding_window is not None
    return json.dumps(entries, indent=2, sort_keys=True) + "\n"


def weight_shapes(config: LlamaConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The key and the shape of each weight, in the order of :class:`Llama`'s state dict.

    Args:
        config: The sizes and options.

    Yields:
        Key and shape.
    """
    d = config.hidden_size
    block = dict(_block_shapes(config))
    yield EMBEDDING, (config.vocab_size, d)
    for i in range(config.num_hidden_layers):
        for name, shape in block.items():
            yield f"model.layers.{i}.{name}", shape
    yield "model.norm.weight", (d,)
    if not config.tie_word_embeddings:
        yield HEAD, (config.vocab_size, d)


def without_tables(stored: Mapping[str, _T]) -> dict[str, _T]:
    """Leaves out the frequencies that older files have among the weights.

    Args:
        stored: What the file holds, by its keys.
    """
    return {key: value for key, value in stored.items() if not key.endswith(".rotary_emb.inv_freq")}


def _block_shapes(config: LlamaConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    d, d_ff = config.hidden_size, config.intermediate_size
    d_q, d_kv = config.num_attention_heads * config.d_k, config.kv_heads * config.d_k
    family = config.model_type
    if family != "olmo2":
        yield "input_layernorm.weight", (d,)
    projections = {"q": (d_q, d), "k": (d_kv, d), "v": (d_kv, d), "o": (d, d_q)}
    for name, shape in projections.items():
        yield f"self_attn.{name}_proj.weight", shape
        if config.attention_bias or (config.biased and name != "o"):
            yield f"self_attn.{name}_proj.bias", shape[:1]
    if family in ("qwen3", "olmo2"):
        sizes = (config.d_k, config.d_k) if family == "qwen3" else (d_q, d_kv)
        yield "self_attn.q_norm.weight", sizes[:1]
        yield "self_attn.k_norm.weight", sizes[1:]
    yield "post_attention_layernorm.weight", (d,)
    for name, shape in {"gate": (d_ff, d), "up": (d_ff, d), "down": (d, d_ff)}.items():
        yield f"mlp.{name}_proj.weight", shape
        if config.mlp_bias:
            yield f"mlp.{name}_proj.bias", shape[:1]
    if family == "olmo2":
        yield "post_feedforward_layernorm.weight", (d,)


def _config_of(family: str, entries: dict[str, Any]) -> LlamaConfig:
    for name, values in _COMPUTED.items():
        if name in entries:
            require_computed(name, entries[name], values, "Llama")
    sizes = {name: size_entry(name, entries[name]) for name in _SIZES if name in entries}
    flags = {name: flag_entry(name, entries[name]) for name in _FLAGS if name in entries}
    theta, scaling = _rope(entries)
    return LlamaConfig(
        **sizes,
        **flags,
        **_window(family, entries, sizes),
        rms_norm_eps=number_entry("rms_norm_eps", entries.get("rms_norm_eps", 1e-6)),
        rope_theta=theta,
        rope_scaling=scaling,
        model_type=family,
    )


def _window(family: str, entries: dict[str, Any], sizes: dict[str, Any]) -> dict[str, Any]:
    """The window, and how many blocks have none."""
    options = FAMILIES[family].options
    window = entries.get("sliding_window")
    if "max_window_layers" in options and not entries.get("use_sliding_window", False):
        window = None
    if "sliding_window" not in options:
        window = None  # such a model has none, whatever its config says
    blocks = sizes.get("num_hidden_layers", 32)
    without = entries.get("max_window_layers", 28) if "max_window_layers" in options else 0
    if window is None:
        without = 0
    kinds = entries.get("layer_types")
    if kinds is not None:
        full, sliding = "full_attention", "sliding_attention"
        wanted = [full if window is None or i < without else sliding for i in range(blocks)]
        if kinds != wanted:
            raise ValueError(
                f"layer_types is {shown(kinds)}, and Llama has full attention in the first blocks "
                f"and windows in the others: {shown(wanted)}"
            )
    if window is None:
        return {}
    return {"sliding_window": size_entry("sliding_window", window), "max_window_layers": without}


def _rope(entries: dict[str, Any]) -> tuple[float, RopeScaling | None]:
    """The base and the scaling, from either of the two forms that configs have."""
    found = entries.get("rope_parameters", entries.get("rope_scaling"))
    if found is not None and not isinstance(found, dict):
        raise ValueError(f"the settings of rotary positions must be an object, got {shown(found)}")
    given = dict(found or {})
    theta = given.pop("rope_theta", entries.get("rope_theta", 10_000.0))
    kind = given.pop("rope_type", given.pop("type", "default"))
    given.pop("type", None)
    require_computed(
        "partial_rotary_factor", given.pop("partial_rotary_factor", 1.0), (1.0, 1), "Llama"
    )
    if kind == "default":
        return number_entry("rope_theta", theta), None
    if kind not in _SCALINGS:
        raise ValueError(
            f"rope_type is {shown(kind)}, and Llama computes it for default, "
            f"{', '.join(_SCALINGS)} only"
        )
    scaling = _SCALINGS[kind]
    fields = {field.name: field for field in dataclasses.fields(scaling)}
    if "original_max_position_embeddings" in fields:
        given.setdefault("original_max_position_embeddings", entries.get("max_position_embeddings"))
    unknown = sorted(given.keys() - fields.keys())
    if unknown:
        raise ValueError(f"rope_scaling has {shown(unknown)}, which a {kind} scaling does not have")
    missing = [
        name
        for name, field in fields.items()
        if field.default is dataclasses.MISSING and given.get(name) is None
    ]
    if missing:
        raise ValueError(f"rope_scaling must have {missing[0]} for a {kind} scaling")
    values = {name: _rope_number(name, value) for name, value in given.items() if value is not None}
    return number_entry("rope_theta", theta), scaling(**values)


def _rope_number(name: str, value: object) -> Any:
    if name == "truncate":
        return flag_entry(name, value)
    if name == "original_max_position_embeddings":
        return size_entry(name, value)
    return number_entry(name, value)


def _scaling_entries(scaling: RopeScaling | None) -> dict[str, Any] | None:
    if scaling is None:
        return None
    kind = next(name for name, each in _SCALINGS.items() if isinstance(scaling, each))
    given = {
        name: value for name, value in dataclasses.asdict(scaling).items() if value is not None
    }
    return {"rope_type": kind, **given}


CODEC = Codec(
    model_type="llama",
    config_of=config_of,
    config_text=config_text,
    weight_shapes=weight_shapes,
    renamed=without_tables,
    tied=lambda config: {HEAD: EMBEDDING} if config.tie_word_embeddings else {},
    described=lambda config: (
        f"{config.model_type} of num_hidden_layers = {config.num_hidden_layers}"
    ),
)
