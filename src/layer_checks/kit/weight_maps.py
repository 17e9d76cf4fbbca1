"""Maps of weights, both ways, between the book's layers and their counterparts elsewhere.

Those of torch's simplest classes stand here; any other is declared with its layer.

Each map renames, transposes, cuts or joins tensors. It is linear, so it maps gradients as it maps
weights.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import torch
from torch import Tensor

Weights: TypeAlias = Mapping[str, Tensor]
# How the axes of a parameter become those of a weight: the first two are one; the second and the
# third; the first and the third; all.
Fold: TypeAlias = Literal["", "first", "last", "outer", "all"]


@dataclass(frozen=True)
class WeightMap:
    """How the weights of a layer and of its counterpart are made of each other.

    Attributes:
        to_theirs: Makes the counterpart's of ours.
        to_ours: Makes ours of the counterpart's.
    """

    to_theirs: Callable[[Weights], dict[str, Tensor]]
    to_ours: Callable[[Weights], dict[str, Tensor]]


@dataclass(frozen=True)
class Gathering:
    """Which parameters of a layer are one weight, and which axes of theirs say nothing.

    A list holds the same for each head: its members' names differ in a number, which is `*` in the
    name of them all. They are stacked along a new first axis. A convolution of width 1 has an axis
    of size 1, which is left out.

    Attributes:
        lists: The names that stand for several.
        left_out: Axes of size 1, by name.
    """

    lists: frozenset[str] = frozenset()
    left_out: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def members(self, parameters: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """For each weight the parameters that hold it, in the order of their numbers."""
        patterns = {name: re.compile(_pattern(name)) for name in self.lists}
        found: dict[str, list[tuple[int, str]]] = {}
        for own in parameters:
            fits = [(name, pattern.fullmatch(own)) for name, pattern in patterns.items()]
            name, match = next(((name, fit) for name, fit in fits if fit), (own, None))
            found.setdefault(name, []).append((int(match[1]) if match else 0, own))
        return {name: tuple(own for _, own in sorted(each)) for name, each in found.items()}

    def stacked(self, tensors: Weights) -> dict[str, Tensor]:
        """The parameters, or their gradients, with those of a list in one."""
        found = {}
        for name, own in self.members(tensors).items():
            each = [tensors[member] for member in own]
            whole = torch.stack(each) if name in self.lists else each[0]
            found[name] = _without_axes(whole, self.left_out.get(name, ()))
        return found

    def folded(self, tensors: Weights, folds: Mapping[str, Fold]) -> dict[str, Tensor]:
        """The same with as many axes as a weight has."""
        stacked = self.stacked(tensors)
        return {name: folded(each, folds.get(name, "")) for name, each in stacked.items()}

    def spread(
        self, weights: Mapping[str, tuple[Tensor, Fold]], parameters: Weights
    ) -> dict[str, Tensor]:
        """The way back, from weights to the parameters that hold them.

        Args:
            weights: The weights, and how the axes of a parameter became theirs.
            parameters: The parameters, for their shapes.
        """
        spread: dict[str, Tensor] = {}
        for name, own in self.members(parameters).items():
            if name in weights:
                weight, fold = weights[name]
                values = self._in_shapes(name, weight, fold, [parameters[each] for each in own])
                spread |= dict(zip(own, values, strict=True))
        return spread

    def _in_shapes(
        self, name: str, weight: Tensor, fold: Fold, shapes: Sequence[Tensor]
    ) -> Sequence[Tensor]:
        if name not in self.lists and name not in self.left_out and not fold:
            return [weight]
        sizes = [each.numel() for each in shapes]
        numbers = torch.arange(sum(sizes)).split(sizes)
        places = [each.view(like.shape) for each, like in zip(numbers, shapes, strict=True)]
        whole = torch.stack(places) if name in self.lists else places[0]
        place = folded(_without_axes(whole, self.left_out.get(name, ())), fold)
        if place.shape != weight.shape:
            return [weight for _ in shapes]  # which has the wrong shape, and is told so
        flat = torch.empty(sum(sizes), dtype=weight.dtype)
        flat[place.flatten()] = weight.flatten()
        values = zip(flat.split(sizes), shapes, strict=True)
        return [each.view(like.shape) for each, like in values]


def gatherings(parameters: Weights, *, of_model: bool = False) -> list[Gathering]:
    """The ways to see a layer's parameters: each by itself, and, where there are lists, those.

    Args:
        parameters: By name.
        of_model: Whether the first number of a name is that of a block, and no place in a list.
    """
    found = [Gathering(frozenset(), _left_out(Gathering().stacked(parameters)))]
    lists = _lists(parameters, of_model)
    if lists:
        stacked = Gathering(lists).stacked(parameters)
        found.append(Gathering(lists, _left_out(stacked)))
    return found


def folded(tensor: Tensor, fold: Fold) -> Tensor:
    """A parameter with the axes of a weight."""
    if fold == "all":
        return tensor.flatten()
    if fold == "first":
        return tensor.flatten(0, -2)
    if fold == "last":
        return tensor.flatten(1)
    return tensor.movedim(0, 1).flatten(1) if fold == "outer" else tensor


def folds_of(axes: int, wanted: int) -> tuple[Fold, ...]:
    """The ways for a parameter of so many axes to be a weight of another number of them."""
    if axes == wanted:
        return ("",)
    if axes > 1 and wanted == 1:
        return ("all",)
    return ("first", "last", "outer") if axes > wanted > 1 else ()


def _pattern(name: str) -> str:
    return re.escape(name).replace(r"\*", r"(\d+)")


def _lists(parameters: Weights, of_model: bool) -> frozenset[str]:
    """Names that differ in one number, which counts from 0, and whose shapes are the same."""
    groups: dict[str, list[tuple[int, str]]] = {}
    for name in parameters:
        numbers = list(re.finditer(r"(?<![^._])\d+(?![^._])|\d+(?=[._]|$)", name))
        for number in numbers[1:] if of_model else numbers:
            template = f"{name[: number.start()]}*{name[number.end() :]}"
            groups.setdefault(template, []).append((int(number[0]), name))
    found: dict[str, list[str]] = {}
    taken: set[str] = set()
    for template, members in groups.items():
        places = sorted(number for number, _ in members)
        shapes = {tuple(parameters[name].shape) for _, name in members}
        free = not taken & {name for _, name in members}
        if len(places) > 1 and places == list(range(len(places))) and len(shapes) == 1 and free:
            found[template] = [name for _, name in members]
            taken |= set(found[template])
    return frozenset(found)


def _left_out(tensors: Weights) -> dict[str, tuple[int, ...]]:
    """Axes of size 1 of what has more than two axes; of what has two, and is a vector."""
    found = {}
    for name, each in tensors.items():
        ones = tuple(axis for axis, size in enumerate(each.shape) if size == 1)
        if ones and each.ndim > 1 and len(ones) < each.ndim:
            found[name] = ones
    return found


def _without_axes(tensor: Tensor, axes: Sequence[int]) -> Tensor:
    for axis in sorted(axes, reverse=True):
        tensor = tensor.select(axis, 0)
    return tensor


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
