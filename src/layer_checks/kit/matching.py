"""Which of the book's weights each parameter of a reader's layer takes.

A parameter can hold a weight as it is, its transpose, or several projections packed into one. The
book's own packed projection, `c_attn`, counts as three. Every arrangement is linear, so gradients
go the way back.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, permutations

import torch
from torch import Tensor, nn

# Names of the number of heads, in the works that people copy from.
HEADS = ("num_heads", "n_head", "n_heads", "nhead", "heads", "num_attention_heads", "nheads", "h")

_GAIN = {"weight", "gamma", "gain", "scale", "g", "a", "a_2", "alpha", "w"}
_SHIFT = {"bias", "beta", "shift", "offset", "b", "b_2"}
_LEAF = re.compile(r"^(?:(.*?)[._])?(weight|gamma|gain|scale|alpha|bias|beta|shift|offset)$")
_FILLING = {"proj", "projection", "linear", "linears", "lin", "layer", "net", "w", "to", "fc"}
_FILLING |= {"dense", "transform", "fn", "mat", "matrix", "c"}
_ROLES = {
    "query": {"q", "query", "queries", "wq"},
    "key": {"k", "key", "keys", "wk"},
    "value": {"v", "value", "values", "wv"},
    "output": {"o", "out", "output", "wo", "combine", "concat"},
    "norm1": {"1", "attn", "attention", "input"},
    "norm2": {"2", "ff", "ffn", "mlp", "post", "feedforward", "forward", "output"},
}
_PACKED = {"qkv", "wqkv", "in", "attn", "query_key_value", "kv"}
_PROJECTIONS = ("query", "key", "value")
_MOST = 150  # ways that are tried


@dataclass(frozen=True)
class Source:
    """What one parameter holds.

    Attributes:
        parts: Names of the book's weights, several where they are packed.
        transposed: Whether it is held as (in, out).
        by_head: Whether packed projections are cut by heads first.
    """

    parts: tuple[str, ...]
    transposed: bool = False
    by_head: bool = False


@dataclass(frozen=True)
class Match:
    """Sources of a layer's parameters.

    Attributes:
        sources: By the names of the parameters.
        absent: The book's weights that the layer does not have: biases, which count as 0.
        left: Parameters that take nothing.
        how: "by order" or "names=".
        held_in_out: The book's weights that it holds as (in, out).
        fits: Whether the values were right with it.
    """

    sources: Mapping[str, Source]
    absent: frozenset[str] = frozenset()
    left: tuple[str, ...] = ()
    how: str = "by order"
    held_in_out: frozenset[str] = frozenset()
    fits: bool = field(default=False, compare=False)

    def weights_for(self, layer: nn.Module, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """What each parameter is to hold; those whose weights are not there are left out."""
        parts = cut(weights)
        return {
            name: _packed(source, [parts[part] for part in source.parts], heads_of(layer))
            for name, source in self.sources.items()
            if all(part in parts for part in source.parts)
        }

    def as_ours(self, layer: nn.Module, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Gradients of the layer's parameters, as the book names and shapes the weights."""
        parts: dict[str, Tensor] = {}
        for name, source in self.sources.items():
            if name in tensors:
                unpacked = _unpacked(source, tensors[name], heads_of(layer))
                parts |= dict(zip(source.parts, unpacked, strict=True))
        return _joined(parts)

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
    if source.parts == (name,) and not turned:
        return None
    packed = len(source.parts) > 1
    name, parts = _without_leaf(name, source.parts)
    text = " + ".join(_of_whole(part) for part in parts)
    details = ["transposed"] if turned else []
    details += ["packed by heads"] if source.by_head else ["packed"] if packed else []
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


def _whole(parts: Iterable[str]) -> set[str]:
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


