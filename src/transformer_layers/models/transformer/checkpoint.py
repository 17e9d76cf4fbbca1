"""How the checkpoints of a Transformer are written: as Marian's, or under names of our own."""

import dataclasses
import json
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch

from transformer_layers.checkpoints.codec import Codec
from transformer_layers.checkpoints.config_entries import (
    COMPUTED_BY_ALL,
    flag_entry,
    number_entry,
    require_computed,
    size_entry,
)
from transformer_layers.checkpoints.json_file import shown
from transformer_layers.models.transformer.config import TransformerConfig

OURS = "transformer"
MARIAN = "marian"

# The names that Marian's files have for parts of ours, longest first; those of a layer follow.
_NAMES = {
    "embedding.": "model.shared.",
    "encoder.": "model.encoder.",
    "decoder.": "model.decoder.",
    "logits_bias": "final_logits_bias",
}
_PARTS = {
    "self_attention": "self_attn",
    "cross_attention": "encoder_attn",
    "query_proj": "q_proj",
    "key_proj": "k_proj",
    "value_proj": "v_proj",
    "output_proj": "out_proj",
    "linear1": "fc1",
    "linear2": "fc2",
    "norm": "layer_norm",
}
_NORMS = {
    "encoder": {"norm1": "self_attn_layer_norm", "norm2": "final_layer_norm"},
    "decoder": {
        "norm1": "self_attn_layer_norm",
        "norm2": "encoder_attn_layer_norm",
        "norm3": "final_layer_norm",
    },
}
_TWINS = (
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
    "lm_head.weight",
)
_TABLES = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")

_SIZES = {  # ours, and Marian's, with the default of `transformers.MarianConfig`
    "vocab_size": ("vocab_size", 58101),
    "d_model": ("d_model", 1024),
    "num_layers": ("encoder_layers", 12),
    "num_heads": ("encoder_attention_heads", 16),
    "d_ff": ("encoder_ffn_dim", 4096),
    "decoder_layers": ("decoder_layers", 12),
    "decoder_heads": ("decoder_attention_heads", 16),
    "decoder_d_ff": ("decoder_ffn_dim", 4096),
    "max_seq": ("max_position_embeddings", 1024),
    "start_token": ("decoder_start_token_id", 58100),
    "end_token": ("eos_token_id", 0),
    "padding_token": ("pad_token_id", 58100),
}
_ACTIVATIONS = {"relu": "relu", "silu": "silu", "swish": "silu", "gelu": "gelu"}

# Options that change what a Marian model computes, and the values for which ours computes it.
# How much dropout drops is no such option: it is off in evaluation.
_COMPUTED: dict[str, tuple[object, ...]] = {
    **COMPUTED_BY_ALL,
    "share_encoder_decoder_embeddings": (True,),
    "tie_word_embeddings": (True,),
    "normalize_before": (False,),
    "normalize_embedding": (False,),
    "add_final_layer_norm": (False,),
    "add_bias_logits": (False,),
    "static_position_embeddings": (True,),
}

# Options that change which tokens `generate` of transformers writes, and the values for which ours
# writes the same. The way of searching (beams, penalty, length) is an argument of ours, not read.
_GENERATION: dict[str, tuple[object, ...]] = {
    "begin_suppress_tokens": (None, []),
    "diversity_penalty": (None, 0.0, 0),
    "encoder_no_repeat_ngram_size": (None, 0),
    "encoder_repetition_penalty": (None, 1.0, 1),
    "exponential_decay_length_penalty": (None,),
    "force_bos_token_to_be_generated": (None, False),
    "force_words_ids": (None,),
    "forced_bos_token_id": (None,),
    "guidance_scale": (None, 1.0, 1),
    "min_length": (None, 0),
    "min_new_tokens": (None, 0),
    "no_repeat_ngram_size": (None, 0),
    "num_beam_groups": (None, 1),
    "repetition_penalty": (None, 1.0, 1),
    "sequence_bias": (None,),
    "stop_strings": (None,),
    "suppress_tokens": (None, []),
    "watermarking_config": (None,),
}
_LAYERDROPS = ("encoder_layerdrop", "decoder_layerdrop")
_NEEDED = ("decoder_start_token_id", "eos_token_id")

