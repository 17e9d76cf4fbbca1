"""Which of the book's weights each parameter of a reader's layer takes.

A parameter can hold a weight as it is, its transpose, or several projections packed into one; with
an axis for the heads, or of size 1; or only a head's share, where a list holds those of the others.
What the book's layer itself holds packed counts as so many. Every arrangement is linear, so
gradients go the way back. Which arrangement is a layer's, `kit/match_search.py` looks for.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from layer_checks.kit.definitions import Layout
from layer_checks.kit.weight_maps import Fold, Gathering

# Names of the number of heads, in the works that people copy from.
HEADS = ("num_heads", "n_head", "n_heads", "nhead", "heads", "num_attention_heads", "nheads", "h")


# By what packed projections take turns: block after block, or a head's share of each, or a row's.
Turns: TypeAlias = Literal["", "heads", "rows"]


@dataclass(frozen=True)
class Source:
    """What one parameter holds.

    Attributes:
        parts: Names of the book's weights, several where they are packed.
        transposed: Whether it is held as (in, out).
        turns: By what packed projections take turns along the outputs.
        fold: How its axes become two, where there are more.
    """

    parts: tuple[str, ...]
    transposed: bool = False
    turns: Turns = ""
    fold: Fold = ""


@dataclass(frozen=True)
class Match:
    """Sources of a layer's parameters.

    Attributes:
        sources: By the names of the parameters.
        absent: The book's weights that the layer does not have: biases, which count as 0.
        left: Parameters that take nothing.
        how: "by order" or "names=".
        held_in_out: The book's weights that it holds as (in, out).
        layout: How the book's layer holds them.
        contrary: Parameters that hold packed ones in another order than that of their name.
        fits: Whether the values were right with it.
        gathering: Which parameters stand together in a list, and which axes are left out.
        doubted: Whether it takes a name for another than it says, or layouts that are mixed.
    """

    sources: Mapping[str, Source]
    absent: frozenset[str] = frozenset()
    left: tuple[str, ...] = ()
    how: str = "by order"
    held_in_out: frozenset[str] = frozenset()
    layout: Layout = field(default_factory=Layout)
    contrary: tuple[str, ...] = ()
    fits: bool = field(default=False, compare=False)
    gathering: Gathering = field(default_factory=Gathering)
    doubted: bool = field(default=False, compare=False)

    @property
    def complete(self) -> bool:
        """Whether each parameter holds something, and each weight that must be is held."""
        return not self.left and all(map(self.layout.may_lack, self.absent))

    @property
    def twice(self) -> dict[str, str]:
        """Parameters that hold what another one holds as well, and which weight that is."""
        first = {source.parts: name for name, source in reversed([*self.sources.items()])}
        later = {name: each for name, each in self.sources.items() if first[each.parts] != name}
        return {name: ", ".join(each.parts) for name, each in later.items()}

    def weights_for(self, layer: nn.Module, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """What each parameter is to hold; those whose weights are not there are left out."""
        parts, heads = cut(weights, self.layout), heads_of(layer)
        parameters = dict(layer.named_parameters())
        filled = {
            name: (_packed(source, [parts[part] for part in source.parts], heads), source.fold)
            for name, source in self._sources_in(parameters).items()
            if all(part in parts for part in source.parts)
        }
        return self.gathering.spread(filled, parameters)

    def sources_in(self, layer: nn.Module) -> dict[str, Source]:
        """What the parameters hold, by their own names; each of a list holds a share of it."""
        parameters = dict(layer.named_parameters())
        members = self.gathering.members(parameters)
        return {
            own: source
            for name, source in self._sources_in(parameters).items()
            for own in members.get(name, (name,))
        }

    def _sources_in(self, parameters: Mapping[str, Tensor]) -> dict[str, Source]:
        """The sources, with those of biases of a layer that was matched when it had none."""
        found = dict(self.sources)
        for name in self.gathering.members(parameters):
            matrix = found.get(f"{name.removesuffix('bias')}weight")
            if matrix is not None and name.endswith("bias") and name not in {*found, *self.left}:
                biases = tuple(re.sub(r"weight(?=/|$)", "bias", part) for part in matrix.parts)
                if not set(biases) & set(matrix.parts):
                    fold: Fold = "all" if "*" in name else ""
                    found[name] = Source(biases, turns=matrix.turns, fold=fold)
        return found

    def as_ours(
        self,
        layer: nn.Module,
        weights: Mapping[str, Tensor],
        tensors: Mapping[str, Tensor],
        *,
        summed: bool = True,
    ) -> dict[str, Tensor]:
        """Gradients of the layer's parameters, as the book names and shapes these weights.

        Args:
            layer: The reader's.
            weights: The book's.
            tensors: By the names of the reader's parameters.
            summed: Whether what is held twice is the sum of both, as gradients are; else the first.
        """
        sizes = {name: len(part) for name, part in cut(weights, self.layout).items()}
        parts: dict[str, Tensor] = {}
        sources = self._sources_in(dict(layer.named_parameters()))
        folds = {name: source.fold for name, source in sources.items()}
        gathered = self.gathering.folded(tensors, folds)
        for name, source in sources.items():
            if name in gathered and all(part in sizes for part in source.parts):
                its_sizes = [sizes[part] for part in source.parts]
                unpacked = _unpacked(source, gathered[name], its_sizes, heads_of(layer))
                for part, tensor in zip(source.parts, unpacked, strict=True):
                    both = parts[part] + tensor if summed and part in parts else tensor
                    parts[part] = parts.get(part, both) if not summed else both
        return _joined(parts, self.layout)

    def __str__(self) -> str:
        """How the weights were matched, in words: first what is ours, then what is theirs."""
        told = [_told(name, source, self.held_in_out) for name, source in self.sources.items()]
        unlike = _once([text for text in told if text is not None])
        words = [f"{self.how}: {', '.join(unlike)}"] if unlike else []
        if self.absent:
            names = ", ".join(sorted(self.absent))
            words.append(f"without {names}, taken as 0")
        if self.left:
            words.append(f"not loaded: {', '.join(self.left)}")
        return "; ".join(words)


def _once(told: Sequence[str]) -> list[str]:
    """Each line once; a bias, which has no layout, adds nothing to what is said of its matrix."""
    found: dict[str, str] = {}
    for text in told:
        found.setdefault(text.partition(" (")[0], text)
    return list(found.values())


def _told(name: str, source: Source, held_in_out: Collection[str]) -> str | None:
    turned = source.transposed != (source.parts[0].partition("/")[0] in held_in_out)
    if source.parts == (name,) and not turned and not source.fold:
        return None
    packed = len(source.parts) > 1
    name, parts = _without_leaf(name, source.parts)
    text = " + ".join(_of_whole(part) for part in parts)
    details = ["transposed"] if turned else []
    details += ["with an axis for the heads"] if source.fold and "*" not in name else []
    details += [f"packed by {source.turns}" if source.turns else "packed"] if packed else []
    return f"{name} <- {text}" + (f" ({', '.join(details)})" if details else "")


def _without_leaf(name: str, parts: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Names of a weight and of its bias in one, where they differ in nothing else."""
    for leaf in ("weight", "bias"):
        units = [re.sub(rf"[._]{leaf}(?=/|$)", "", part) for part in parts]
        unit = re.sub(rf"[._]{leaf}$", "", name)
        if unit != name and all(one != part for one, part in zip(units, parts, strict=True)):
            return unit, units
    return name, parts