def cut(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The book's weights with matrices as (out, in), and `c_attn` in its three parts."""
    parts: dict[str, Tensor] = {}
    for name, weight in weights.items():
        turned = weight.t() if _held_in_out(name, weights) else weight
        if _is_packed(name):
            thirds = turned.chunk(3)
            parts |= {
                f"{name}/{one}": third for one, third in zip(_PROJECTIONS, thirds, strict=True)
            }
        else:
            parts[name] = turned
    return parts


def _joined(parts: Mapping[str, Tensor]) -> dict[str, Tensor]:
    joined: dict[str, Tensor] = {}
    for name in parts:
        whole, _, third = name.partition("/")
        if not third:
            joined[whole] = parts[name]
        elif whole not in joined and all(f"{whole}/{one}" in parts for one in _PROJECTIONS):
            joined[whole] = torch.cat([parts[f"{whole}/{one}"] for one in _PROJECTIONS])
    return {
        name: tensor.t() if _held_in_out(name, joined) else tensor
        for name, tensor in joined.items()
    }


def _is_packed(name: str) -> bool:
    return "c_attn" in name.split(".")


def _held_in_out(name: str, weights: Mapping[str, Tensor]) -> bool:
    """Whether the book holds a matrix as `Conv1D` does; so it does its only one."""
    if weights[name].ndim != 2:
        return False
    return name == "weight" or bool({"c_attn", "c_proj", "c_fc"} & set(name.split(".")))


def _packed(source: Source, parts: Sequence[Tensor], heads: int) -> Tensor:
    joined = torch.cat(list(parts)) if len(parts) > 1 else parts[0]
    if source.by_head:
        joined = joined.unflatten(0, (len(parts), heads, -1)).transpose(0, 1).flatten(0, 2)
    return joined.t() if source.transposed else joined


def _unpacked(source: Source, tensor: Tensor, heads: int) -> Sequence[Tensor]:
    joined = tensor.t() if source.transposed else tensor
    count = len(source.parts)
    if source.by_head:
        joined = joined.unflatten(0, (heads, count, -1)).transpose(0, 1).flatten(0, 2)
    return joined.chunk(count) if count > 1 else [joined]


@dataclass(frozen=True)
class _Unit:
    """A matrix with its bias, or a gain with its shift: what belongs together."""

    name: str
    matrix: str | None
    vectors: tuple[str, ...]


def matches(
    parameters: Mapping[str, Tensor],
    weights: Mapping[str, Tensor],
    names: Mapping[str, str] | None = None,
) -> Iterator[Match]:
    """The ways to match, the likeliest first: a name that is understood is never doubted.

    Args:
        parameters: The reader's.
        weights: The book's.
        names: For some of the book's names, the reader's; several for one that holds them packed.

    Returns:
        At most some hundred ways.
    """
    parts = cut(weights)
    named = named_by_hand(names or {}, parts)
    ours = _units({name: part for name, part in parts.items() if name not in named})
    theirs = _units({name: each for name, each in parameters.items() if name not in named.values()})
    held_in_out = frozenset(name for name in weights if _held_in_out(name, weights))
    by_hand = list(_by_hand(named, parameters, parts))
    if names and not by_hand:
        return
    found = islice(_assigned(theirs, ours, parameters, parts), _MOST)
    for sources in found:
        for fixed in by_hand or [{}]:
            how = "names=" if fixed else "by order"
            yield replace(
                _complete(fixed | sources, parameters, parts, how), held_in_out=held_in_out
            )


def named_by_hand(names: Mapping[str, str], parts: Mapping[str, Tensor]) -> dict[str, str]:
    """The mapping with each name of a weight that is cut replaced by those of its parts."""
    named: dict[str, str] = {}
    for ours, theirs in names.items():
        if ours in parts:
            named[ours] = theirs
        else:
            named |= {part: theirs for part in parts if part.startswith(f"{ours}/")}
    return named


def _complete(
    sources: Mapping[str, Source],
    parameters: Mapping[str, Tensor],
    parts: Mapping[str, Tensor],
    how: str,
) -> Match:
    used = {part for source in sources.values() for part in source.parts}
    left = tuple(name for name in parameters if name not in sources)
    partly = _whole(used)
    absent = frozenset(_whole(set(parts) - used) - partly)
    return Match(dict(sources), absent, left, how)


def _by_hand(
    named: Mapping[str, str], parameters: Mapping[str, Tensor], parts: Mapping[str, Tensor]
) -> Iterator[dict[str, Source]]:
    held: dict[str, list[str]] = {}
    for ours, theirs in named.items():
        held.setdefault(theirs, []).append(ours)
    ways: list[dict[str, Source]] = [{}] if held else []
    for name, several in held.items():
        options = _options(parameters[name], tuple(several), parts)
        ways = [way | {name: option} for way in ways for option in options]
    yield from ways


def _units(tensors: Mapping[str, Tensor]) -> list[_Unit]:
    """Groups parameters by the part of their names before `weight`, `bias` and such."""
    groups: dict[str, list[str]] = {}
    for name in tensors:
        whole, slash, third = name.partition("/")
        leaf = _LEAF.match(whole)
        unit = (leaf.group(1) or "") if leaf else whole
        groups.setdefault(unit + slash + third, []).append(name)
    units = []
    for unit, members in groups.items():
        matrices = [name for name in members if tensors[name].ndim == 2]
        vectors = tuple(name for name in members if tensors[name].ndim == 1)
        matrix = matrices[0] if len(matrices) == 1 else None
        units += [_Unit(unit, matrix, vectors)] if matrix or not matrices else []
        if len(matrices) > 1:
            units += [_Unit(name, name, ()) for name in matrices]
            units += [_Unit(name, None, (name,)) for name in vectors]
    loose = [unit for unit in units if unit.matrix is None and len(unit.vectors) == 1]
    if len(loose) == len(units) and len(units) > 1:  # a norm with a_2 and b_2
        return [_Unit("", None, tuple(unit.vectors[0] for unit in loose))]
    return units


def _assigned(
    theirs: Sequence[_Unit],
    ours: Sequence[_Unit],
    parameters: Mapping[str, Tensor],
    parts: Mapping[str, Tensor],
) -> Iterator[dict[str, Source]]:
    """Every way to give each of their units one of ours, or several packed."""
    if not theirs:
        yield {}
        return
    first, *rest = theirs
    options = _units_for(first, ours)
    found_one = False
    for several in options:
        remaining = [unit for unit in ours if unit not in several]
        for sources in _sources(first, several, parameters, parts):
            found_one = True
            for others in _assigned(rest, remaining, parameters, parts):
                yield sources | others
    if not found_one:  # it takes nothing, and the report says so
        yield from _assigned(rest, ours, parameters, parts)


def _units_for(unit: _Unit, ours: Sequence[_Unit]) -> list[tuple[_Unit, ...]]:
    """Those that a unit may hold: what its name says, or else any, in the order of ours."""
    same = [each for each in ours if (each.matrix is None) == (unit.matrix is None)]
    exact = [each for each in same if _suffix(unit.name, each.name)]
    if exact:
        return [(exact[0],)]
    words = _words(unit.name)
    if unit.matrix is not None and not words & _ROLES["output"] and _may_pack(unit.name, words):
        packed = [
            several for count in (3, 2) for several in permutations(_projections(same), count)
        ]
        if packed and (words & {"qkv", "wqkv", "kv"} or "in" in words or "attn" in words):
            of_name = [each for each in packed if len(each) == (2 if "kv" in words else 3)]
            return of_name or packed
        return [*((each,) for each in same), *packed]
    role = _role(unit)
    by_role = [each for each in same if role is not None and _role(each) == role]
    if by_role:
        return [(each,) for each in by_role]
    taken = [each for each in same if role is None or _role(each) in (None, role)]
    return [(each,) for each in taken or same]


def _may_pack(name: str, words: set[str]) -> bool:
    return not any(words & _ROLES[role] for role in _PROJECTIONS) or "query_key_value" in name


def _projections(units: Sequence[_Unit]) -> list[_Unit]:
    return [unit for unit in units if _role(unit) in _PROJECTIONS][:3]


def _suffix(name: str, known: str) -> bool:
    return bool(known) and (name == known or name.endswith(f".{known}"))


def _words(name: str) -> set[str]:
    last = name.rpartition("/")[2] if "/" in name else name.rpartition(".")[2]
    last = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[a-zA-Z])(?=\d)", "_", last).lower()
    words = {word for word in last.split("_") if word}
    kept = words - _FILLING
    return {"qkv"} if {"query", "key", "value"} <= kept else kept


