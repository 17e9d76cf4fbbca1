"""Maps of weights, both ways, between the book's layers and their counterparts elsewhere.

Those of torch's simplest classes stand here; any other is declared with its layer.

Each map renames, transposes, cuts or joins tensors. It is linear, so it maps gradients as it maps
weights.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from torch import Tensor

Weights: TypeAlias = Mapping[str, Tensor]


@dataclass(frozen=True)
class WeightMap:
    """How the weights of a layer and of its counterpart are made of each other.

    Attributes:
        to_theirs: Makes the counterpart's of ours.
        to_ours: Makes ours of the counterpart's.
    """

    to_theirs: Callable[[Weights], dict[str, Tensor]]
    to_ours: Callable[[Weights], dict[str, Tensor]]


def declare(maps: Mapping[str, WeightMap]) -> None:
    """Makes counterparts known to `to_ours` and `to_theirs`.

    Args:
        maps: By the counterparts' public names.

    Raises:
        ValueError: If one is known, and has another map.
    """
    if taken := sorted(name for name in maps if _MAPS.get(name, maps[name]) is not maps[name]):
        raise ValueError(f"there is a map of weights for {', '.join(taken)} already")
    _MAPS.update(maps)


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
        >>> import torch
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
        >>> import torch
        >>> linear = torch.nn.Linear(5, 7)
        >>> {name: tuple(w.shape) for name, w in to_ours("nn.Linear", linear.state_dict()).items()}
        {'weight': (5, 7), 'bias': (7,)}
    """
    return _map_of(counterpart).to_ours(weights)


def _map_of(counterpart: str) -> WeightMap:
    if counterpart not in _MAPS:
        raise ValueError(f"no counterpart {counterpart!r}; there are {', '.join(_MAPS)}")
    return _MAPS[counterpart]


def renamed(names: Mapping[str, str], weights: Weights) -> dict[str, Tensor]:
    """The weights under new names.

    Args:
        names: For each old name, the new one.
        weights: By their old names, which must be these.

    Raises:
        ValueError: If one is missing, or not known.
    """
    if set(names) != set(weights):
        missing, unknown = sorted(set(names) - set(weights)), sorted(set(weights) - set(names))
        raise ValueError(f"these weights do not fit: missing {missing}, unknown {unknown}")
    return {new: weights[old] for old, new in names.items()}


def same_names(*names: str, optional: tuple[str, ...] = ()) -> WeightMap:
    """A counterpart whose weights have our names and shapes; some of them need not be there."""

    def keep(weights: Weights) -> dict[str, Tensor]:
        present = names + tuple(name for name in optional if name in weights)
        return renamed({name: name for name in present}, weights)

    return WeightMap(keep, keep)


def _transposed(weights: Weights) -> dict[str, Tensor]:
    kept = renamed({"weight": "weight", "bias": "bias"}, weights)
    return kept | {"weight": kept["weight"].t().contiguous()}


def split_off(prefix: str, weights: Weights) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The weights with a prefix, under their names without it, and the others."""
    inside = {name: weight for name, weight in weights.items() if name.startswith(prefix)}
    rest = {name: weight for name, weight in weights.items() if name not in inside}
    return {name.removeprefix(prefix): weight for name, weight in inside.items()}, rest


_MAPS = {
    "nn.LayerNorm": same_names("weight", optional=("bias",)),
    "nn.RMSNorm": same_names("weight"),
    "nn.BatchNorm1d": same_names(
        "weight", "bias", optional=("running_mean", "running_var", "num_batches_tracked")
    ),
    "nn.Linear": WeightMap(_transposed, _transposed),
}

# All that are known, those that are declared later too.
COUNTERPARTS = _MAPS.keys()
