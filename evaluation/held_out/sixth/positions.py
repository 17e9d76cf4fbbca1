"""Wrong versions of what tells positions."""

import functools
from typing import Any, cast

import torch
from torch import Tensor

from evaluation.held_out.definitions import held_out
from transformer_layers import RotaryPositions, sinusoidal_positions
from transformer_layers.positions.rotary import Positions, rotated
from transformer_layers.validation import require_size


@held_out("sinusoidal_positions", "review practice: even columns", r"sin|cos|order|swap|even|odd")
def cosines_first(seq: int, d_model: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """Has the cosines in the even columns and the sines in the odd ones."""
    table = sinusoidal_positions(seq, d_model + d_model % 2, dtype=torch.float64)
    exponents = torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
    angles = torch.arange(seq, dtype=torch.float64)[:, None] / 10000**exponents
    table = torch.stack((angles.cos(), angles.sin()), dim=-1).flatten(-2)
    return table[:, :d_model].to(torch.get_default_dtype() if dtype is None else dtype)


@held_out(
    "sinusoidal_positions",
    "vllm-project/vllm, pull request 54620",
    r"dtype|float16|bfloat16|precision|angle|round",
)
def angles_in_the_dtype_of_the_result(
    seq: int, d_model: int, *, dtype: torch.dtype | None = None
) -> Tensor:
    """Computes the angles in the dtype that it gives back."""
    require_size("seq", seq, minimum=0)
    require_size("d_model", d_model)
    dtype = torch.get_default_dtype() if dtype is None else dtype
    even = torch.arange(0, d_model, 2, dtype=torch.float64)
    angles = torch.arange(seq).to(dtype)[:, None] / (10000 ** (even / d_model)).to(dtype)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)[:, :d_model]


_DTYPE = torch.get_default_dtype()


@held_out(
    "sinusoidal_positions",
    "review practice: a default that is evaluated once",
    r"default|dtype|set_default|import|float64",
)
def default_dtype_of_the_import(seq: int, d_model: int, *, dtype: torch.dtype = _DTYPE) -> Tensor:
    """Has torch's default dtype of the time of import, also where another was set since."""
    return sinusoidal_positions(seq, d_model, dtype=_DTYPE if dtype is None else dtype)


@held_out(
    "sinusoidal_positions",
    "review practice: an odd number of features",
    r"odd|last column|last feature|size|width|cos",
)
def odd_widths_end_with_a_cosine(
    seq: int, d_model: int, *, dtype: torch.dtype | None = None
) -> Tensor:
    """Ends an odd table with the cosine of the last pair, in place of its sine."""
    table = sinusoidal_positions(seq, d_model, dtype=torch.float64)
    if d_model % 2:
        angles = torch.arange(seq, dtype=torch.float64) / 10000 ** ((d_model - 1) / d_model)
        table = torch.cat([table[:, :-1], angles.cos()[:, None]], dim=-1)
    return table.to(torch.get_default_dtype() if dtype is None else dtype)


@held_out(
    "RotaryPositions", "review practice: the sign of the sine", r"sign|direction|revers|clock"
)
class TurnedBackwards(RotaryPositions):
    """Turns by the negative angle."""

    def frequencies(self, device: Any = None) -> Tensor:
        return -super().frequencies(device)


@held_out(
    "RotaryPositions",
    "openai/gpt-oss, pull request 43",
    r"cache|kept|state|second|other positions|stale|earlier call|previous",
)
class AnglesKeptForTheLength(RotaryPositions):
    """Keeps the angles of a number of positions, and turns other positions of that number alike."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._kept: dict[Any, Positions] = {}

    def at(self, positions: Tensor, dtype: torch.dtype | None = None) -> Positions:
        key = (positions.shape, positions.device, dtype or torch.get_default_dtype())
        if key not in self._kept:
            self._kept[key] = super().at(positions, dtype)
        return self._kept[key]


@held_out(
    "RotaryPositions",
    "huggingface/transformers, issue 25681",
    r"buffer|float16|bfloat16|precision|half|\.to\(|convert|cast|round|state",
)
class FrequenciesInABuffer(RotaryPositions):
    """Keeps the frequencies in a buffer, which goes to bfloat16 with the rest of the model."""

    inv_freq: Tensor

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.register_buffer("inv_freq", super().frequencies(), persistent=False)

    def frequencies(self, device: Any = None) -> Tensor:
        return self.inv_freq.to(device=device, dtype=torch.float64)


@held_out(
    "RotaryPositions",
    "pie-project/pie, issue 602",
    r"d_rotary|partial|frequenc|exponent|d_k|part|first features",
)
class FrequenciesOfTheWholeHead(RotaryPositions):
    """Where a part of a head turns, takes the frequencies from the size of all of it."""

    def frequencies(self, device: Any = None) -> Tensor:
        even = torch.arange(0, self.d_rotary, 2, dtype=torch.float64, device=device)
        plain = self.base ** (-even / self.d_k)
        return plain if self.scaling is None else self.scaling.frequencies(plain, self.base)


@held_out(
    "RotaryPositions",
    "review practice: a scaling that has a factor",
    r"scal|factor|yarn|attention factor|sine|magnitude",
)
class FactorOfCosinesOnly(RotaryPositions):
    """Multiplies the cosines by the factor of the scaling, and leaves the sines."""

    def at(self, positions: Tensor, dtype: torch.dtype | None = None) -> Positions:
        turn = super().at(positions, dtype)
        if self.scaling is None:
            return turn
        cos, sin, layout = cast("functools.partial[Tensor]", turn).args
        sin = sin / self.scaling.table_factor
        return lambda x, places: rotated(x, cos, sin, layout)


@held_out(
    "RotaryPositions",
    "review practice: positions between two integers",
    r"float|fraction|integer|real|between|round|cut|trunc",
)
class FractionsOfPositionsCut(RotaryPositions):
    """Cuts positions to integers, also where they are float32."""

    def at(self, positions: Tensor, dtype: torch.dtype | None = None) -> Positions:
        if positions.dtype in (torch.float32, torch.float64):
            positions = positions.long()
        return super().at(positions, dtype)


@held_out(
    "RotaryPositions",
    "review practice: an index beyond a table",
    r"table|long|far|clamp|end|limit|large|2048|beyond|position",
)
class ClampedBehindTheTable(RotaryPositions):
    """Turns positions from 2048 on as position 2047, the last of a table."""

    def at(self, positions: Tensor, dtype: torch.dtype | None = None) -> Positions:
        return super().at(positions.clamp(max=2047), dtype)
