"""Rotary positions as others write them: functions of tables, modules with heads elsewhere."""

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from layer_checks.kit.angles import COMPLEX, NAMES, TABLES, angles_of, tables_by_name
from layer_checks.kit.arguments import CannotTakeError, taken_by
from layer_checks.kit.definitions import Candidate, Form

# What others call position ids, the number of positions, and that of the first one.
_POSITIONS = frozenset("positions position_ids input_pos pos position pos_ids".split())
_LENGTH = frozenset("seq_len seqlen length seq_length t".split())
_FIRST = frozenset("start_pos offset past start position_offset past_len cache_position".split())
_BASE = frozenset("base theta rope_theta rope_base".split())
_NEIGHBOURS = "features 2i and 2i + 1 turn together"
_BEHIND = "the axis of heads stands behind that of positions"
_BATCHED = 3  # the axes of an input, or of tables, that has one for the batch


def forms(candidate: Candidate) -> Iterator[Form]:
    """The forms that a class or a function of rotary positions may have by what it takes."""
    taken = taken_by(candidate)
    if taken.keys() & NAMES and _is_given_heads_alone(taken):
        tables = ["pairs"] if taken.keys() & COMPLEX else list(TABLES)
        for behind, neighbours, kind in itertools.product((False, True), (False, True), tables):
            words = f"it is given {TABLES[kind]}, as its model gives them"
            yield Form(
                _said(words, neighbours, behind), _by_tables(taken, kind, neighbours, behind)
            )
        return
    if inspect.isclass(candidate):
        words = "it gives tables of angles, with which features i and i + d_k / 2 are turned"
        yield Form(words, _by_its_tables(taken))
    told = taken.keys() & _POSITIONS
    for batch, neighbours, behind in itertools.product((False, True), repeat=3):
        if (behind or not inspect.isclass(candidate)) and (told or not batch):
            words = "its input has four axes" + ("; its positions, two" if batch else "")
            call = _by_positions(taken, neighbours, behind, batch)
            yield Form(_said(words, neighbours, behind), call)


def _is_given_heads_alone(taken: Mapping[str, inspect.Parameter]) -> bool:
    """Says if all that must be given beside tables and positions is heads, or queries and keys."""
    known = NAMES | _FIRST
    names = [n for n, each in taken.items() if each.default is each.empty and n not in known]
    return len(names) == 1 or (len(names) == 2 and "q" in names[0] and "k" in names[1])


def _said(words: str, neighbours: bool, behind: bool) -> str:
    said = (words, _NEIGHBOURS if neighbours else "", _BEHIND if behind else "")
    return "; ".join(filter(None, said))


def _by_tables(
    taken: Mapping[str, inspect.Parameter], kind: str, neighbours: bool, behind: bool
) -> Callable[..., Tensor]:
    """Calls what takes queries, or queries and keys, and tables of angles."""

    def call(
        layer: Candidate,
        x: Tensor,
        positions: Tensor | None = None,
        *,
        d_k: int | None = None,
        base: float = 10_000.0,
    ) -> Tensor:
        if x.dtype in (torch.float16, torch.bfloat16):
            raise CannotTakeError("its angles are its caller's, in whichever dtype")
        positions = torch.arange(x.shape[-2], device=x.device) if positions is None else positions
        if positions.ndim > 1 and kind != "batch":  # its tables are those of one sequence
            rows = zip(x, positions, strict=True)
            return torch.stack([call(layer, *row, d_k=d_k, base=base) for row in rows])
        given: dict[str, Any] = {}
        if taken.keys() & _FIRST:
            given = dict.fromkeys(taken.keys() & _FIRST, _first_of(positions))
            positions = torch.arange(int(positions.max()) + 1, device=x.device)
        angles = angles_of(positions, x.shape[-1], base)
        tables = tables_by_name(angles, kind, x.dtype)
        given |= {name: tables[name] for name in taken if name in tables}
        heads = _of_heads(x, neighbours, behind)
        wanted = [name for name, each in taken.items() if each.default is each.empty]
        wanted = [name for name in wanted if name not in given]
        turned = layer(**given, **{name: heads.clone() for name in wanted})
        return _as_ours(turned, x, neighbours, behind)

    return call


