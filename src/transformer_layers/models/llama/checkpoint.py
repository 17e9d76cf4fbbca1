"""How the checkpoints of Llama and its relatives are written."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import torch

from transformer_layers.checkpoints.codec import Codec, Weights, shapes_of
from transformer_layers.checkpoints.config_entries import (
    COMPUTED_BY_ALL,
    flag_entry,
    number_entry,
    require_computed,
    require_layer_types,
    size_entry,
)
from transformer_layers.checkpoints.json_file import shown
from transformer_layers.checkpoints.rotary_entries import rotary_settings
from transformer_layers.models.llama.block import block_of
from transformer_layers.models.llama.config import FAMILIES, LlamaConfig
from transformer_layers.models.rotary_checkpoint import (
    config_of_family,
    shapes_of_stack,
    text_of_config,
    tied_head,
)
from transformer_layers.positions.scaling import LongRoPEScaling
from transformer_layers.validation import require_size

_FIRST_EXPERT = "mlp.experts.0."

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
_EXPERTS = ("num_experts", "num_experts_per_tok", "moe_intermediate_size", "decoder_sparse_step")
_CHANGEABLE = (
    "max_position_embeddings",
    "max_window_layers",
    "rms_norm_eps",
    "rope_scaling",
    "rope_theta",
    "sliding_window",
)
# Else the name of the family, capitalized.
_ARCHITECTURES = {"olmo2": "Olmo2", "qwen3_moe": "Qwen3Moe"}

# Options that change what a model computes, and the values for which it is what Llama computes.
# Dropout is no such option: it is off in evaluation.
_COMPUTED: dict[str, tuple[object, ...]] = {
    **COMPUTED_BY_ALL,
    "hidden_act": ("silu",),
    "pretraining_tp": (1, None),  # more than one sums products in another order
    "clip_qkv": (None,),
}


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
    return config_of_family(
        entries,
        path,
        FAMILIES,
        lambda family: _config_of(
            family, {**FAMILIES[family].defaults, **_with_experts(family, entries)}
        ),
    )


def config_text(config: LlamaConfig, dtype: torch.dtype) -> str:
    """The `config.json` of which the class of `transformers` makes the same model.

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
        "hidden_act": "silu",
        "tie_word_embeddings": config.tie_word_embeddings,
        **{size: getattr(config, size) for size in _SIZES},
        **{option: getattr(config, option) for option in sorted(options)},
    }
    if family == "mixtral":
        entries["num_local_experts"] = entries.pop("num_experts")
    if "moe_intermediate_size" in options:
        entries["moe_intermediate_size"] = config.d_expert
        entries["mlp_only_layers"] = list(config.mlp_only_layers)
    if isinstance(config.rope_scaling, LongRoPEScaling):
        length = config.rope_scaling.original_max_position_embeddings
        entries["original_max_position_embeddings"] = length  # Phi-3 reads it here
    if family.startswith("qwen"):
        entries["use_sliding_window"] = config.sliding_window is not None
    return text_of_config(config, dtype, name, family, entries)


def weight_shapes(config: LlamaConfig) -> Weights:
    """The key and the shape of each weight, in the order of :class:`Llama`'s state dict.

    Args:
        config: The sizes and options.

    Returns:
        Keys and shapes.
    """
    blocks = {config.has_experts(0): _shapes_of_block(config, 0)}

    def block(number: int) -> Weights:
        kind = config.has_experts(number)
        if kind not in blocks:
            blocks[kind] = _shapes_of_block(config, number)
        return _of_all_experts(blocks[kind], config.experts)

    return shapes_of_stack(config, block)


def _shapes_of_block(config: LlamaConfig, number: int) -> list[tuple[str, tuple[int, ...]]]:
    """The keys and shapes of a block, with a single expert where it has some."""
    if config.has_experts(number):
        config = replace(config, num_experts=1, num_experts_per_tok=1)
    return list(shapes_of(partial(block_of, number=number))(config))


def _of_all_experts(block: Iterable[tuple[str, tuple[int, ...]]], experts: int) -> Weights:
    """The keys and shapes of a block, of those that it has with a single expert."""
    for expert, parts in groupby(block, lambda each: each[0].startswith(_FIRST_EXPERT)):
        found = list(parts)
        for number in range(experts if expert else 1):
            for name, shape in found:
                routes = name.startswith("mlp.router.")
                named = name.replace(_FIRST_EXPERT, f"mlp.experts.{number}.")
                yield named, (experts, *shape[1:]) if routes else shape


