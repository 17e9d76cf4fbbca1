"""How the checkpoints of GPT-2 are written: the sizes, and the keys and shapes of the weights."""

import json
import re
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch

from transformer_layers.checkpoints.codec import Codec
from transformer_layers.checkpoints.config_entries import (
    COMPUTED_BY_ALL,
    number_entry,
    require_computed,
    size_entry,
)
from transformer_layers.checkpoints.json_file import shown
from transformer_layers.models.gpt2.config import GPT2Config
from transformer_layers.validation import require_probability

PREFIX = "transformer."
HEAD = "lm_head.weight"

_MASK = re.compile(r"h\.[0-9]+\.attn\.(masked_)?bias")
_SIZES = ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head")
_DROPOUTS = ("embd_pdrop", "attn_pdrop", "resid_pdrop")

# The names that transformers has for the sizes of all models. It takes them for these, too.
_SECOND_NAMES = {
    "hidden_size": "n_embd",
    "max_position_embeddings": "n_positions",
    "num_attention_heads": "n_head",
    "num_hidden_layers": "n_layer",
}

# Options that change what a GPT-2 computes, and the values for which it is what ours computes.
_COMPUTED: dict[str, tuple[object, ...]] = {
    **COMPUTED_BY_ALL,
    "activation_function": ("gelu_new", "gelu_pytorch_tanh"),
    "scale_attn_weights": (True,),
    "scale_attn_by_inverse_layer_idx": (False,),
    "reorder_and_upcast_attn": (False,),
    "add_cross_attention": (False,),
    "tie_word_embeddings": (True,),
    "pruned_heads": ({}, None),
}

_T = TypeVar("_T")


def config_of(entries: dict[str, Any], path: Path) -> GPT2Config:
    """Takes the sizes out of a config, and refuses what :class:`GPT2` does not compute.

    A size, a dropout or an epsilon that is left out has the default of `transformers.GPT2Config`,
    which is that of :class:`GPT2Config`. Keys that change no result are ignored. Of three dropouts
    that differ the one inside the residuals is taken, with a warning: :class:`GPT2` has one, and
    in evaluation there is none.

    Args:
        entries: What `config.json` holds.
        path: The file that they come from, for the error.

    Returns:
        The sizes.

    Raises:
        ValueError: If they are not the config of a GPT-2, or of one with other options.
    """
    entries = _with_first_names(entries, path)
    if entries.get("model_type") != "gpt2":
        raise ValueError(
            f"{path}: model_type must be 'gpt2', got {shown(entries.get('model_type'))}: "
            "these are the weights of another model"
        )
    try:
        config = GPT2Config(
            **{name: size_entry(name, entries[name]) for name in _SIZES if name in entries},
            dropout=_dropout(entries, path),
            layer_norm_epsilon=number_entry(
                "layer_norm_epsilon", entries.get("layer_norm_epsilon", 1e-5)
            ),
        )
        computed = {**_COMPUTED, "n_inner": (None, 4 * config.n_embd)}
        for name, values in computed.items():
            if name in entries:
                require_computed(name, entries[name], values, "GPT2")
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error
    return config


def config_text(config: GPT2Config, dtype: torch.dtype) -> str:
    """The `config.json` of which `transformers.GPT2LMHeadModel` makes the same model.

    The two tokens that begin and end a text are those of GPT-2's own vocabulary where that is the
    vocabulary, and none elsewhere.

    Args:
        config: The sizes.
        dtype: That of the weights.

    Returns:
        What the file is to hold.
    """
    end_of_text = 50256 if config.vocab_size == 50257 else None
    entries = {
        "activation_function": "gelu_new",
        "architectures": ["GPT2LMHeadModel"],
        **dict.fromkeys(_DROPOUTS, config.dropout),
        "bos_token_id": end_of_text,
        "dtype": str(dtype).removeprefix("torch."),
        "eos_token_id": end_of_text,
        "layer_norm_epsilon": config.layer_norm_epsilon,
        "model_type": "gpt2",
        **{name: getattr(config, name) for name in _SIZES},
    }
    return json.dumps(entries, indent=2, sort_keys=True) + "\n"


def weight_shapes(config: GPT2Config) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The key and the shape of each weight, in the order of :class:`GPT2`'s state dict.

    Args:
        config: The sizes.

    Yields:
        Key and shape.
    """
    d = config.n_embd
    block = {
        "ln_1.weight": (d,),
        "ln_1.bias": (d,),
        "attn.c_attn.weight": (d, 3 * d),
        "attn.c_attn.bias": (3 * d,),
        "attn.c_proj.weight": (d, d),
        "attn.c_proj.bias": (d,),
        "ln_2.weight": (d,),
        "ln_2.bias": (d,),
        "mlp.c_fc.weight": (d, 4 * d),
        "mlp.c_fc.bias": (4 * d,),
        "mlp.c_proj.weight": (4 * d, d),
        "mlp.c_proj.bias": (d,),
    }
    yield "wte.weight", (config.vocab_size, d)
    yield "wpe.weight", (config.n_positions, d)
    for i in range(config.n_layer):
        for name, shape in block.items():
            yield f"h.{i}.{name}", shape
    yield "ln_f.weight", (d,)
    yield "ln_f.bias", (d,)


def without_prefix_and_masks(stored: Mapping[str, _T]) -> dict[str, _T]:
    """Renames what a file holds to :class:`GPT2`'s keys.

    A file of `transformers.GPT2LMHeadModel` has `transformer.` before every key but the head's, a
    file of `GPT2Model` has not. Older ones have each block's causal mask among the weights, as
    `attn.bias` and `attn.masked_bias`; it is left out.

    Args:
        stored: What the file holds, by its keys.

    Returns:
        The same, by ours.
    """
    if all(key.startswith(PREFIX) or key == HEAD for key in stored):
        # A head with the prefix stays as it is: there would be two of one name.
        stored = {
            key if key == PREFIX + HEAD else key.removeprefix(PREFIX): value
            for key, value in stored.items()
        }
    return {key: value for key, value in stored.items() if not _MASK.fullmatch(key)}


def _with_first_names(entries: dict[str, Any], path: Path) -> dict[str, Any]:
    for second, first in _SECOND_NAMES.items():
        if second in entries and first in entries:
            raise ValueError(f"{path}: {second} is another name of {first}; keep one of them")
    return {_SECOND_NAMES.get(name, name): value for name, value in entries.items()}


def _dropout(entries: dict[str, Any], path: Path) -> float:
    shares = {name: number_entry(name, entries.get(name, 0.1)) for name in _DROPOUTS}
    for name, share in shares.items():
        require_probability(name, share)
    taken = shares["resid_pdrop"]  # in two of four places
    if len(set(shares.values())) != 1:
        found = ", ".join(f"{name} = {share}" for name, share in shares.items())
        warnings.warn(
            f"{path}: {found}, and GPT2 has one dropout for all its places: in training it is "
            f"{taken}, that of resid_pdrop; evaluation has none",
            stacklevel=2,
        )
    return taken


CODEC = Codec(
    model_type="gpt2",
    config_of=config_of,
    config_text=config_text,
    weight_shapes=weight_shapes,
    renamed=without_prefix_and_masks,
    stored_as=lambda key: PREFIX + key,
    tied=lambda config: {HEAD: "wte.weight"},
    changeable=("dropout", "layer_norm_epsilon"),
    described=lambda config: f"GPT-2 of n_layer = {config.n_layer}",
    layout="GPT-2 stores (in, out), torch.nn.Linear (out, in)",
)