def _by_positions(
    taken: Mapping[str, inspect.Parameter], neighbours: bool, behind: bool, batch: bool
) -> Callable[..., Tensor]:
    """Calls what computes its angles itself, with an axis for the heads."""
    base_name = next((name for name in taken if name in _BASE), "")

    def call(
        layer: Candidate,
        x: Tensor,
        positions: Tensor | None = None,
        *,
        d_k: int | None = None,
        base: float = 10_000.0,
    ) -> Tensor:
        places = torch.arange(x.shape[-2], device=x.device) if positions is None else positions
        if batch and places.ndim == 1 and x.ndim >= _BATCHED:
            positions = places.expand(x.shape[0], -1)
        elif places.ndim > 1 and not batch:
            rows = zip(x, places, strict=True)
            return torch.stack([call(layer, *row, d_k=d_k, base=base) for row in rows])
        given = _told(taken, x, positions)
        if base_name and d_k is not None:
            given[base_name] = base
        elif d_k is not None and base != 10_000.0:  # what everyone takes
            raise CannotTakeError(f"it takes no base, so that base={base!r} cannot be asked for")
        return _as_ours(layer(_of_heads(x, neighbours, behind), **given), x, neighbours, behind)

    return call


def _by_its_tables(taken: Mapping[str, inspect.Parameter]) -> Callable[..., Tensor]:
    """Turns by the cosines and sines that a module gives for its input."""

    def call(layer: Candidate, x: Tensor, positions: Tensor | None = None) -> Tensor:
        tables = layer(_of_heads(x, False, False), **_told(taken, x, positions))
        if not (isinstance(tables, tuple | list) and len(tables) == 2):  # a pair
            raise CannotTakeError("it gives no pair of tables")
        cos, sin = (_of_pairs(each, x.shape[-1]) for each in tables)
        if not taken.keys() & _POSITIONS:
            cos, sin = cos.flatten(0, -2), sin.flatten(0, -2)
            places = torch.arange(x.shape[-2]) if positions is None else positions
            cos, sin = cos[places], sin[places]
        while cos.ndim >= _BATCHED and cos.ndim > x.ndim and cos.shape[0] == 1:
            cos, sin = cos[0], sin[0]
        while _BATCHED <= cos.ndim < x.ndim:
            cos, sin = cos.unsqueeze(-3), sin.unsqueeze(-3)
        first, second = x.chunk(2, dim=-1)
        turned = (first * cos - second * sin, second * cos + first * sin)
        return torch.cat(turned, dim=-1).to(x.dtype)

    return call


def _of_pairs(table: Tensor, d_k: int) -> Tensor:
    """A table with one angle for each pair of features."""
    if table.shape[-1] == d_k // 2:
        return table
    if bool((table[..., : d_k // 2] == table[..., d_k // 2 :]).all()):
        return table[..., : d_k // 2]
    return table[..., ::2]


def _told(
    taken: Mapping[str, inspect.Parameter], x: Tensor, positions: Tensor | None
) -> dict[str, Any]:
    """What it is told of positions, by its own names."""
    given: dict[str, Any] = {}
    places = torch.arange(x.shape[-2], device=x.device) if positions is None else positions
    for name, each in taken.items():
        if name in _POSITIONS:
            if positions is not None or each.default is each.empty:
                given[name] = places
        elif name in _LENGTH:
            given[name] = int(places.max()) + 1
        elif name in _FIRST:
            given[name] = _first_of(places)
    if positions is not None and not given:
        raise CannotTakeError("its call takes no positions")
    return given


def _first_of(positions: Tensor) -> int:
    """The first of positions that follow each other."""
    first = int(positions.flatten()[0]) if positions.numel() else 0
    in_turn = torch.arange(first, first + positions.shape[-1], device=positions.device)
    if not torch.equal(positions, in_turn):
        raise CannotTakeError("its positions follow each other")
    return first


def _of_heads(x: Tensor, neighbours: bool, behind: bool) -> Tensor:
    """The input with an axis for the batch and one for heads."""
    if neighbours:
        x = torch.stack(x.chunk(2, dim=-1), dim=-1).flatten(-2)
    while x.ndim < 4:  # batch, heads, positions, features
        x = x.unsqueeze(-3)
    if x.ndim > 4:
        x = x.flatten(0, -4)
    return x.transpose(1, 2) if behind else x


def _as_ours(turned: Any, x: Tensor, neighbours: bool, behind: bool) -> Tensor:
    """What comes out for the queries, in the shape of the input."""
    first: Tensor = turned[0] if isinstance(turned, tuple | list) else turned
    first = first.transpose(1, 2) if behind else first
    if neighbours:
        first = first.unflatten(-1, (-1, 2)).transpose(-1, -2).flatten(-2)
    return first.reshape(x.shape)