_T = TypeVar("_T")


def config_of(entries: dict[str, Any], path: Path) -> TransformerConfig:
    """Takes sizes and options out of a config, and refuses what :class:`Transformer` does not do.

    A size that is left out has the default of `transformers.MarianConfig`, or of
    :class:`TransformerConfig`; an option of `generate` that is left out is off. Shares of dropout
    are taken; where whole layers are dropped in training there is a warning, since ours are not.
    Other keys that change no result in evaluation are ignored.

    Args:
        entries: What `config.json` holds.
        path: The file that they come from, for the error.

    Returns:
        The sizes and options.

    Raises:
        ValueError: If they are not the config of such a model, or of one with other options.
    """
    kinds = {MARIAN: _of_marian, OURS: _of_ours}
    kind = entries.get("model_type")
    if not isinstance(kind, str) or kind not in kinds:
        raise ValueError(
            f"{path}: model_type must be one of {', '.join(kinds)}, got {shown(kind)}: these are "
            "the weights of another model"
        )
    try:
        config = kinds[kind](entries)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error
    left_out = {name: entries[name] for name in _LAYERDROPS if entries.get(name)}
    if kind == MARIAN and left_out:
        found = ", ".join(f"{name} = {shown(value)}" for name, value in left_out.items())
        warnings.warn(
            f"{path}: {found}, and Transformer drops no layers: training has them all, as "
            "evaluation has",
            stacklevel=2,
        )
    return config


def config_text(config: TransformerConfig, dtype: torch.dtype) -> str:
    """The `config.json` of a model: Marian's, if it is one, of which `transformers` makes the same.

    Args:
        config: The sizes and options.
        dtype: That of the weights.

    Returns:
        What the file is to hold.
    """
    entries = _marian_entries(config) if _is_marian(config) else _our_entries(config)
    entries["dtype"] = str(dtype).removeprefix("torch.")
    return json.dumps(entries, indent=2, sort_keys=True) + "\n"


def with_generation(entries: dict[str, Any], generation: dict[str, Any]) -> dict[str, Any]:
    """Puts what `generation_config.json` says in the place of what a Marian's config says.

    As in `transformers`: an option that is not in the file is off, also if the config has it.

    Args:
        entries: What `config.json` holds.
        generation: What `generation_config.json` holds.

    Returns:
        The entries that count.
    """
    if entries.get("model_type") != MARIAN:
        return entries
    names = (*_NEEDED, "bad_words_ids", "forced_eos_token_id", "renormalize_logits", *_GENERATION)
    told = {name: generation.get(name) for name in names}
    if generation.get("pad_token_id") is not None:
        told["pad_token_id"] = generation["pad_token_id"]
    return {**entries, **told}


