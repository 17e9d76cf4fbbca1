"""Known wrong versions of `sinusoidal_positions`."""

import math

import torch
from torch import Tensor

from layer_checks.checks.positions import sinusoidal_positions


def _angles(seq: int, d_model: int, base: float = 10000.0, first: int = 0) -> Tensor:
    pos = torch.arange(first, first + seq, dtype=torch.float64)
    exponents = torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
    return pos[:, None] / base**exponents


def _angles_by_one_less(seq: int, d_model: int) -> Tensor:
    pairs = (d_model + 1) // 2
    exponents = torch.arange(pairs, dtype=torch.float64) / max(pairs - 1, 1)
    return torch.arange(seq, dtype=torch.float64)[:, None] / 10000.0**exponents


def _interleaved(even: Tensor, odd: Tensor, d_model: int, dtype: torch.dtype | None) -> Tensor:
    table = torch.stack((even, odd), dim=-1).flatten(-2)[:, :d_model]
    return table.to(dtype or torch.get_default_dtype())


@sinusoidal_positions.wrong(
    "let sines and cosines alternate: column 2i has the sine, 2i + 1 the cosine."
)
def sines_before_cosines(seq: int, d_model: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """Lays all sines before all cosines."""
    angles = _angles(seq, d_model)
    table = torch.cat((angles.sin(), angles.cos()), dim=-1)[:, :d_model]
    return table.to(dtype or torch.get_default_dtype())


@sinusoidal_positions.wrong("put the sines in the even columns.")
def cosine_first(seq: int, d_model: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """Has cosines in the even columns."""
    angles = _angles(seq, d_model)
    return _interleaved(angles.cos(), angles.sin(), d_model, dtype)


@sinusoidal_positions.wrong("the exponent of pair i is 2i/d_model.", name="exponent i/d_model")
def exponent_not_doubled(seq: int, d_model: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """Divides i, not 2i, by the width."""
    angles = _angles(seq, d_model, base=100.0)
    return _interleaved(angles.sin(), angles.cos(), d_model, dtype)


@sinusoidal_positions.wrong(
    "the exponent of pair i is 2i/d_model: a range in steps of two holds 2i already.",
    name="exponent 4i/d_model",
)
def exponent_doubled_twice(seq: int, d_model: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """Doubles the column's number, which is 2i already."""
    angles = _angles(seq, d_model, base=10000.0**2)
    return _interleaved(angles.sin(), angles.cos(), d_model, dtype)


@sinusoidal_positions.wrong(
    "the exponent of pair i is 2i/d_model: with d/2 - 1 in place of d/2 the last pair is 10000 "
    "itself.",
    name="timescales by d/2 - 1",
)
def timescales_by_one_less(seq: int, d_model: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """Divides by one pair less."""
    angles = _angles_by_one_less(seq, d_model)
    return _interleaved(angles.sin(), angles.cos(), d_model, dtype)


@sinusoidal_positions.wrong(
    "let sines and cosines alternate, and let the exponent of pair i be 2i/d_model: this is the "
    "table of tensor2tensor, not of the paper.",
    published="whisper 20250625, whisper/model.py, sinusoids; transformers, "
    "models/m2m_100/modeling_m2m_100.py; fairseq 0.12.2, "
    "modules/sinusoidal_positional_embedding.py; tensor2tensor, layers/common_attention.py",
)
def table_of_tensor2tensor(seq: int, d_model: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """Does both."""
    angles = _angles_by_one_less(seq, d_model)
    table = torch.cat((angles.sin(), angles.cos()), dim=-1)[:, :d_model]
    return table.to(dtype or torch.get_default_dtype())


@sinusoidal_positions.wrong(
    "the exponent of pair i is 2i/d_model: columns 2i and 2i + 1 are both of pair i.",
    name="both exponents doubled",
    published="SamLynnEvans/Transformer, Embed.py",
)
def doubled_column_numbers(seq: int, d_model: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """Doubles the number of each column, also that of the cosine."""
    pos = torch.arange(seq, dtype=torch.float64)[:, None]
    columns = torch.arange(d_model + d_model % 2, dtype=torch.float64)
    angles = pos / 10000.0 ** (2 * columns / d_model)
    return _interleaved(angles[:, 0::2].sin(), angles[:, 1::2].cos(), d_model, dtype)


@sinusoidal_positions.wrong("the base is 10000.")
def base_1000(seq: int, d_model: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """Lacks a zero."""
    angles = _angles(seq, d_model, base=1000.0)
    return _interleaved(angles.sin(), angles.cos(), d_model, dtype)


@sinusoidal_positions.wrong("count positions from 0.", name="counted from 1")
def from_one(seq: int, d_model: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """Counts positions from 1."""
    angles = _angles(seq, d_model, first=1)
    return _interleaved(angles.sin(), angles.cos(), d_model, dtype)


@sinusoidal_positions.wrong("give the sine and the cosine of a pair the same frequency.")
def frequency_of_its_own_for_the_cosine(
    seq: int, d_model: int, *, dtype: torch.dtype | None = None
) -> Tensor:
    """Uses each column's own number for its frequency."""
    pos = torch.arange(seq, dtype=torch.float64)[:, None]
    angles = pos / 10000.0 ** (torch.arange(d_model + d_model % 2) / d_model).double()
    return _interleaved(angles[:, 0::2].sin(), angles[:, 1::2].cos(), d_model, dtype)


@sinusoidal_positions.wrong(
    "with an odd d_model, leave the last cosine out.",
    published="the Annotated Transformer, the_annotated_transformer.py, PositionalEncoding",
)
def even_widths_only(seq: int, d_model: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """Has as many cosines as sines, for which an odd width has no room."""
    angles = _angles(seq, d_model)
    table = torch.zeros(seq, d_model, dtype=torch.float64)
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()
    return table.to(dtype or torch.get_default_dtype())


@sinusoidal_positions.wrong(
    "compute the angles in float64: in float32 the values around position 10,000 are off by up "
    "to 6e-4 (d_model = 512).",
    published="the Annotated Transformer, the_annotated_transformer.py, PositionalEncoding",
)
def angles_in_float32(seq: int, d_model: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """Multiplies a large position by a rounded frequency."""
    pos = torch.arange(seq, dtype=torch.float32)[:, None]
    exponents = torch.arange(0, d_model, 2, dtype=torch.float32) / d_model
    angles = pos * torch.exp(-math.log(10000.0) * exponents)
    return _interleaved(angles.sin(), angles.cos(), d_model, dtype)