def _config_of(family: str, entries: dict[str, Any]) -> LlamaConfig:
    for name, values in _COMPUTED.items():
        if name in entries:
            require_computed(name, entries[name], values, "Llama")
    sizes = {name: size_entry(name, entries[name]) for name in _SIZES if name in entries}
    flags: dict[str, Any] = {
        name: flag_entry(name, entries[name]) for name in _FLAGS if name in entries
    }
    theta, scaling, share = rotary_settings(entries, "Llama", FAMILIES[family].rope_theta)
    if "partial_rotary_factor" not in FAMILIES[family].options:
        require_computed("partial_rotary_factor", share, (1.0,), "Llama")
    return LlamaConfig(
        **sizes,
        **flags,
        **_window(family, entries, sizes),
        **_experts(family, entries),
        rms_norm_eps=number_entry("rms_norm_eps", entries.get("rms_norm_eps", 1e-6)),
        rope_theta=theta,
        rope_scaling=scaling,
        partial_rotary_factor=share,
        model_type=family,
    )


def _fused_into(config: LlamaConfig, key: str) -> str:
    family = FAMILIES[config.model_type]
    for ours, theirs in family.renamed.items():
        key = key.replace(ours, theirs)
    *path, name, kind = key.split(".")
    return ".".join([*path, family.fused.get(name, name), kind])


def _with_experts(family: str, entries: dict[str, Any]) -> dict[str, Any]:
    """Gives the number of experts one name: transformers writes either, whatever the family."""
    if "num_experts" not in FAMILIES[family].options or "num_local_experts" not in entries:
        return entries
    count = entries["num_local_experts"]
    if entries.get("num_experts", count) != count:
        raise ValueError(
            "num_experts and num_local_experts are two names of one number, got "
            f"{shown(entries['num_experts'])} and {shown(count)}"
        )
    return entries | {"num_experts": count}


def _experts(family: str, entries: dict[str, Any]) -> dict[str, Any]:
    """How many experts there are, and what else is said of them."""
    options = FAMILIES[family].options
    if "num_experts" not in options:
        return {}
    found: dict[str, Any] = {
        name: size_entry(name, entries[name])
        for name in _EXPERTS
        if name in options and entries.get(name) is not None
    }
    if "norm_topk_prob" in options:
        found["norm_topk_prob"] = flag_entry("norm_topk_prob", entries["norm_topk_prob"])
        dense = entries.get("mlp_only_layers") or []
        found["mlp_only_layers"] = tuple(size_entry("mlp_only_layers", each) for each in dense)
    return found


def _window(family: str, entries: dict[str, Any], sizes: dict[str, Any]) -> dict[str, Any]:
    """The window, and how many blocks have none."""
    options = FAMILIES[family].options
    window = entries.get("sliding_window") if "sliding_window" in options else None
    without = 0
    used = entries.get("use_sliding_window", False) if family.startswith("qwen") else True
    if not flag_entry("use_sliding_window", used):
        window = None
    if "max_window_layers" in options:
        without = size_entry("max_window_layers", entries["max_window_layers"])
        require_size("max_window_layers", without, minimum=0)
    blocks = sizes.get("num_hidden_layers", 32)
    windows = [None if i < without else window for i in range(blocks)]
    require_layer_types(entries.get("layer_types"), windows, "Llama")
    if window is None:
        return {}
    return {"sliding_window": size_entry("sliding_window", window), "max_window_layers": without}


CODEC = Codec(
    model_type="llama",
    config_of=config_of,
    config_text=config_text,
    weight_shapes=weight_shapes,
    # Older files have the frequencies of rotary positions among the weights.
    renamed=lambda stored: {
        key: value for key, value in stored.items() if not key.endswith(".rotary_emb.inv_freq")
    },
    fused_into=_fused_into,
    tied=tied_head,
    changeable=_CHANGEABLE,
    described=lambda config: (
        f"{config.model_type} of num_hidden_layers = {config.num_hidden_layers}"
    ),
)
