"""The independent oracles that layers are held against, and how that is done.

Most are `torch.nn`'s own classes; those that are put together of torch's parts stand with the
checks of their layers. Here stands what these do with any of them.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn

from layer_checks.evidence.evidence import Evidence, equivalent, holds
from layer_checks.evidence.gradients import compared_gradients, of_module, same_gradients
from layer_checks.evidence.randomness import seeded
from layer_checks.kit.arguments import CannotTakeError
from layer_checks.kit.candidates import (
    as_ours,
    built,
    counterparts,
    current_match,
    deep_copy,
    load,
    randn64,
    randomized,
    weights_of,
)
from layer_checks.kit.definitions import Candidate
from layer_checks.kit.model_configs import EPS, READ
from layer_checks.kit.weight_maps import to_ours, to_theirs

_found_eps: ContextVar[list[float] | None] = ContextVar("found_eps", default=None)
# Weights that wrong versions have, and that a candidate which is held against them lacks.
_absent: ContextVar[frozenset[str]] = ContextVar("absent", default=frozenset())
_USUAL_EPS = (1e-5, 1e-6, 1e-12, 1e-8, 1e-7, 1e-3, 1e-2, 0.0)


class Oracle(nn.Module):
    """A layer of `torch.nn` with other names of weights, and with our meaning of a mask.

    Attributes:
        public_name: Its name in `layer_checks.kit.weight_maps`.
        layer_name: The attribute that holds it.
    """

    public_name: str
    layer_name: str

    def __init__(self, layer: nn.Module, std: float) -> None:
        super().__init__()
        self.add_module(self.layer_name, randomized(layer, std).double())

    def as_ours(self) -> dict[str, Tensor]:
        """The weights, as our layer names and shapes them."""
        return to_ours(self.public_name, weights_of(self.get_submodule(self.layer_name)))

    def as_theirs(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Our weights or gradients, as this module names and shapes its parameters."""
        theirs = to_theirs(self.public_name, tensors)
        return {f"{self.layer_name}.{name}": tensor for name, tensor in theirs.items()}


def named_as_ours(oracle: nn.Module) -> dict[str, Tensor]:
    """An oracle's weights, as our layer names and shapes them."""
    return oracle.as_ours() if isinstance(oracle, Oracle) else weights_of(oracle)


def with_weights_of(
    oracle: nn.Module, candidate: Candidate, *args: Any, **options: Any
) -> nn.Module:
    """Builds a candidate in float64 and gives it an oracle's weights.

    Where a candidate has no such bias, the oracle's becomes 0; where it takes no eps, the
    oracle's becomes the candidate's.
    """
    if absent := absent_now():
        _without(oracle, absent)
    try:
        return load(built(candidate, *args, **options).double(), named_as_ours(oracle))
    except CannotTakeError as error:
        if error.argument != "eps":
            raise
    del options["eps"]
    layer = load(built(candidate, *args, **options).double(), named_as_ours(oracle))
    with seeded(0):
        x = 1e-3 * randn64(4, 2, args[0])
    eps = own_eps(layer, oracle, x)
    set_eps(oracle, eps)
    if (found := _found_eps.get()) is not None:
        found.append(eps)
    return layer


def set_eps(oracle: nn.Module, eps: float) -> None:
    """Gives an oracle, or each norm inside it, an eps."""
    norms: list[Any] = [each for each in oracle.modules() if hasattr(each, "eps")]
    for norm in norms or [oracle]:
        norm.eps = eps


def held_to_what_it_reads(ours: nn.Module, theirs: nn.Module, ids: Tensor) -> None:
    """Gives an oracle of a model the eps of one that reads none in its configuration.

    Args:
        ours: The model.
        theirs: The oracle, with the same weights.
        ids: Tokens that tell them apart.
    """
    read = vars(ours).get(READ)
    if read is not None and not read & EPS:
        set_eps(theirs, own_eps(deep_copy(ours).eval(), theirs, ids))


def require_read(ours: nn.Module, option: str) -> None:
    """Says that a model can't be asked for an option of its configuration that it doesn't read.

    Raises:
        CannotTakeError: If it does not.
    """
    read = vars(ours).get(READ)
    if read is not None and option not in read:
        raise CannotTakeError(f"it reads no {option}", option)


def drawn_anew(oracle: nn.Module) -> nn.Module:
    """Draws an oracle's weights again, but for those that a candidate does not have: they are 0."""
    randomized(oracle)
    if absent := absent_now():
        _without(oracle, absent)
    return oracle


@contextmanager
def lacking(absent: frozenset[str]) -> Iterator[None]:
    """Has what is asked have zeros for weights: as a candidate that lacks them.

    Args:
        absent: The book's names of the weights.
    """
    token = _absent.set(absent)
    try:
        yield
    finally:
        _absent.reset(token)