def weight_shapes(config: TransformerConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The key and the shape of each weight, in the order of :class:`Transformer`'s state dict.

    Args:
        config: The sizes and options.

    Yields:
        Key and shape.
    """
    d = config.d_model
    if config.logits_bias:
        yield "logits_bias", (1, config.vocab_size)
    yield "embedding.weight", (config.vocab_size, d)
    stacks = (
        ("encoder", config.num_layers, config.d_ff, ("self_attention",)),
        (
            "decoder",
            config.layers_of_decoder,
            config.d_ff_of_decoder,
            ("self_attention", "cross_attention"),
        ),
    )
    for stack, layers, d_ff, attentions in stacks:
        layer = dict(_layer_shapes(d, d_ff, attentions))
        for i in range(layers):
            for name, shape in layer.items():
                yield f"{stack}.layers.{i}.{name}", shape
        if config.pre_norm:
            yield f"{stack}.norm.weight", (d,)
            yield f"{stack}.norm.bias", (d,)


def stored_as(key: str) -> str:
    """The name of a weight in a file, Marian's.

    Args:
        key: Its key in the state dict.

    Examples:
        >>> stored_as("decoder.layers.0.norm2.weight")
        'model.decoder.layers.0.encoder_attn_layer_norm.weight'
    """
    stack = key.split(".", maxsplit=1)[0]
    for ours, theirs in _NAMES.items():
        if key.startswith(ours):
            key = theirs + key.removeprefix(ours)
            break
    parts = {**_PARTS, **_NORMS.get(stack, {})}
    names = [parts.get(each, each) for each in key.split(".") if each != "feed_forward"]
    return ".".join(names)


def renamed(stored: Mapping[str, _T]) -> dict[str, _T]:
    """Gives the weights of a file our keys, and leaves out tables of positions.

    Args:
        stored: What the file holds, by its keys.

    Returns:
        The same, by ours.
    """
    return {_key(name): value for name, value in stored.items() if name not in _TABLES}


def _key(name: str) -> str:
    """Our key of what a file calls by a name; the name itself if we have none."""
    theirs = name.split(".")
    stack = theirs[1] if len(theirs) > 1 else ""
    ours = {value: key for key, value in {**_PARTS, **_NORMS.get(stack, {})}.items()}
    for key, prefix in _NAMES.items():
        if name.startswith(prefix):
            parts = [ours.get(each, each) for each in name.removeprefix(prefix).split(".")]
            linear = [i for i, part in enumerate(parts) if part in ("linear1", "linear2")]
            for i in linear:
                parts.insert(i, "feed_forward")
            found = key + ".".join(parts)
            return found if stored_as(found) == name else name
    return name


def _layer_shapes(
    d: int, d_ff: int, attentions: tuple[str, ...]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    for attention in attentions:
        for name in ("query", "key", "value", "output"):
            yield f"{attention}.{name}_proj.weight", (d, d)
            yield f"{attention}.{name}_proj.bias", (d,)
    yield "feed_forward.linear1.weight", (d_ff, d)
    yield "feed_forward.linear1.bias", (d_ff,)
    yield "feed_forward.linear2.weight", (d, d_ff)
    yield "feed_forward.linear2.bias", (d,)
    for i in range(1, len(attentions) + 2):
        yield f"norm{i}.weight", (d,)
        yield f"norm{i}.bias", (d,)


def _is_marian(config: TransformerConfig) -> bool:
    return (
        config.sines_first
        and config.logits_bias
        and not config.pre_norm
        and config.max_seq is not None
        and config.end_token not in config.banned_tokens  # there transformers does not ban it
    )


def _of_marian(entries: dict[str, Any]) -> TransformerConfig:
    for name in _NEEDED:
        if entries.get(name) is None:
            raise ValueError(f"{name} is missing, without which no sequence begins or none ends")
    for name in (*_NEEDED, "pad_token_id", "forced_eos_token_id"):
        if isinstance(entries.get(name), list):
            raise ValueError(f"{name} is {shown(entries[name])}, and Transformer takes one token")
    sizes = {
        ours: size_entry(theirs, entries.get(theirs, default))
        for ours, (theirs, default) in _SIZES.items()
    }
    banned = _banned(entries.get("bad_words_ids"), sizes["end_token"])
    computed = {
        **_COMPUTED,
        **_GENERATION,
        "decoder_vocab_size": (None, sizes["vocab_size"]),
        "renormalize_logits": (None, False, True),
    }
    for name, values in computed.items():
        if name in entries:
            require_computed(name, entries[name], values, "Transformer")
    activation = entries.get("activation_function", "gelu")
    if not isinstance(activation, str) or activation not in _ACTIVATIONS:
        raise ValueError(
            f"activation_function is {shown(activation)}, and Transformer computes "
            f"{', '.join(_ACTIVATIONS)} only"
        )
    forced = entries.get("forced_eos_token_id")
    dropout = number_entry("dropout", entries.get("dropout", 0.1))
    of_weights = number_entry("attention_dropout", entries.get("attention_dropout", 0.0))
    return TransformerConfig(
        **sizes,
        dropout=dropout,
        attention_dropout=None if of_weights == dropout else of_weights,
        activation_dropout=number_entry(
            "activation_dropout", entries.get("activation_dropout", 0.0)
        ),
        activation=_ACTIVATIONS[activation],  # type: ignore[arg-type]  # one of the three
        scaled_embedding=flag_entry("scale_embedding", entries.get("scale_embedding", False)),
        sines_first=True,
        logits_bias=True,
        banned_tokens=banned,
        renormalized=bool(banned) and entries.get("renormalize_logits") is True,
        must_end=forced is not None,
        forced_token=None if forced == sizes["end_token"] else forced,
    )


def _of_ours(entries: dict[str, Any]) -> TransformerConfig:
    fields = {field.name for field in dataclasses.fields(TransformerConfig)}
    unknown = sorted(entries.keys() - fields - {"model_type", "dtype"})
    if unknown:
        raise ValueError(f"{shown(unknown)} is no entry of a Transformer's config")
    found = {name: value for name, value in entries.items() if name in fields}
    found["banned_tokens"] = tuple(found.get("banned_tokens", ()))
    return TransformerConfig(**found)


def _banned(words: object, end: int) -> tuple[int, ...]:
    if words is None:
        return ()
    is_known = isinstance(words, list) and all(
        isinstance(word, list) and len(word) == 1 for word in words
    )
    if not is_known:
        raise ValueError(
            f"bad_words_ids is {shown(words)}, and Transformer bans single tokens only"
        )
    # The end is not banned in transformers, also where it is among them.
    return tuple(word[0] for word in words if word[0] != end)  # type: ignore[attr-defined]  # a list, see above


def _marian_entries(config: TransformerConfig) -> dict[str, Any]:
    values = {
        **{name: getattr(config, name) for name in _SIZES},
        "decoder_layers": config.layers_of_decoder,
        "decoder_heads": config.heads_of_decoder,
        "decoder_d_ff": config.d_ff_of_decoder,
    }
    forced = config.end_token if config.forced_token is None else config.forced_token
    entries: dict[str, Any] = {
        "activation_dropout": config.activation_dropout,
        "activation_function": config.activation,
        "architectures": ["MarianMTModel"],
        "attention_dropout": config.dropout_of_attention,
        "bos_token_id": None,
        "decoder_vocab_size": config.vocab_size,
        "dropout": config.dropout,
        "forced_eos_token_id": forced if config.must_end else None,
        "is_encoder_decoder": True,
        "model_type": MARIAN,
        "scale_embedding": config.scaled_embedding,
        "share_encoder_decoder_embeddings": True,
        "tie_word_embeddings": True,
        **{theirs: values[ours] for ours, (theirs, _) in _SIZES.items()},
    }
    if config.banned_tokens:
        entries["bad_words_ids"] = [[token] for token in config.banned_tokens]
        entries["renormalize_logits"] = config.renormalized
    return entries


def _our_entries(config: TransformerConfig) -> dict[str, Any]:
    return {"model_type": OURS, **dataclasses.asdict(config)}


CODEC = Codec(
    model_type=MARIAN,
    config_of=config_of,
    config_text=config_text,
    with_generation=with_generation,
    weight_shapes=weight_shapes,
    renamed=renamed,
    stored_as=stored_as,
    tied=lambda config: dict.fromkeys(_TWINS, "embedding.weight"),
    changeable=("dropout", "attention_dropout", "activation_dropout"),
    described=lambda config: f"Transformer of {config.num_layers} encoder layers",
)