def _role(unit: _Unit) -> str | None:
    words = _words(unit.name)
    norms = ("norm1", "norm2")
    for role, known in _ROLES.items():
        if words & known and (role in norms) == (unit.matrix is None):
            return role
    if unit.matrix is not None and unit.name.rpartition(".")[2] in ("c_proj", "proj"):
        return None if "mlp" in unit.name else "output"
    return None


def _sources(
    unit: _Unit,
    several: Sequence[_Unit],
    parameters: Mapping[str, Tensor],
    parts: Mapping[str, Tensor],
) -> Iterator[dict[str, Source]]:
    """The ways for one unit to hold some of ours: layouts of a matrix, orders of two vectors."""
    vectors = [each.vectors for each in several]
    if unit.matrix is None:
        yield from _of_vectors(unit.vectors, vectors[0], parameters, parts)
        return
    names = tuple(each.matrix for each in several if each.matrix is not None)
    biases = tuple(each[0] for each in vectors if each)
    for source in _options(parameters[unit.matrix], names, parts):
        found = {unit.matrix: source}
        if unit.vectors and len(biases) == len(names):
            bias = Source(biases, by_head=source.by_head)
            if parameters[unit.vectors[0]].numel() == sum(parts[each].numel() for each in biases):
                found[unit.vectors[0]] = bias
        yield found