def absent_now() -> frozenset[str]:
    """The weights that a candidate does not have, or that :func:`lacking` says."""
    match = current_match()
    return _absent.get() if match is None else match.absent


@contextmanager
def noticing_own_eps() -> Iterator[list[float]]:
    """Collects the eps of norms that take none, and are held against it."""
    found: list[float] = []
    token = _found_eps.set(found)
    try:
        yield found
    finally:
        _found_eps.reset(token)


def are_eps_noticed() -> bool:
    """Whether the eps of such norms are being collected."""
    return _found_eps.get() is not None


def own_eps(layer: nn.Module, oracle: nn.Module, x: Tensor) -> float:
    """Which of the usual eps the norms of a layer have, by what it makes of small numbers."""
    try:
        deep_copy(oracle)(x)
    except RuntimeError:  # batch normalization takes the second axis for the features
        x = x.flatten(0, 1)

    @torch.no_grad()
    def distance(eps: float) -> float:
        ours, theirs = deep_copy((layer, oracle))  # calls leave averages behind
        set_eps(theirs, eps)
        found = ours(x)
        if not isinstance(found, Tensor) or found.shape != theirs(x).shape:
            return 0.0
        return float((found - theirs(x)).abs().max().nan_to_num(nan=torch.inf))

    return min(_USUAL_EPS, key=distance)


def _without(oracle: nn.Module, absent: Collection[str]) -> None:
    """Gives an oracle zeros for weights that we name."""
    kept = {
        name: torch.zeros_like(weight) if name in absent else weight
        for name, weight in named_as_ours(oracle).items()
    }
    if isinstance(oracle, Oracle):
        kept = oracle.as_theirs(kept)
    parameters = dict(oracle.named_parameters())
    with torch.no_grad():
        for name, weight in kept.items():
            parameters[name].copy_(weight)


def agreeing_gradients(
    ours: nn.Module, theirs: nn.Module, *inputs: Any, atol: float = 1e-11
) -> Evidence:
    """`same_gradients`, for a layer that has an oracle's weights, whatever it names them."""
    match = current_match()
    if match is not None:
        return _matched_gradients(ours, theirs, inputs, atol)
    names = counterparts(ours, named_as_ours(theirs))

    def renamed(gradients: Mapping[str, Tensor]) -> dict[str, Tensor]:
        known = {names[name]: each for name, each in gradients.items() if name in names}
        return theirs.as_theirs(known) if isinstance(theirs, Oracle) else known

    maps = isinstance(theirs, Oracle)
    return same_gradients(ours, theirs, *inputs, atol=atol, parameters=renamed if maps else names)


def _matched_gradients(
    ours: nn.Module, theirs: nn.Module, inputs: tuple[Any, ...], atol: float
) -> Evidence:
    """The same for weights that are packed, transposed or missing: all under our names."""
    weights = named_as_ours(theirs)
    output, of_inputs, found = of_module("ours", ours, inputs)
    other, of_their_inputs, known = of_module("theirs", theirs, inputs)
    named = as_ours(ours, weights, found)
    expected = (
        to_ours(theirs.public_name, _inside(theirs, known)) if isinstance(theirs, Oracle) else known
    )
    return compared_gradients(
        output,
        other,
        of_inputs | {f"parameter {name}": each for name, each in named.items()},
        of_their_inputs | {f"parameter {name}": expected[name] for name in named},
        atol,
    )


def _inside(theirs: Oracle, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    prefix = f"{theirs.layer_name}."
    return {name.removeprefix(prefix): each for name, each in tensors.items()}


def same_state(ours: nn.Module, theirs: nn.Module) -> Evidence:
    """Checks that two state dicts have the same names and shapes."""
    found = {name: tuple(each.shape) for name, each in ours.state_dict().items()}
    expected = {name: tuple(each.shape) for name, each in theirs.state_dict().items()}
    wrong = sorted({name for name, _ in found.items() ^ expected.items()})
    if wrong:
        raise AssertionError(f"not equal: missing, unknown or of another shape: {wrong}")
    return holds(True, f"{len(found)} weights of the published names and shapes")


def sequences(d_model: int, batch: int = 2, seq: int = 4) -> Tensor:
    """Random sequences in float64."""
    return randn64(batch, seq, d_model)


def future_changes_nothing(ours: nn.Module, d_model: int, atol: float) -> Evidence:
    """Changes positions 4 and 5 of 6, and holds 0 to 3 against what they were."""
    x = sequences(d_model, seq=6)
    changed = x.clone()
    changed[:, 4:] = randn64(2, 2, d_model)
    return equivalent(ours(changed)[:, :4], ours(x)[:, :4], atol=atol)
