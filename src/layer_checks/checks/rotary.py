"""The checks of `RotaryPositions`, against products of complex numbers in float64."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator

import torch
from torch import Tensor, nn

from layer_checks.checks.rotary_forms import forms
from layer_checks.evidence.evidence import Evidence, equivalent, holds
from layer_checks.evidence.gradients import same_gradients
from layer_checks.kit.candidates import built, randn64, rounded_once, same, takes
from layer_checks.kit.definitions import Candidate, Layer
from layer_checks.kit.probes import Probing, probe

_D_K, _BASE = 6, 100.0
# By how much an angle in float32 is off, for each position before it: half a rounding in the angle,
# half of one in the frequency, and as much again in between.
_ROUNDING = 2 * torch.finfo(torch.float32).eps
# Far above the rounding of float64, and far below that of an angle in float32.
_SAME = 1e-13


class ComplexRotation(nn.Module):
    """Features i and i + d_k / 2 as one complex number, times that of the angle.

    Args:
        d_k: Features of a head.
        base: Of the frequencies.
        frequencies: These, where they are computed otherwise.
        neighbours: Whether features 2i and 2i + 1 turn together instead.
        angles: The dtype of the angles.
    """

    def __init__(
        self,
        d_k: int,
        base: float = 10_000.0,
        *,
        frequencies: Tensor | None = None,
        neighbours: bool = False,
        angles: torch.dtype = torch.float64,
    ) -> None:
        super().__init__()
        exact = base ** (-torch.arange(0, d_k, 2, dtype=torch.float64) / d_k)
        self.frequencies = exact if frequencies is None else frequencies
        self.neighbours, self.angles = neighbours, angles

    def forward(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        """Turns each position."""
        if positions is None:
            positions = torch.arange(x.shape[-2])
        angles = positions[..., None].to(self.angles) * self.frequencies.to(self.angles)
        turn = torch.complex(angles.cos().double(), angles.sin().double())
        if self.neighbours:
            turned = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous()) * turn
            return torch.view_as_real(turned).flatten(-2)
        turned = torch.complex(*x.double().chunk(2, dim=-1)) * turn
        return torch.cat((turned.real, turned.imag), dim=-1)


def rotations(
    d_k: int, base: float = 10_000.0, layouts: Collection[bool] = (False, True)
) -> Iterator[ComplexRotation]:
    """The same rotation as right layers compute it, in float32 or in float64.

    Args:
        d_k: Features of a head.
        base: Of the frequencies.
        layouts: Whether neighbours turn together.
    """
    steps = torch.arange(0, d_k, 2).float() / d_k
    rounded = (1.0 / base**steps, base**-steps, (-math.log(base) * steps).exp())
    exact = ComplexRotation(d_k, base).frequencies
    for neighbours in layouts:
        for frequencies in (exact, exact.float(), *rounded):
            for angles in (torch.float64, torch.float32):
                yield ComplexRotation(
                    d_k, base, frequencies=frequencies, neighbours=neighbours, angles=angles
                )


def nearest(
    each: Iterable[ComplexRotation], distance: Callable[[ComplexRotation], float]
) -> ComplexRotation:
    """The first rotation that computes what a candidate does, or else the one nearest to it.

    Args:
        each: The rotations, of which there is one.
        distance: How far from the candidate an oracle is with one, whose results are of the size
            of 1; it may leave the oracle with the rotation that it was asked for last.
    """
    others = iter(each)
    best = next(others)
    least = distance(best)
    for rotation in others:
        if least < _SAME:
            break
        apart = distance(rotation)
        if apart < least:
            best, least = rotation, apart
    return best


def _pair(
    candidate: Candidate, d_k: int = _D_K, base: float = _BASE
) -> tuple[nn.Module, nn.Module]:
    return built(candidate, d_k, base).double(), ComplexRotation(d_k, base)


def _x(seq: int = 5) -> Tensor:
    return randn64(2, seq, _D_K)


def _probe(candidate: Candidate) -> Iterator[Tensor]:
    ours, _ = _pair(candidate)
    x = _x().requires_grad_()
    output = ours(x)
    yield output.detach()
    yield torch.autograd.grad(output.square().sum() + output.sum(), x)[0]
    yield ours(x.detach(), torch.tensor([7, 3, 9, 100, 4]))
    yield built(candidate, _D_K)(x.detach().float(), torch.arange(100_000, 100_005)).double()
    half = built(candidate, _D_K).bfloat16()
    for first in (3, 1001):  # below 256 bfloat16 has all positions
        yield half(x.detach().bfloat16(), torch.arange(first, first + 5)).double()


rotary_positions = Layer(
    "RotaryPositions",
    "RotaryPositions(d_k, base=10000.0)",
    example=lambda candidate: built(candidate, _D_K)(torch.randn(2, 3, _D_K)),
    probe=_probe,
    synonyms={
        "d_k": ("dim", "head_dim", "rotary_dim"),
        "base": ("theta", "rope_theta"),
        "positions": ("position_ids", "input_pos", "pos"),
    },
    attributes=("base",),
    implied={"d_k"},
    # It has no parameters, and "heads counted" fails the same checks.
    not_mistakes={"parameters made in forward", "leading axes joined"},
    forms=forms,
)


@rotary_positions.check("The output has the shape of the input.", weak=True)
def output_shape(candidate: Candidate) -> Evidence:
    x = torch.randn(2, 3, _D_K)
    return same(tuple(built(candidate, _D_K)(x).shape), tuple(x.shape))


@rotary_positions.check("The first position is not turned.", weak=True)
def first_position(candidate: Candidate) -> Evidence:
    ours, _ = _pair(candidate)
    x = _x()
    return equivalent(ours(x)[:, 0], x[:, 0], atol=1e-12)


@rotary_positions.check("Lengths are kept.", weak=True)
def lengths(candidate: Candidate) -> Evidence:
    ours, _ = _pair(candidate)
    x = _x()
    return equivalent(ours(x).norm(dim=-1), x.norm(dim=-1), atol=1e-12)


@rotary_positions.check(
    "Features i and i + d_k / 2 are turned as one complex number, by the position times "
    "base^(-2i / d_k)."
)
def values(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    x = _x()
    return equivalent(ours(x), theirs(x), atol=1e-12)


@rotary_positions.check("So are the gradients of the input.")
def gradients(candidate: Candidate) -> Evidence:
    return same_gradients(*_pair(candidate), _x(), atol=1e-11)


@rotary_positions.check("Scores of a query and a key depend on their distance alone.")
def distances(candidate: Candidate) -> Evidence:
    ours, _ = _pair(candidate)
    query, key = randn64(2, 1, _D_K)

    def score(first: int, second: int) -> Tensor:
        return ours(query, torch.tensor([first])) @ ours(key, torch.tensor([second])).T

    return equivalent(score(9, 4), score(105, 100), atol=1e-10)


@rotary_positions.check("Positions may be given: those of a cache, or of each sequence its own.")
def given_positions(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    x = _x(3)
    places = torch.tensor([[7, 8, 9], [0, 0, 1]])
    equivalent(ours(x, places[0]), theirs(x, places[0]), atol=1e-12)
    return equivalent(ours(x, places), theirs(x, places), atol=1e-12)


@rotary_positions.check("Heads before the positions are turned alike.")
def heads(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    x = randn64(2, 3, 4, _D_K)
    return equivalent(ours(x), theirs(x), atol=1e-12)


@rotary_positions.check(
    "At positions 1,000 to 1,004 the values in float64 are exact: the angles are of float64, too.",
    kind="contract",
)
def exact_positions(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    x, places = _x(), torch.arange(1000, 1005)
    return equivalent(ours(x, places), theirs(x, places), atol=1e-11)


@rotary_positions.check(
    "In float32 the values at position 100,000 are off by less than 0.0001.", kind="contract"
)
def far_positions(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate, 16, 10_000.0)
    x, places = torch.randn(2, 16), torch.tensor([100_000, 99_999])
    return equivalent(ours.float()(x, places).double(), theirs(x, places), atol=1e-4)


@rotary_positions.check(
    "In bfloat16 the values at position 1,001 are turned in float32, and rounded once.",
    kind="contract",
)
def bfloat16(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate, 16, 10_000.0)
    x, places = torch.randn(5, 16).bfloat16(), torch.arange(1001, 1006)
    return rounded_once(ours.bfloat16()(x, places), theirs(x, places), atol=1e-5)


@rotary_positions.check(
    "Where it takes a `d_rotary`, that many features are turned, as a head of that width is; the "
    "others stay."
)
def partial_rotation(candidate: Candidate) -> Evidence:
    if not takes(candidate, "d_rotary"):
        return holds(True, "it takes no d_rotary")
    ours, theirs = built(candidate, _D_K, _BASE, d_rotary=4).double(), ComplexRotation(4, _BASE)
    x = _x()
    return equivalent(ours(x), torch.cat((theirs(x[..., :4]), x[..., 4:]), dim=-1), atol=1e-12)


@rotary_positions.check("Without a base, it is 10,000.", kind="start")
def default_base(candidate: Candidate) -> Evidence:
    x = _x()
    return equivalent(built(candidate, _D_K).double()(x), ComplexRotation(_D_K)(x), atol=1e-12)


probe(
    rotary_positions,
    Probing(
        pair=_pair,
        inputs=lambda batch, seq: (randn64(batch, seq, _D_K),),
        wide=lambda candidate, size: (*_pair(candidate, size, 10_000.0), (randn64(2, 3, size),)),
        rounding=_ROUNDING,
    ),
)