def _of_whole(part: str) -> str:
    whole, _, third = part.partition("/")
    return f"{third} of {whole}" if third else whole


def whole(parts: Iterable[str]) -> set[str]:
    """The weights of the book that parts belong to."""
    return {part.partition("/")[0] for part in parts}


def heads_of(layer: nn.Module) -> int:
    """The number of heads that a layer, a part of it or its configuration keeps; 1 if none."""
    places = list(layer.modules())
    configs = [vars(module)["config"] for module in places if "config" in vars(module)]
    for place in (*places, *configs):
        for name in HEADS:
            number = getattr(place, name, None)
            if isinstance(number, int) and number > 0:
                return number
    return 1


def cut(weights: Mapping[str, Tensor], layout: Layout) -> dict[str, Tensor]:
    """The book's weights with matrices as (out, in), and what is packed in its parts."""
    parts: dict[str, Tensor] = {}
    for name, weight in weights.items():
        turned = weight.t() if layout.is_in_out(name, weight) else weight
        if several := layout.packed_in(name):
            shares = turned.chunk(len(several))
            parts |= {f"{name}/{one}": share for one, share in zip(several, shares, strict=True)}
        else:
            parts[name] = turned
    return parts


def _joined(parts: Mapping[str, Tensor], layout: Layout) -> dict[str, Tensor]:
    joined: dict[str, Tensor] = {}
    for name in parts:
        all_of_it, _, one = name.partition("/")
        several = [f"{all_of_it}/{each}" for each in layout.packed_in(all_of_it)]
        if not one:
            joined[name] = parts[name]
        elif all_of_it not in joined and all(each in parts for each in several):
            joined[all_of_it] = torch.cat([parts[each] for each in several])
    return {
        name: tensor.t() if layout.is_in_out(name, tensor) else tensor
        for name, tensor in joined.items()
    }


def _packed(source: Source, parts: Sequence[Tensor], heads: int) -> Tensor:
    if source.turns:
        turns = number_of_turns(source.turns, [len(part) for part in parts], heads)
        joined = torch.cat([part.unflatten(0, (turns, -1)) for part in parts], dim=1).flatten(0, 1)
    else:
        joined = torch.cat(list(parts)) if len(parts) > 1 else parts[0]
    return joined.t() if source.transposed else joined


def _unpacked(source: Source, tensor: Tensor, sizes: Sequence[int], heads: int) -> Sequence[Tensor]:
    joined = tensor.t() if source.transposed else tensor
    if not source.turns:
        return joined.split(list(sizes)) if len(sizes) > 1 else [joined]
    turns = number_of_turns(source.turns, sizes, heads)
    shares = joined.unflatten(0, (turns, -1)).split([size // turns for size in sizes], dim=1)
    return [share.flatten(0, 1) for share in shares]


def number_of_turns(turns: Turns, sizes: Sequence[int], heads: int) -> int:
    """How often each of several packed projections has its turn.

    Where some have fewer heads than others, as keys and values may, these have one in each turn.

    Args:
        turns: By what they take turns.
        sizes: How many rows each of them has.
        heads: The number of heads of the widest.
    """
    return min(sizes) if turns == "rows" else heads * min(sizes) // max(sizes)
