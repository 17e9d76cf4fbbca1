"""Wrong versions of positions."""

import math

import torch
from torch import Tensor

from evaluation.held_out.definitions import held_out
from transformer_layers.positions.rotary import Positions, RotaryPositions, rotated
from transformer_layers.precision import at_least_float32
from transformer_layers.validation import LOW_PRECISION, require_size


def _table(pos: Tensor, d_model: int, frequencies: Tensor) -> Tensor:
    """Sines and cosines by turns."""
    angles = pos[:, None] * frequencies
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)[:, :d_model]


@held_out("sinusoidal_positions", "review practice", r"float32|float64|precision|far|long|angle")
def sinusoids_of_single_angles(
    seq: int, d_model: int, *, dtype: torch.dtype | None = None
) -> Tensor:
    """Computes the angles in float32, which are off by some 1e-3 at far positions."""
    require_size("seq", seq, minimum=0)
    require_size("d_model", d_model)
    even = torch.arange(0, d_model, 2, dtype=torch.float32)
    frequencies = torch.exp(even * (-math.log(10000.0) / d_model))
    table = _table(torch.arange(seq, dtype=torch.float32), d_model, frequencies)
    return table.to(torch.get_default_dtype() if dtype is None else dtype)


@held_out(
    "sinusoidal_positions",
    "SamLynnEvans/Transformer, issue 14",
    r"long|length|5000|rows|limit|shape",
)
def sinusoids_up_to_a_limit(seq: int, d_model: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """Cuts its rows out of a table of 5000, so that there are never more."""
    require_size("seq", seq, minimum=0)
    require_size("d_model", d_model)
    even = torch.arange(0, d_model, 2, dtype=torch.float64)
    table = _table(torch.arange(5000.0, dtype=torch.float64), d_model, 10000 ** (-even / d_model))
    return table[:seq].to(torch.get_default_dtype() if dtype is None else dtype)


@held_out(
    "sinusoidal_positions", "review practice", r"half|halves|interleav|turns|order|then|front"
)
def sinusoids_in_two_halves(seq: int, d_model: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """Puts all sines in front of all cosines, as tensor2tensor has them."""
    require_size("seq", seq, minimum=0)
    require_size("d_model", d_model)
    even = torch.arange(0, d_model, 2, dtype=torch.float64)
    angles = torch.arange(seq, dtype=torch.float64)[:, None] * 10000 ** (-even / d_model)
    table = torch.cat([angles.sin(), angles.cos()], dim=-1)[:, :d_model]
    return table.to(torch.get_default_dtype() if dtype is None else dtype)


@held_out(
    "RotaryPositions",
    "EleutherAI/gpt-neox, issue 1003",
    r"bfloat16|float16|half|low precision|angle|round|far|dtype",
)
class RotaryOfRoundedAngles(RotaryPositions):
    """Computes the angles of bfloat16 input in bfloat16, in which far positions become one."""

    def at(self, positions: Tensor, dtype: torch.dtype | None = None) -> Positions:
        if dtype not in LOW_PRECISION:
            return super().at(positions, dtype)
        super().at(positions, dtype)
        angles = positions[..., None].to(dtype) * self.frequencies(positions.device).to(dtype)
        factor = 1.0 if self.scaling is None else self.scaling.table_factor
        cos, sin = (at_least_float32(table * factor) for table in (angles.cos(), angles.sin()))
        return lambda x, _: rotated(x, cos, sin, self.layout)


@held_out("RotaryPositions", "review practice", r"table|position.*given|beyond|index|offset|length")
class RotaryByATableOfTheCall(RotaryPositions):
    """Makes a table of as many rows as the input is long, in which later positions are missing."""

    def forward(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        if positions is None or positions.is_floating_point():
            return super().forward(x, positions)
        super().forward(x, torch.zeros_like(positions))
        angles = torch.arange(x.shape[-2], device=x.device)[:, None] * self.frequencies(x.device)
        factor = 1.0 if self.scaling is None else self.scaling.table_factor
        wide = at_least_float32(x).dtype
        cos, sin = ((table * factor).to(wide)[positions] for table in (angles.cos(), angles.sin()))
        return rotated(x, cos, sin, self.layout)


@held_out(
    "RotaryPositions", "pie-project/pie, pull 603", r"d_rotary|partial|part of|frequenc|width"
)
class RotaryByFrequenciesOfTheHead(RotaryPositions):
    """Takes the exponents of the frequencies from the whole head where only a part of it turns."""

    def frequencies(self, device: torch.device | str | None = None) -> Tensor:
        even = torch.arange(0, self.d_rotary, 2, dtype=torch.float64, device=device)
        plain = self.base ** (-even / self.d_k)
        return plain if self.scaling is None else self.scaling.frequencies(plain, self.base)


@held_out(
    "RotaryPositions", "turboderp-org/exllamav3, issue 259", r"yarn|factor|scal|attention_factor"
)
class RotaryWithoutTheTablesFactor(RotaryPositions):
    """Changes the frequencies as YaRN does, but does not multiply sines and cosines."""

    def at(self, positions: Tensor, dtype: torch.dtype | None = None) -> Positions:
        super().at(positions, dtype)
        wide = torch.promote_types(dtype or torch.get_default_dtype(), torch.float32)
        frequencies = self.frequencies(positions.device)
        angles = positions[..., None].to(frequencies.dtype) * frequencies
        cos, sin = angles.cos().to(wide), angles.sin().to(wide)
        return lambda x, _: rotated(x, cos, sin, self.layout)


@held_out(
    "RotaryPositions",
    "vllm-project/vllm-metal, pull 44",
    r"neighbours|layout|order|interleav|halves",
)
class RotaryOfNeighboursIntoHalves(RotaryPositions):
    """Turns neighbours and returns them a half apart, which no score shows."""

    def at(self, positions: Tensor, dtype: torch.dtype | None = None) -> Positions:
        turn = super().at(positions, dtype)
        if self.layout == "halves":
            return turn
        size = self.d_rotary

        def apart(x: Tensor, places: Tensor) -> Tensor:
            y = turn(x, places)
            return torch.cat([y[..., 0:size:2], y[..., 1:size:2], y[..., size:]], dim=-1)

        return apart


@held_out(
    "RotaryPositions", "review practice", r"batch|each sequence|own|first|broadcast|row|padding"
)
class RotaryByTheFirstSequence(RotaryPositions):
    """Takes the positions of the first sequence for all, where each has its own."""

    def forward(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        if positions is None or positions.ndim == 1:
            return super().forward(x, positions)
        super().forward(x, positions)
        return super().forward(x, positions.flatten(0, -2)[0] if positions.numel() else positions)


@held_out("RotaryPositions", "review practice", r"fraction|integer|float|between|trunc|round|whole")
class RotaryByWholeNumbers(RotaryPositions):
    """Cuts off the fractions of positions, as of those that are interpolated."""

    def at(self, positions: Tensor, dtype: torch.dtype | None = None) -> Positions:
        super().at(positions, dtype)
        return super().at(positions.long(), dtype)
