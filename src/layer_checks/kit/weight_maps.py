"""Maps of weights, both ways, between the book's layers and their counterparts elsewhere.

Each map renames, transposes, cuts or joins tensors. It is linear, so it maps gradients as it maps
weights.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from transformer_layers import GPT2Config
from transformer_layers.models.gpt2.checkpoint import HEAD, PREFIX, weight_shapes

Weights: TypeAlias = Mapping[str, Tensor]

_PROJECTIONS = ("query_proj", "key_proj", "value_proj")


@dataclass(frozen=True)
class _Map:
    to_theirs: Callable[[Weights], dict[str, Tensor]]
    to_ours: Callable[[Weights], dict[str, Tensor]]


def to_theirs(counterpart: str, weights: Weights) -> dict[str, Tensor]:
    """Weights of a layer of the book, as a counterpart names and shapes them.

    Args:
        counterpart: Name of a layer, such as `"nn.MultiheadAttention"`; the error for an unknown
            name lists all.
        weights: The state dict of our layer, or gradients by parameter name.

    Returns:
        What the counterpart's `load_state_dict` takes.

    Raises:
        ValueError: If the counterpart is unknown, or a weight is missing or not known to it.

    Examples:
        >>> from transformer_layers import MultiHeadAttention
        >>> ours = MultiHeadAttention(d_model=6, num_heads=2)
        >>> theirs = torch.nn.MultiheadAttention(6, 2, batch_first=True)
        >>> theirs.load_state_dict(to_theirs("nn.MultiheadAttention", ours.state_dict()))
        <All keys matched successfully>
    """
    return _map_of(counterpart).to_theirs(weights)


def to_ours(counterpart: str, weights: Weights) -> dict[str, Tensor]:
    """Weights of a counterpart, as the layer of the book names and shapes them.

    Args:
        counterpart: Name of a layer, such as `"nn.MultiheadAttention"`; the error for an unknown
            name lists all.
        weights: The state dict of the counterpart, or gradients by parameter name.

    Returns:
        What our layer's `load_state_dict` takes.

    Raises:
        ValueError: If the counterpart is unknown, or a weight is missing or not known to us.

    Examples:
        >>> linear = torch.nn.Linear(5, 7)
        >>> {name: tuple(w.shape) for name, w in to_ours("nn.Linear", linear.state_dict()).items()}
        {'weight': (5, 7), 'bias': (7,)}
    """
    return _map_of(counterpart).to_ours(weights)


def _map_of(counterpart: str) -> _Map:
    if counterpart not in _MAPS:
        raise ValueError(f"no counterpart {counterpart!r}; there are {', '.join(_MAPS)}")
    return _MAPS[counterpart]


def _renamed(names: Mapping[str, str], weights: Weights) -> dict[str, Tensor]:
    """The weights under new names; names of ours and theirs must be the same set."""
    if set(names) != set(weights):
        missing, unknown = sorted(set(names) - set(weights)), sorted(set(weights) - set(names))
        raise ValueError(f"these weights do not fit: missing {missing}, unknown {unknown}")
    return {new: weights[old] for old, new in names.items()}


def _same_names(*names: str, optional: tuple[str, ...] = ()) -> _Map:
    def keep(weights: Weights) -> dict[str, Tensor]:
        present = names + tuple(name for name in optional if name in weights)
        return _renamed({name: name for name in present}, weights)

    return _Map(keep, keep)


def _transposed(weights: Weights) -> dict[str, Tensor]:
    kept = _renamed({"weight": "weight", "bias": "bias"}, weights)
    return kept | {"weight": kept["weight"].t().contiguous()}


def _packed(weights: Weights) -> dict[str, Tensor]:
    """Joins the three projections; without biases there is one weight each."""
    parts = ("weight", "bias") if "output_proj.bias" in weights else ("weight",)
    ours = [f"{name}.{part}" for name in (*_PROJECTIONS, "output_proj") for part in parts]
    weights = _renamed({name: name for name in ours}, weights)
    joined = {
        f"in_proj_{part}": torch.cat([weights[f"{name}.{part}"] for name in _PROJECTIONS])
        for part in parts
    }
    return joined | {f"out_proj.{part}": weights[f"output_proj.{part}"] for part in parts}


def _unpacked(weights: Weights) -> dict[str, Tensor]:
    parts = ("weight", "bias") if "in_proj_bias" in weights else ("weight",)
    theirs = [name + part for part in parts for name in ("in_proj_", "out_proj.")]
    weights = _renamed({name: name for name in theirs}, weights)
    thirds = {part: weights[f"in_proj_{part}"].chunk(3) for part in parts}
    ours = {
        f"{name}.{part}": thirds[part][position]
        for position, name in enumerate(_PROJECTIONS)
        for part in parts
    }
    return ours | {f"output_proj.{part}": weights[f"out_proj.{part}"] for part in parts}


_OF_ENCODER_LAYER = {
    f"{ours}.{part}": f"{theirs}.{part}"
    for ours, theirs in (
        ("feed_forward.linear1", "linear1"),
        ("feed_forward.linear2", "linear2"),
        ("norm1", "norm1"),
        ("norm2", "norm2"),
    )
    for part in ("weight", "bias")
}


def _encoder_layer_to_theirs(weights: Weights) -> dict[str, Tensor]:
    attention, rest = _split("self_attention.", weights)
    packed = {f"self_attn.{name}": weight for name, weight in _packed(attention).items()}
    return packed | _renamed(_OF_ENCODER_LAYER, rest)


def _encoder_layer_to_ours(weights: Weights) -> dict[str, Tensor]:
    attention, rest = _split("self_attn.", weights)
    unpacked = {f"self_attention.{name}": weight for name, weight in _unpacked(attention).items()}
    return unpacked | _renamed({theirs: ours for ours, theirs in _OF_ENCODER_LAYER.items()}, rest)


def _split(prefix: str, weights: Weights) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    inside = {name: weight for name, weight in weights.items() if name.startswith(prefix)}
    rest = {name: weight for name, weight in weights.items() if name not in inside}
    return {name.removeprefix(prefix): weight for name, weight in inside.items()}, rest


def _gpt2_names(blocks: int) -> list[str]:
    """The published keys of a model of some blocks."""
    return [name for name, _ in weight_shapes(GPT2Config(n_layer=max(blocks, 1)))]


def _within(prefix: str) -> tuple[str, ...]:
    """The published keys of a part of the first block."""
    return tuple(
        name.removeprefix(prefix) for name in _gpt2_names(blocks=1) if name.startswith(prefix)
    )


def _blocks_in(weights: Weights) -> int:
    return len({name.split(".")[1] for name in weights if name.startswith("h.")})


def _gpt2_model(weights: Weights) -> dict[str, Tensor]:
    return _renamed({name: name for name in _gpt2_names(_blocks_in(weights))}, weights)


def _gpt2_head_to_theirs(weights: Weights) -> dict[str, Tensor]:
    kept = _gpt2_model(weights)
    head = {HEAD: kept["wte.weight"]}
    return {PREFIX + name: weight for name, weight in kept.items()} | head


def _gpt2_head_to_ours(weights: Weights) -> dict[str, Tensor]:
    names = _gpt2_names(_blocks_in(_split(PREFIX, weights)[0]))
    rest = {name: weight for name, weight in weights.items() if name != HEAD}
    kept = _renamed({PREFIX + name: name for name in names}, rest)
    head = weights.get(HEAD)
    if head is not None and not torch.equal(head, kept["wte.weight"]):
        raise ValueError("lm_head.weight differs from wte.weight: our head is the token embedding")
    return kept


_MAPS = {
    "nn.LayerNorm": _same_names("weight", optional=("bias",)),
    "nn.RMSNorm": _same_names("weight"),
    "nn.BatchNorm1d": _same_names(
        "weight", "bias", optional=("running_mean", "running_var", "num_batches_tracked")
    ),
    "nn.Linear": _Map(_transposed, _transposed),
    "nn.MultiheadAttention": _Map(_packed, _unpacked),
    "nn.TransformerEncoderLayer": _Map(_encoder_layer_to_theirs, _encoder_layer_to_ours),
    "transformers.Conv1D": _same_names("weight", "bias"),
    "transformers.GPT2Attention": _same_names(*_within("h.0.attn.")),
    "transformers.GPT2MLP": _same_names(*_within("h.0.mlp.")),
    "transformers.GPT2Block": _same_names(*_within("h.0.")),
    "transformers.GPT2Model": _Map(_gpt2_model, _gpt2_model),
    "transformers.GPT2LMHeadModel": _Map(_gpt2_head_to_theirs, _gpt2_head_to_ours),
}

COUNTERPARTS = tuple(_MAPS)
