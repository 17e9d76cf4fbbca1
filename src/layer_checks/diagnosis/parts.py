"""Which part of a composed layer differs first, and what it is called with."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from layer_checks.diagnosis.examples import with_weights_of
from layer_checks.diagnosis.recording import Call
from layer_checks.diagnosis.sandbox import OutOfTime
from layer_checks.evidence.randomness import seeded
from layer_checks.kit.arguments import signature_of
from layer_checks.kit.candidates import counterparts, randn64, weights_of, width_of
from layer_checks.kit.definitions import Layer
from layer_checks.kit.matching import Match, whole
from layer_checks.kit.model_configs import EPS, READ
from layer_checks.kit.oracles import own_eps, set_eps
from layer_checks.kit.rotations import each_rotation


@dataclass(frozen=True)
class _Seen:
    """The first call of a part: its arguments and its result."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    output: Any


@dataclass(frozen=True)
class Difference:
    """What differs first.

    Attributes:
        text: In a sentence; empty for a layer that has no parts.
        ours: The smallest part whose output differs though its input does not; None if none does.
        whole: What it is a part of.
        x: Its input.
        output: The candidate's.
        after: How many parts answered as they should before.
    """

    text: str = ""
    ours: nn.Module | None = None
    whole: nn.Module | None = None
    x: Any = None
    output: Any = None
    after: int = 0


def first_difference(
    layer: Layer, theirs: nn.Module, match: Match | None, built_with: Call, called_with: Call
) -> Difference:
    """What differs first.

    Args:
        layer: What the candidate is to be.
        theirs: The candidate's layer, with its weights.
        match: How these are matched.
        built_with: The book's arguments of the constructor.
        called_with: The book's arguments of a call.
    """
    right = with_weights_of(layer, theirs, match, built_with)
    if right is None:
        return Difference()
    places = _places(theirs, right, match)
    if len([name for name in places if "." not in name]) < 2 and len(places) < 4:
        return Difference()
    _with_its_eps(right, theirs, places)
    seen = _seen(theirs, places, called_with)
    compared, first = _as_far_as_alike(right, places, seen, called_with)
    if first:
        if not (name := compared.differs):
            return Difference(first, after=len(compared.said))
        x = next(iter(_tensors(compared.ours[name])), None)
        output = _tensor(compared.theirs[name].output)
        ours = right.get_submodule(name)
        return Difference(first, ours, right, x, output, len(compared.said))
    rest = [name for name in _with_weights(right) if not compared.covers(name)]
    if not rest:
        return Difference("each part gives what it should; what is done with their outputs differs")
    told = ", ".join(compared.said)
    return Difference(
        f"called and answering as they should: {told}; not compared: {', '.join(rest)}"
    )


def _as_far_as_alike(
    right: nn.Module, places: Mapping[str, str], theirs: Mapping[str, "_Seen"], call: Call
) -> tuple["_Compared", str]:
    """The comparison, and what differs first, by the rotation with which more parts agree."""
    found: list[tuple[_Compared, str]] = []
    for _ in each_rotation(right):
        ours = _seen(right, {name: name for name in places}, call)
        compared = _Compared(right, places, ours, theirs)
        found.append((compared, compared.first_in("")))
        if not found[-1][1]:
            break
    return max(found, key=lambda each: (not each[1], each[0].alike))


@dataclass
class _Compared:
    """The parts of ours beside theirs.

    Attributes:
        right: The book's layer.
        places: For each of its parts the module of theirs.
        ours: The first call of each part of ours, in the order in which they end.
        theirs: That of each part of theirs.
        said: The parts that were compared, and agree.
        differs: The smallest part whose output differs though its input does not.
    """

    right: nn.Module
    places: Mapping[str, str]
    ours: Mapping[str, _Seen]
    theirs: Mapping[str, _Seen]
    said: list[str] = field(default_factory=list)
    differs: str = ""

    @property
    def alike(self) -> int:
        """How many parts have the same output."""
        both = self.ours.keys() & self.theirs.keys()
        outputs = ((self.ours[name].output, self.theirs[name].output) for name in both)
        return sum(_same(*map(_tensor, each)) for each in outputs)

    def first_in(self, place: str) -> str:
        """The first difference among the parts inside a part; empty if there is none."""
        for name in self._parts_of(place):
            if name not in self.theirs:
                inside = [each for each in self.theirs if each.startswith(f"{name}.")]
                found = self.first_in(name) if inside else f"{self._named(name)} is not called"
            else:
                found = self._difference_of(name)
            if found:
                return found
            self.said.append(self._named(name))
        return ""

    def covers(self, name: str) -> bool:
        """Whether a part was compared, or all that is inside it."""
        said = {each.split(" ")[0] for each in self.said}
        inside = [each for each in self.places if each.startswith(f"{name}.")]
        return name in said or (bool(inside) and all(each in self.theirs for each in inside))

    def _parts_of(self, place: str) -> list[str]:
        """The parts directly inside a part that are called, in their order."""
        inside = [name for name in self.ours if name.startswith(f"{place}." if place else "")]
        inside = [name for name in inside if name != place]
        return [
            name
            for name in inside
            if not any(name.startswith(f"{other}.") for other in inside if other != name)
        ]

    def _difference_of(self, name: str) -> str:
        said, ours, theirs = self._named(name), self.ours[name], self.theirs[name]
        alike = _of_one_form(ours, theirs)
        wrong = _wrong_argument(self.right.get_submodule(name), ours, theirs)
        if alike and wrong:
            look = self._where_to_look(name) if wrong.endswith(_VALUES) else ""
            return f"{said} is the first part that is called otherwise: {wrong}{look}"
        if _same(_tensor(ours.output), _tensor(theirs.output)):
            return ""
        inside = self.first_in(name) if alike else ""
        if "; inside it, " in inside:  # which says it of a smaller part
            return inside
        if alike and not self.differs:
            self.differs = name
        inside = f"; inside it, {inside.removeprefix(f'{name}.')}" if inside else ""
        given = "its input is the same" if alike else "its inputs have another form"
        return f"{said} is the first part whose output differs; {given}{inside}"

    def _where_to_look(self, name: str) -> str:
        """Where what a part is given goes wrong: behind the last part that answered rightly."""
        if not self.said:
            return "; look before it"
        last = self.said[-1].removeprefix(f"{name.rpartition('.')[0]}.")
        return f"; look between {last} and it"

    def _named(self, name: str) -> str:
        place = self.places[name]
        return name if place == name else f"{name} (your {place})"


