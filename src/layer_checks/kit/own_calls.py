"""What a whole model is told beside the ids, in the form that it has for it: padding, and a past.

The book's models take `mask` and `positions`, and a list of caches. Others take an `attention_mask`
of 1 and 0, count where they are in `start_pos`, fill a cache object of a class of their own, or
return what they want to be given again. None of it is declared anywhere but in the call's
signature, so that is what decides here, and what cannot be used is not asked.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, get_args, get_type_hints

import torch
from torch import Tensor, nn

from layer_checks.evidence.evidence import Evidence, equivalent
from layer_checks.kit.arguments import CannotTakeError, taken_by
from layer_checks.kit.stages import equal_in_steps, stage

# Logits of tokens of which some are hidden: ids, and where True keeps, both (batch, seq).
Padded: TypeAlias = Callable[[Tensor, Tensor], Tensor]
# Logits of a part of a text whose earlier parts were given before.
Next: TypeAlias = Callable[[Tensor], Tensor]
# Logits of a text of which as many positions as the number says are before it.
ByPlace: TypeAlias = Callable[[Tensor, int], Tensor]

# 1 keeps in the first; in the others True may keep or hide.
_KEEPS = "attention_mask"
_KEEPS_OR_HIDES = ("padding_mask", "pad_mask", "key_padding_mask", "src_key_padding_mask", "is_pad")
_CACHES = (
    "cache",
    "kv_cache",
    "caches",
    "kv_caches",
    "past_key_values",
    "past_key_value",
    "past_kvs",
    "past_kv",
    "layer_past",
    "past",
)
_STARTS = ("start_pos", "start", "offset", "past_length", "past_len", "cache_position")
_TWO = 2  # tokens that are hidden: one could be taken for a count from 1


def under_padding(
    model: nn.Module, ids: Tensor, atol: float, by_place: ByPlace | None = None
) -> Evidence:
    """Checks that what is hidden moves nothing.

    Where nothing is hidden the logits are those without a mask. Where two tokens are hidden at an
    end of one text, the others' are those of that text alone; in front of it position ids may count
    the hidden ones, too.

    Args:
        model: A language model.
        ids: Tokens, shape `(2, 5)`.
        atol: Tolerance.
        by_place: What is right where position ids count hidden tokens; none if the two are one.

    Raises:
        AssertionError: If the logits differ.
        CannotTakeError: If a call of the model takes no padding.
    """
    first: Exception | None = None
    for way in ways_of_padding(model):
        try:
            return _under(way, model, ids, atol, by_place)
        except Exception as error:  # with the other meaning a model can raise anything
            first = first or error
    raise first or CannotTakeError("its call takes no mask of padding")


def padded(model: nn.Module, ids: Tensor) -> tuple[Tensor, Tensor]:
    """The logits of two texts, of which the second has two hidden tokens in front.

    Args:
        model: A language model.
        ids: Tokens, shape `(2, seq)`.

    Returns:
        Those of the first text, and those of the second's tokens; empty where a call takes no
        padding, or not so.
    """
    keeps = torch.ones_like(ids, dtype=torch.bool)
    keeps[1, :_TWO] = False
    for way in ways_of_padding(model):
        try:
            first, second = way(ids, keeps).detach()
        except Exception:  # with the other meaning a model can raise anything
            continue
        return first, second[_TWO:]
    return torch.empty(0), torch.empty(0)


def ways_of_padding(model: nn.Module) -> list[Padded]:
    """How a model may be told of padding: more than one where True may keep or hide."""
    names = taken_by(model.forward).keys()
    if names >= {"mask", "positions"}:
        return [
            lambda ids, keeps: _logits(
                model.forward(ids, mask=keeps, positions=(keeps.cumsum(-1) - 1).clamp(min=0))
            )
        ]
    if _KEEPS in names:
        return [lambda ids, keeps: _logits(model.forward(ids, **{_KEEPS: keeps.long()}))]
    for name in _KEEPS_OR_HIDES:
        if name in names:
            return [_by_name(model, name, hides) for hides in (True, False)]
    return []


def _by_name(model: nn.Module, name: str, hides: bool) -> Padded:
    def padded(ids: Tensor, keeps: Tensor) -> Tensor:
        return _logits(model.forward(ids, **{name: ~keeps if hides else keeps}))

    return padded


def _under(
    way: Padded, model: nn.Module, ids: Tensor, atol: float, by_place: ByPlace | None
) -> Evidence:
    all_kept = torch.ones_like(ids, dtype=torch.bool)
    with stage("where nothing is hidden"):
        equivalent(way(ids, all_kept), _logits(model.forward(ids)), atol=atol)
    left, right = all_kept.clone(), all_kept.clone()
    left[1, :_TWO] = False
    right[1, -_TWO:] = False
    alone = _logits(model.forward(ids[1:, :-_TWO]))[0]
    with stage("where the last two are hidden"):
        equivalent(way(ids, right)[1, :-_TWO], alone, atol=atol)
    found = way(ids, left)[1, _TWO:].detach()
    text = ids[1:, _TWO:]
    possible = [_logits(model.forward(text))[0].detach()]
    if by_place is not None:
        possible.append(by_place(text, _TWO)[0].detach())
    apart = [(each - found).abs().max().nan_to_num(torch.inf).item() for each in possible]
    with stage("where the first two are hidden"):
        return equivalent(found, possible[apart.index(min(apart))], atol=atol)


def in_steps(model: nn.Module, ids: Tensor, sizes: Sequence[int]) -> Tensor | None:
    """The logits of texts that a model is given part by part, with a past in its own form.

    Args:
        model: A language model that doesn't take the book's caches.
        ids: Tokens, shape `(batch, seq)`.
        sizes: Of the parts. Where the first step behind a past is refused, single tokens follow.

    Returns:
        The logits, shape `(batch, seq, vocab_size)`; None where no form of a past is known.

    Raises:
        CannotTakeError: If it has such a form, and cannot be used so.
    """
    last: Exception | None = None
    for parts in (ids.split(list(sizes), dim=1), ids.split([sizes[0]] + [1] * sum(sizes[1:]), 1)):
        if (step := _begun(model, ids)) is None:
            return None
        try:
            with torch.no_grad():
                return torch.cat([step(part) for part in parts], dim=1)
        except Exception as error:  # it may take single tokens alone, or nothing so
            last = error
    raise CannotTakeError(f"its past cannot be handed on: {type(last).__name__}: {last}")


def in_own_steps(layer: nn.Module, x: Tensor, name: str, atol: float = 1e-12) -> Evidence | None:
    """Holds steps of 3, 2 and 1 positions with a past of its own form against all six at once.

    Args:
        layer: An attention, or a whole model.
        x: Its input, shape `(batch, 6, ...)`.
        name: What the book calls the argument.
        atol: Tolerance.

    Returns:
        The evidence; None where it takes what the book gives, or no form of a past is known.

    Raises:
        AssertionError: If the outputs differ.
        CannotTakeError: If it has such a form, and cannot be used so.
    """
    sizes = (3, 2, 1)
    taken = taken_by(layer.forward)
    if name in taken and "use_cache" not in taken:
        return None
    if (steps := in_steps(layer, x, sizes)) is None:
        return None
    return equal_in_steps(steps, _logits(layer.forward(x)).detach(), sizes, atol)


def _begun(model: nn.Module, ids: Tensor) -> Next | None:
    """What is given the parts of a text, one after another; None where no form is known."""
    ways = (_with_its_object, _with_what_it_returns, _with_a_start)
    return next((step for way in ways if (step := way(model, ids)) is not None), None)


def _with_its_object(model: nn.Module, ids: Tensor) -> Next | None:
    """A cache is an object of a class that is built without arguments."""
    for name, kind in _annotated(model):
        try:
            cache = kind()
        except TypeError:
            continue
        return lambda part: _logits(model.forward(part, **{name: cache}))
    return None


def _annotated(model: nn.Module) -> Iterator[tuple[str, type]]:
    try:
        hints = get_type_hints(model.forward)
    except (NameError, TypeError):  # a name that is known to type checkers alone
        return
    for name in _CACHES:
        for kind in (hints.get(name), *get_args(hints.get(name))):
            own = inspect.isclass(kind) and kind.__module__ not in ("builtins", "torch")
            if own and kind is not None:
                yield name, kind


@torch.no_grad()
def _with_what_it_returns(model: nn.Module, ids: Tensor) -> Next | None:
    """The second of what a call returns is given to the next one."""
    parameters = taken_by(model.forward)
    name = next((each for each in _CACHES if each in parameters), None)
    if name is None:
        return None
    options = {"use_cache": True} if "use_cache" in parameters else {}
    state: dict[str, Any] = {}
    try:
        if _past(model.forward(ids[:, :1], **options), name) is None:
            return None
    except Exception:  # not so
        return None

    def step(part: Tensor) -> Tensor:
        output = model.forward(part, **options, **state)
        state[name] = _past(output, name)
        return _logits(output)

    return step


def _past(output: Any, name: str) -> Any:
    if isinstance(output, Mapping):
        return output.get(name)
    more = isinstance(output, tuple) and len(output) > 1
    return output[1] if more and not isinstance(output[1], Tensor) else None


@torch.no_grad()
def _with_a_start(model: nn.Module, ids: Tensor) -> Next | None:
    """A number says where the part begins; the model keeps what was before."""
    parameters = taken_by(model.forward)
    name = next((each for each in _STARTS if each in parameters), None)
    if name is None:
        return None

    def given(part: Tensor, start: int) -> Tensor:
        return _logits(model.forward(part, **{name: start}))

    try:  # of a model that keeps nothing the number moves positions alone
        found = []
        for first in (ids[:, :2], ids[:, -2:]):
            given(first, 0)
            found.append(given(ids[:, 2:3], 2))
    except Exception:
        return None
    if torch.equal(*found):
        return None
    length = 0

    def step(part: Tensor) -> Tensor:
        nonlocal length
        logits = given(part, length)
        length += part.shape[1]
        return logits

    return step


def _logits(output: Any) -> Tensor:
    """The logits of what a call returns, the first tensor of several."""
    if isinstance(output, Tensor):
        return output
    parts = output.values() if isinstance(output, Mapping) else output
    found = next((each for each in parts if isinstance(each, Tensor)), None)
    if found is None:
        raise CannotTakeError(f"its call returns no tensor, but {type(output).__name__}")
    return found
