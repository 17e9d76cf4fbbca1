"""Known wrong versions of `RotaryPositions`."""

import torch
from torch import Tensor, nn

from layer_checks.checks.rotary import rotary_positions
from transformer_layers.precision import at_least_float32


@rotary_positions.right_otherwise
class _Rotary(nn.Module):
    """A right one in small steps, of which each wrong version changes one."""

    def __init__(self, d_k: int, base: float = 10_000.0, d_rotary: int | None = None) -> None:
        super().__init__()
        self.d_head, self.d_k, self.base = d_k, d_k if d_rotary is None else d_rotary, base

    def forward(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        if positions is None:
            positions = torch.arange(x.shape[-2], device=x.device)
        wide, kept = self.wide(x[..., : self.d_k]), x[..., self.d_k :]
        angles = self.angles(positions)
        cos, sin = angles.cos().to(wide.dtype), angles.sin().to(wide.dtype)
        return torch.cat((self.turned(wide, cos, sin).to(x.dtype), kept), dim=-1)

    def wide(self, x: Tensor) -> Tensor:
        return at_least_float32(x)

    def angles(self, positions: Tensor) -> Tensor:
        return positions[..., None].double() * self.frequencies(positions.device)

    def frequencies(self, device: torch.device) -> Tensor:
        return self.base ** -self.exponents(device)

    def exponents(self, device: torch.device) -> Tensor:
        return torch.arange(0, self.d_k, 2, dtype=torch.float64, device=device) / self.d_k

    def turned(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        first, second = x.chunk(2, dim=-1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


@rotary_positions.wrong(
    "pair features i and i + d/2: weights that were trained with neighbours need their rows "
    "permuted first.",
    name="neighbours for halves",
    published="https://github.com/nurl-lang/nurl/pull/584",
)
class NeighboursForHalves(_Rotary):
    """Turns features 2i and 2i + 1."""

    def turned(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        first, second = x[..., 0::2], x[..., 1::2]
        pairs = (first * cos - second * sin, second * cos + first * sin)
        return torch.stack(pairs, dim=-1).flatten(-2)


@rotary_positions.wrong(
    "give both features of a pair one angle: halves need the frequencies side by side, not each "
    "repeated.",
    name="frequencies of neighbours",
    published="https://github.com/NVIDIA/Megatron-LM/issues/3900",
)
class FrequenciesOfNeighbours(_Rotary):
    """Pairs halves, and has the table of neighbours."""

    def turned(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        first, second = x.chunk(2, dim=-1)
        cos, sin = (each.repeat_interleave(2, dim=-1) for each in (cos, sin))
        return x * cos + torch.cat((-second, first), dim=-1) * sin


@rotary_positions.wrong(
    "divide the exponents by the features that are turned, where not all are.",
    name="exponents of the whole head",
)
class ExponentsOfTheWholeHead(_Rotary):
    """Divides the exponents of a part by the width of the head."""

    def exponents(self, device: torch.device) -> Tensor:
        return super().exponents(device) * self.d_k / self.d_head


@rotary_positions.wrong(
    "turn by plus the angle: with the same weights, minus gives other scores.",
    name="turned backwards",
)
class TurnedBackwards(_Rotary):
    """Turns the other way."""

    def angles(self, positions: Tensor) -> Tensor:
        return -super().angles(positions)


@rotary_positions.wrong("subtract in the first half: with two sums it is no rotation.")
class NoMinus(_Rotary):
    """Has lost the minus."""

    def turned(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        first, second = x.chunk(2, dim=-1)
        return torch.cat((first * cos + second * sin, second * cos + first * sin), dim=-1)


@rotary_positions.wrong(
    "the exponent of pair i is 2i/d, so that d/2 pairs reach 1.", name="exponent i/d"
)
class ExponentNotDoubled(_Rotary):
    """Divides i, not 2i, by the width."""

    def exponents(self, device: torch.device) -> Tensor:
        return super().exponents(device) / 2


@rotary_positions.wrong("take the base that is asked for.")
class BaseIgnored(_Rotary):
    """Takes 10,000 all the same."""

    def __init__(self, d_k: int, base: float = 10_000.0) -> None:
        super().__init__(d_k, 10_000.0)


@rotary_positions.wrong(
    "take the positions that are given: those after a cache do not begin at 0.",
    name="positions ignored",
)
class PositionsIgnored(_Rotary):
    """Counts from 0 in every call."""

    def forward(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        return super().forward(x, None)


@rotary_positions.wrong("count positions from 0.", name="counted from 1")
class CountedFromOne(_Rotary):
    """Counts positions from 1, where they are not given."""

    def forward(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        if positions is None:
            positions = 1 + torch.arange(x.shape[-2], device=x.device)
        return super().forward(x, positions)


@rotary_positions.wrong(
    "count along the axis of positions, the last but one.", name="heads counted"
)
class HeadsCounted(_Rotary):
    """Takes the axis before it, where there is one, for the positions."""

    def forward(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        if x.ndim > 3 and positions is None:
            return super().forward(x.transpose(-3, -2)).transpose(-3, -2)
        return super().forward(x, positions)


@rotary_positions.wrong(
    "make angles in float64: in float32 a far position times a rounded frequency is off.",
    name="angles in float32",
)
class AnglesInFloat32(_Rotary):
    """Makes angles in float32."""

    def angles(self, positions: Tensor) -> Tensor:
        frequencies = self.frequencies(positions.device).float()
        return positions[..., None].float() * (frequencies * (1 + 2.0**-20))


@rotary_positions.wrong(
    "make tables before rounding: bfloat16 has no odd number above 256, so that positions collide.",
    name="positions in bfloat16",
    published="https://github.com/huggingface/transformers/pull/29285",
)
class PositionsInBfloat16(_Rotary):
    """Counts positions in the dtype of the input."""

    def forward(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        if positions is None:
            positions = torch.arange(x.shape[-2], device=x.device)
        return super().forward(x, positions.to(x.dtype).double())


@rotary_positions.wrong("turn in float32, and round what comes out.")
class TurnedInHalfPrecision(_Rotary):
    """Turns in bfloat16."""

    def wide(self, x: Tensor) -> Tensor:
        return x