def _places(theirs: nn.Module, right: nn.Module, match: Match | None) -> dict[str, str]:
    """For each part of ours with weights, the module of theirs that holds these, and no others."""
    weights = weights_of(right)
    if match is None:
        held = {name: {known} for name, known in counterparts(theirs, weights).items()}
    else:
        held = {name: whole(each.parts) for name, each in match.sources_in(theirs).items()}
    found: dict[str, str] = {}
    for name, part in right.named_modules():
        own = {f"{name}.{each}" for each, _ in part.named_parameters()}
        names = [each for each, known in held.items() if known & own]
        if not name or not own or not names or any(held[each] - own for each in names):
            continue
        path = ".".join(_common([each.split(".")[:-1] for each in names]))
        inside = [each for each, _ in theirs.named_parameters() if each.startswith(f"{path}.")]
        if path and not set(inside) - set(names):
            found[name] = path
    return found


def _with_its_eps(right: nn.Module, theirs: nn.Module, places: Mapping[str, str]) -> None:
    """Gives our norms the eps of theirs, where these do not take it from a configuration."""
    read = vars(theirs).get(READ)
    if read is None or read & EPS:
        return
    for name, place in places.items():
        ours, its = right.get_submodule(name), theirs.get_submodule(place)
        if hasattr(ours, "eps"):
            x = 1e-3 * randn64(4, 2, width_of(ours))
            with torch.no_grad(), suppress(Exception):  # a reader's norm can raise anything
                set_eps(ours, own_eps(its, ours, x))


def _common(paths: Sequence[Sequence[str]]) -> list[str]:
    """With what all of them begin."""
    shared = itertools.takewhile(lambda parts: len(set(parts)) == 1, zip(*paths, strict=False))
    return [parts[0] for parts in shared]


def _seen(module: nn.Module, places: Mapping[str, str], call: Call) -> dict[str, _Seen]:
    """The first calls of parts, in their order."""
    found: dict[str, _Seen] = {}
    with _watched(module, places, found), torch.no_grad(), seeded(0):
        try:
            module(*call.args, **call.kwargs)
        except (OutOfTime, KeyboardInterrupt):
            raise
        except BaseException:  # what was called before it tells enough, also an end of the program
            return found
    return found


@contextmanager
def _watched(
    module: nn.Module, places: Mapping[str, str], found: dict[str, _Seen]
) -> Iterator[None]:
    def watch(name: str) -> Any:
        def hook(part: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            found.setdefault(name, _Seen(args, kwargs, output))

        return hook

    handles = [
        module.get_submodule(place).register_forward_hook(watch(name), with_kwargs=True)
        for name, place in places.items()
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _with_weights(module: nn.Module) -> list[str]:
    return [
        name for name, part in module.named_children() if next(part.parameters(), None) is not None
    ]


def _of_one_form(ours: _Seen, theirs: _Seen) -> bool:
    """Whether two calls have tensors of the same shapes, so that each can be held against one."""
    floats = [
        [each for each in _tensors(seen) if each.is_floating_point()] for seen in (ours, theirs)
    ]
    return all(one.shape == other.shape for one, other in zip(*floats, strict=False))


def _wrong_argument(part: nn.Module, ours: _Seen, theirs: _Seen) -> str:
    """Which argument of a call differs, in words; empty where none does."""
    signature = signature_of(part.forward)
    names = list(signature.parameters) if signature else []
    mine, its = _tensors(ours), _tensors(theirs)
    for number, (one, other) in enumerate(zip(mine, its, strict=False)):
        if one.is_floating_point() and other.is_floating_point() and not _same(one, other):
            name = names[number] if number < len(names) else f"input {number}"
            return f"its {name}{_VALUES}"
    masked = any(each.dtype == torch.bool for each in mine)
    if masked and len(its) < len(mine):
        return "it is called without its mask"
    return ""


_VALUES = " has other values"


def _tensors(seen: _Seen) -> list[Tensor]:
    return [each for each in (*seen.args, *seen.kwargs.values()) if isinstance(each, Tensor)]


def _tensor(output: Any) -> Any:
    parts = output if isinstance(output, tuple | list) else [output]
    return next((each for each in parts if isinstance(each, Tensor)), None)


def _same(one: Any, other: Any) -> bool:
    if not isinstance(one, Tensor) or not isinstance(other, Tensor):
        return one is other
    if one.numel() != other.numel():
        return False
    flat, like = one.flatten().double(), other.flatten().double()
    return torch.allclose(flat, like, rtol=1e-5, atol=1e-6, equal_nan=True)
