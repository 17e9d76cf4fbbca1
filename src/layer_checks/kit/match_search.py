"""The search for the match of a reader's parameters and the book's weights, by names and shapes.

A name that is understood is believed; where none is, the shapes leave ways that are tried one after
the other. Any projections of one input can be packed into one parameter, in any order. Where
nothing fits, names are doubted as well, and such a match says so.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, islice, permutations

import torch
from torch import Tensor

from layer_checks.kit.definitions import Layer
from layer_checks.kit.matching import Match, Source, Turns, cut, number_of_turns, whole
from layer_checks.kit.weight_maps import Gathering, folded, folds_of, gatherings

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
_PROJECTIONS = ("query", "key", "value")
_LETTERS = re.compile(r"w?[qkv]{2,3}")  # wqkv, kv
_MATRIX = torch.empty(0, 0)
_PAIR = re.compile(r"^(.*\.)?(?:w|b|weight|bias|kernel)_(\w*[a-z]\w*)$", re.IGNORECASE)
_MOST = 150  # ways that are tried where names are believed
_FEW = 60  # where they are not, or where layouts are mixed
_OF_MODEL = 24  # where each is a whole model, whose names are believed
_IN_BLOCKS = 1000  # among which that of another block is looked for


@dataclass(frozen=True)
class _Unit:
    """A matrix with its bias, or a gain with its shift: what belongs together."""

    name: str
    matrix: str | None
    vectors: tuple[str, ...]


class Ways(Iterator[Match]):
    """The ways to match.

    Attributes:
        cut_short: Whether there were more of the likely ones than are tried.
    """

    def __init__(self, stages: Iterator[tuple[Iterator[Match], int, bool]]) -> None:
        self.cut_short = False
        self._ways = self._all_of(stages)

    def __next__(self) -> Match:
        """The next likeliest."""
        return next(self._ways)

    def _all_of(self, stages: Iterator[tuple[Iterator[Match], int, bool]]) -> Iterator[Match]:
        seen: set[tuple[tuple[str, Source], ...]] = set()
        for ways, most, likely in stages:
            for count, match in enumerate(ways):
                if count == most:
                    self.cut_short |= likely
                    break
                key = tuple(sorted(match.sources.items(), key=lambda each: each[0]))
                if key not in seen:
                    seen.add(key)
                    yield match


def matches(
    parameters: Mapping[str, Tensor],
    weights: Mapping[str, Tensor],
    names: Mapping[str, str] | None = None,
    *,
    layer: Layer,
    heads: int = 1,
) -> Ways:
    """The ways to match, the likeliest first.

    First a name that is understood is believed, and square matrices are all held in one layout;
    then layouts are mixed, and then names are doubted.

    Args:
        parameters: The reader's.
        weights: The book's.
        names: For some of the book's names, the reader's; several for one that holds them packed.
        layer: What is known of the book's layer: how it holds weights, what others call them.
        heads: The number of heads that the reader's layer keeps; 1 if it keeps none.

    Returns:
        At most some hundred ways.
    """

    def stages() -> Iterator[tuple[Iterator[Match], int, bool]]:
        likely_ones = ((False, (False, True)),)
        all_of_them = (*likely_ones, (False, (None,)), (True, (False, True)))
        of_model = any(_block(name) for name in weights)
        ways = gatherings(parameters, of_model=of_model)
        most = _OF_MODEL if of_model else _MOST
        for doubts, squares in likely_ones if of_model else all_of_them:
            for square in squares:
                for gathering in ways:
                    found = _ways(parameters, weights, names or {}, layer, heads, gathering)
                    likely = square is not None and not doubts
                    yield found(square, doubts), most if likely else _FEW, likely

    return Ways(stages())


def _ways(
    parameters: Mapping[str, Tensor],
    weights: Mapping[str, Tensor],
    names: Mapping[str, str],
    layer: Layer,
    heads: int,
    gathering: Gathering,
) -> Callable[[bool | None, bool], Iterator[Match]]:
    layout = layer.layout
    parts, theirs = cut(weights, layout), gathering.stacked(parameters)
    named = named_by_hand(names, parts)
    held_in_out = frozenset(name for name, each in weights.items() if layout.is_in_out(name, each))
    flat = _flat(parameters, theirs, parts, gathering)
    our_units = _units({name: part for name, part in parts.items() if name not in named})
    their_units = _units(
        {name: each for name, each in theirs.items() if name not in named.values()}, flat
    )

    def found(square: bool | None, doubts: bool) -> Iterator[Match]:
        search = _Search(theirs, parts, layer.words, layer.parts, heads, flat, square, doubts)
        by_hand = list(search.by_hand(named))
        if names and not by_hand:
            return
        for sources in search.assigned(their_units, our_units):
            for fixed in by_hand or [{}]:
                how = "names=" if fixed else "by order"
                match = _complete(fixed | sources, theirs, parts, how, layout.shared)
                yield replace(
                    match,
                    held_in_out=held_in_out,
                    layout=layout,
                    contrary=search.contrary_to_names(sources),
                    gathering=gathering,
                    doubted=doubts,
                )

    return found


def _flat(
    parameters: Mapping[str, Tensor],
    theirs: Mapping[str, Tensor],
    parts: Mapping[str, Tensor],
    gathering: Gathering,
) -> frozenset[str]:
    """Those with several axes that are vectors: biases of lists, or with an axis for the heads."""
    sizes = {each.numel() for each in parts.values() if each.ndim == 1}
    own = gathering.members(parameters)
    found = set()
    for name, each in theirs.items():
        of_list = name in gathering.lists and parameters[own[name][0]].ndim == 1
        bias = each.ndim > 1 and each.numel() in sizes and (_words(name) or [""])[0] in _SHIFT
        if of_list or bias:
            found.add(name)
    return frozenset(found)


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
    shared: Collection[str],
) -> Match:
    used = {part for source in sources.values() for part in source.parts}
    left = [name for name in parameters if name not in sources]
    twice = {
        name: Source((part,))
        for part in shared
        for name in left
        if _block(name) is None and parameters[name].shape == parts[part].shape
    }
    left = [name for name in left if name not in twice]
    absent = frozenset(whole(set(parts) - used) - whole(used))
    return Match(dict(sources) | twice, absent, tuple(left), how)


def _units(tensors: Mapping[str, Tensor], flat: Collection[str] = ()) -> list[_Unit]:
    """Groups parameters by the part of their names before `weight`, `bias` and such."""
    groups: dict[str, list[str]] = {}
    pairs = _pairs(tensors, flat)
    for name in tensors:
        whole, slash, third = name.partition("/")
        leaf = _LEAF.match(whole)
        unit = pairs.get(name) or ((leaf.group(1) or "") if leaf else whole)
        groups.setdefault(unit + slash + third, []).append(name)
    units = []
    for unit, members in groups.items():
        vectors = tuple(name for name in members if tensors[name].ndim == 1 or name in flat)
        matrices = [name for name in members if tensors[name].ndim > 1 and name not in flat]
        matrix = matrices[0] if len(matrices) == 1 else None
        units += [_Unit(unit, matrix, vectors)] if matrix or not matrices else []
        if len(matrices) > 1:
            units += [_Unit(name, name, ()) for name in matrices]
            units += [_Unit(name, None, (name,)) for name in vectors]
    loose = [unit for unit in units if unit.matrix is None and len(unit.vectors) == 1]
    if len(loose) == len(units) and len(units) > 1:  # a norm with a_2 and b_2
        return [_Unit("", None, tuple(unit.vectors[0] for unit in loose))]
    return units


def _pairs(tensors: Mapping[str, Tensor], flat: Collection[str]) -> dict[str, str]:
    """What w_q and b_q have in common, where both are there: in one module, or in two."""
    found: dict[str, str] = {}
    for of_one_module in (True, False):
        groups: dict[str, list[str]] = {}
        for name in tensors.keys() - found.keys():
            if fits := _PAIR.match(name):
                module = (fits[1] or "") if of_one_module else ""
                groups.setdefault(f"{module}{fits[2]}", []).append(name)
        for unit, members in groups.items():
            kinds = sorted(tensors[each].ndim > 1 and each not in flat for each in members)
            if kinds == [False, True]:
                found |= dict.fromkeys(members, unit)
    return found


@dataclass(frozen=True)
class _Search:
    """What is known for a search.

    Attributes:
        parameters: The reader's, those of a list in one.
        parts: Those of the book's weights.
        words: What others call them.
        modules: What others call the modules that hold them.
        heads: The reader's number of heads.
        flat: The reader's vectors that have several axes.
        square: Whether square matrices are held as (in, out); None for each as it may be.
        doubts: Whether names count for nothing.
    """

    parameters: Mapping[str, Tensor]
    parts: Mapping[str, Tensor]
    words: Mapping[str, Collection[str]]
    modules: Mapping[str, Collection[str]]
    heads: int
    flat: Collection[str] = ()
    square: bool | None = None
    doubts: bool = False

    def by_hand(self, named: Mapping[str, str]) -> Iterator[dict[str, Source]]:
        """The ways that names given by hand leave: which layout it is."""
        held: dict[str, list[str]] = {}
        for ours, theirs in named.items():
            held.setdefault(theirs, []).append(ours)
        ways: list[dict[str, Source]] = [{}] if held else []
        for name, several in held.items():
            options = self._options(name, tuple(several))
            ways = [way | {name: option} for way in ways for option in options]
        yield from ways

    def assigned(
        self,
        theirs: Sequence[_Unit],
        ours: Sequence[_Unit],
        chosen: Mapping[str, frozenset[tuple[str, Source]]] | None = None,
    ) -> Iterator[dict[str, Source]]:
        """Every way to give each of their units one of ours, or several packed.

        Args:
            theirs: The units that are not settled yet.
            ours: Those that are free.
            chosen: What those of a block hold: in the other blocks they hold the same.
        """
        if not theirs:
            yield {}
            return
        first, *rest = theirs
        chosen, name = chosen or {}, _of_any_block(first.name)
        ways = self._ways_of(first, ours)
        if name in chosen:
            known = list(islice(ways, _IN_BLOCKS))
            as_before = [way for way in known if _of_any_blocks(way[0]) == chosen[name]]
            ways = iter(as_before) if as_before else chain(known, ways)
        found_one = False
        for sources, remaining in ways:
            found_one = True
            also = {name: _of_any_blocks(sources)} if name != first.name else {}
            for others in self.assigned(rest, remaining, {**chosen, **also}):
                yield sources | others
        if not found_one:  # it takes nothing, and the report says so
            yield from self.assigned(rest, ours, chosen)

    def _ways_of(
        self, unit: _Unit, ours: Sequence[_Unit]
    ) -> Iterator[tuple[dict[str, Source], list[_Unit]]]:
        """What a unit of theirs may hold, and which of ours are free then."""
        for several in self._units_for(unit, ours):
            remaining = [each for each in ours if each not in several]
            for sources in self._sources(unit, several):
                yield sources, remaining

    def contrary_to_names(self, sources: Mapping[str, Source]) -> tuple[str, ...]:
        """Those that hold packed ones in another order than that of their name."""
        found = []
        for name, source in sources.items():
            (theirs,) = _units({name: self.parameters[name]}, self.flat)
            ours = _units({part: self.parts[part] for part in source.parts})
            places = [self._place_in(theirs.name, each) for each in ours if theirs.matrix]
            known = [place for place in places if place is not None]
            if known != sorted(known):
                found.append(theirs.name)
        return tuple(found)

    def _units_for(self, unit: _Unit, ours: Sequence[_Unit]) -> Iterator[tuple[_Unit, ...]]:
        """Those that a unit may hold: what its name says, or else any, in the order of ours."""
        of_its_kind = [each for each in ours if (each.matrix is None) == (unit.matrix is None)]
        if self.doubts:
            yield from ((each,) for each in of_its_kind)
            if unit.matrix is not None:
                yield from self._packed_in_any_order(unit, of_its_kind)
            return
        same = self._of_its_module(unit, of_its_kind)
        exact = [each for each in same if _suffix(unit.name, each.name)][:1]
        role = self._role(unit)
        by_role = exact or [each for each in same if role is not None and self._role(each) == role]
        free = [each for each in same if role is None or self._role(each) in (None, role)]
        if unit.matrix is None:
            yield from ((each,) for each in by_role or free or same)
            return
        named = [] if exact else list(self._packed_by_name(unit, same))
        named = named or [(each,) for each in by_role if self._options_of(unit, (each,))]
        if named:
            yield from named
            return
        if not by_role or (role == "output" and not exact):  # a "proj" may be any projection
            yield from ((each,) for each in free or same)
        yield from self._packed_in_any_order(unit, same)

    def _of_its_module(self, unit: _Unit, ours: Sequence[_Unit]) -> Sequence[_Unit]:
        """Those of the module of ours that its own speaks of; all where it speaks of none.

        Those of a block of a model are looked for in the block of its number.
        """
        ours = [each for each in ours if _block(each.name) == _block(unit.name)] or ours
        spoken = {word for module in unit.name.split(".")[:-1] for word in _words(module)}
        names = {name for name, known in self.modules.items() if spoken & set(known)}
        return [each for each in ours if each.name.partition(".")[0] in names] or ours

    def _packed_by_name(self, unit: _Unit, ours: Sequence[_Unit]) -> Iterator[tuple[_Unit, ...]]:
        """Those of ours of which its name speaks, two or more of one input, in its order first."""
        places = {
            each: place for each in ours if (place := self._place_in(unit.name, each)) is not None
        }
        for group in _of_one_input(list(places), self.parts):
            if len(group) > 1:
                in_order = sorted(group, key=lambda each: places[each])
                for several in permutations(in_order):
                    if self._options_of(unit, several):
                        yield several

    def _packed_in_any_order(
        self, unit: _Unit, ours: Sequence[_Unit]
    ) -> Iterator[tuple[_Unit, ...]]:
        """Any two or more of one input whose sizes add up.

        Of one module, or else of all; without what comes last, or else with it.
        """
        inner = [each for each in ours if self._role(each) != "output"]
        for among, of_one_module in ((inner, True), (inner, False), (ours, False)):
            found = False
            for group in _of_one_input(among, self.parts, of_one_module):
                for several in self._adding_up(unit, group):
                    found = True
                    yield several
            if found:
                return

    def _adding_up(self, unit: _Unit, group: Sequence[_Unit]) -> Iterator[tuple[_Unit, ...]]:
        sizes = sorted(_size(each, self.parts) for each in group)
        parameter = self.parameters[unit.matrix or ""]
        folds = folds_of(parameter.ndim, 2)
        wanted = {size for fold in folds for size in folded(parameter, fold).shape}
        for count in range(len(group), 1, -1):
            least, most = sum(sizes[:count]), sum(sizes[-count:])
            if not any(least <= size <= most for size in wanted):
                continue
            for chosen in combinations(group, count):
                if self._options_of(unit, chosen):
                    yield from permutations(chosen)

    def _options_of(self, unit: _Unit, several: Sequence[_Unit]) -> list[Source]:
        return self._options(unit.matrix or "", tuple(each.matrix or "" for each in several))

    def _sources(self, unit: _Unit, several: Sequence[_Unit]) -> Iterator[dict[str, Source]]:
        """The ways for a unit to hold some of ours: layouts of a matrix, orders of two vectors."""
        vectors = [each.vectors for each in several]
        if unit.matrix is None:
            yield from self._of_vectors(unit.vectors, vectors[0])
            return
        biases = tuple(each[0] for each in vectors if each)
        for source in self._options_of(unit, several):
            found = {unit.matrix: source}
            if unit.vectors and len(biases) == len(several):
                size = sum(self.parts[each].numel() for each in biases)
                if self.parameters[unit.vectors[0]].numel() == size:
                    found[unit.vectors[0]] = self._vector(unit.vectors[0], biases, source.turns)
                elif _block(unit.name) is not None:  # of a model, which holds each bias
                    continue
            yield found

    def _vector(self, name: str, parts: tuple[str, ...], turns: Turns = "") -> Source:
        fold = folds_of(self.parameters[name].ndim, 1)[0]
        return Source(parts, turns=turns, fold=fold)

    def _options(self, name: str, parts: tuple[str, ...]) -> list[Source]:
        """How a parameter can hold these parts, by its shape."""
        held = [self.parts[part] for part in parts]
        if len({tuple(each.shape[1:]) for each in held}) > 1:
            return []
        found: list[Source] = []
        for fold in folds_of(self.parameters[name].ndim, held[0].ndim):
            shape = tuple(folded(self.parameters[name], fold).shape)
            found += [replace(each, fold=fold) for each in self._layouts(shape, parts, held)]
        return found

    def _layouts(
        self, shape: tuple[int, ...], parts: tuple[str, ...], held: Sequence[Tensor]
    ) -> list[Source]:
        """How a matrix or a vector of that shape can hold them."""
        sizes = [len(each) for each in held]
        wanted = (sum(sizes), *held[0].shape[1:])
        found = [Source(parts)] if shape == wanted else []
        if len(shape) == 2 and shape == wanted[::-1]:
            found.append(Source(parts, transposed=True))
        if len(found) == 2 and self.square is not None:
            found = [each for each in found if each.transposed == self.square]
        if len(parts) > 1 and (turns := self._turns(parts, sizes)):
            found += [replace(each, turns=turns) for each in found]
        return found

    def _turns(self, parts: Sequence[str], sizes: Sequence[int]) -> Turns:
        """By what these would take turns: projections of attention by heads, others by rows."""
        of_heads = all(
            self._role(each) in _PROJECTIONS for each in _units(dict.fromkeys(parts, _MATRIX))
        )
        turns: Turns = "heads" if of_heads else "rows"
        number = number_of_turns(turns, sizes, self.heads)
        fits = number > 1 and all(size % number == 0 for size in sizes)
        return turns if fits else ""

    def _of_vectors(
        self, theirs: Sequence[str], ours: Sequence[str]
    ) -> Iterator[dict[str, Source]]:
        fixed = {}
        for name in theirs:
            leaf = name.rpartition(".")[2].lower()
            for known in (_GAIN, _SHIFT):
                fits = [each for each in ours if each.rpartition(".")[2] in known]
                if leaf in known and fits and self._have_one_shape(name, fits[0]):
                    fixed[name] = self._vector(name, (fits[0],))
        open_theirs = [name for name in theirs if name not in fixed]
        taken = {source.parts[0] for source in fixed.values()}
        open_ours = [name for name in ours if name not in taken]
        for order in permutations(open_ours, min(len(open_theirs), len(open_ours))):
            pairs = list(zip(open_theirs, order, strict=False))
            if all(self._have_one_shape(*pair) for pair in pairs):
                yield fixed | {name: self._vector(name, (known,)) for name, known in pairs}

    def _place_in(self, name: str, ours: _Unit) -> int | None:
        """The place in a name of the word that speaks of one of ours, None where none does."""
        own = _last(ours.name)
        known = {*_words(own), *self.words.get(own, ()), *_ROLES.get(self._role(ours) or "", ())}
        words: list[str] = []
        for word in _words(name):
            words += word.removeprefix("w") if _LETTERS.fullmatch(word) else [word]
        return next((place for place, word in enumerate(words) if word in known), None)

    def _role(self, unit: _Unit) -> str | None:
        """What a unit is for, as its name says: a name of ours, or what many layers have."""
        last, words = _last(unit.name), set(_words(unit.name))
        kinds = {
            role: own
            for role, own in self.words.items()
            if ("norm" in role) == (unit.matrix is None)
        }
        whole_name = (role for role, own in kinds.items() if last in (role, *own))
        in_words = (role for role, own in kinds.items() if words & set(own))
        if (found := next(whole_name, None) or next(in_words, None)) is not None:
            return found
        for role, known in _ROLES.items():
            if words & known and role.startswith("norm") == (unit.matrix is None):
                return role
        if unit.matrix is not None and last in ("c_proj", "proj"):
            return None if "mlp" in unit.name else "output"
        return None

    def _have_one_shape(self, name: str, part: str) -> bool:
        return self.parameters[name].numel() == self.parts[part].numel()


def _of_one_input(
    units: Sequence[_Unit], parts: Mapping[str, Tensor], of_one_module: bool = True
) -> list[list[_Unit]]:
    """Matrices that take inputs of one size, and stand side by side in one module."""
    groups: dict[tuple[str, int], list[_Unit]] = {}
    for unit in units:
        module = re.sub(r"[^./]*$", "", unit.name) if of_one_module else ""
        groups.setdefault((module, parts[unit.matrix or ""].shape[-1]), []).append(unit)
    return list(groups.values())


def _block(name: str) -> str | None:
    """The number of the block that a name speaks of, where the names of models have one."""
    return next((part for part in name.split(".") if part.isdecimal()), None)


def _of_any_block(name: str) -> str:
    """A name without the number of the block that it speaks of."""
    return ".".join("*" if part.isdecimal() else part for part in name.split("."))


def _of_any_blocks(sources: Mapping[str, Source]) -> frozenset[tuple[str, Source]]:
    """Sources without the numbers of blocks."""
    return frozenset(
        (_of_any_block(name), replace(each, parts=tuple(map(_of_any_block, each.parts))))
        for name, each in sources.items()
    )


def _size(unit: _Unit, parts: Mapping[str, Tensor]) -> int:
    return len(parts[unit.matrix or ""])


def _suffix(name: str, known: str) -> bool:
    return bool(known) and (name == known or name.endswith(f".{known}"))


def _last(name: str) -> str:
    return re.split(r"[./]", name)[-1]


def _words(name: str) -> list[str]:
    """The words of a name that say something, in its order."""
    last = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[a-zA-Z])(?=\d)", "_", _last(name)).lower()
    return [word for word in last.split("_") if word and word not in _FILLING]