def _options(
    parameter: Tensor, names: tuple[str, ...], parts: Mapping[str, Tensor]
) -> list[Source]:
    """How a parameter can hold these parts, by its shape."""
    held = [parts[name] for name in names]
    if parameter.ndim != held[0].ndim or len({tuple(each.shape[1:]) for each in held}) > 1:
        return []
    shape = (sum(each.shape[0] for each in held), *held[0].shape[1:])
    found = [Source(names)] if tuple(parameter.shape) == shape else []
    if parameter.ndim == 2 and tuple(parameter.shape) == shape[::-1]:
        found.append(Source(names, transposed=True))
    if len(names) > 1:
        found += [Source(each.parts, each.transposed, by_head=True) for each in found]
    return found


def _of_vectors(
    theirs: Sequence[str],
    ours: Sequence[str],
    parameters: Mapping[str, Tensor],
    parts: Mapping[str, Tensor],
) -> Iterator[dict[str, Source]]:
    fixed = {}
    for name in theirs:
        leaf = name.rpartition(".")[2].lower()
        for known in (_GAIN, _SHIFT):
            fits = [each for each in ours if each.rpartition(".")[2] in known]
            if leaf in known and fits and parameters[name].shape == parts[fits[0]].shape:
                fixed[name] = Source((fits[0],))
    open_theirs = [name for name in theirs if name not in fixed]
    taken = {source.parts[0] for source in fixed.values()}
    open_ours = [name for name in ours if name not in taken]
    for order in permutations(open_ours, min(len(open_theirs), len(open_ours))):
        pairs = list(zip(open_theirs, order, strict=False))
        if all(parameters[name].shape == parts[known].shape for name, known in pairs):
            yield fixed | {name: Source((known,)) for name, known in pairs}
