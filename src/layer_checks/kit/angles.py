"""Angles of rotary positions, in the tables that the models of others hand to their layers."""

from collections.abc import Mapping

import torch
from torch import Tensor

# Under which names others are given cosines, sines, both as complex numbers, and both in a pair.
COSINES = frozenset("cos freqs_cos cos_cached cosine cosines rope_cos".split())
SINES = frozenset("sin freqs_sin sin_cached sine sines rope_sin".split())
COMPLEX = frozenset("freqs_cis freqs_complex cis".split())
BOTH = frozenset("position_embeddings cos_sin rope_cache rotary_pos_emb".split())
NAMES = COSINES | SINES | COMPLEX | BOTH
# How the angles stand in them: the words for it.
TABLES: Mapping[str, str] = {
    "pairs": "tables of angles of each pair of features",
    "halves": "tables of angles of each feature, the halves alike",
    "neighbours": "tables of angles of each feature, neighbours alike",
    "batch": "tables of angles of each feature, the halves alike, with an axis for the batch",
}


def angles_of(positions: Tensor, d_k: int, base: float = 10_000.0) -> Tensor:
    """The angles of each pair of features in float64, shape (..., seq, d_k / 2).

    Args:
        positions: Of shape (..., seq).
        d_k: Features of a head.
        base: Of the frequencies.
    """
    frequencies = base ** (-torch.arange(0, d_k, 2, dtype=torch.float64) / d_k)
    return positions[..., None].double() * frequencies.to(positions.device)


def tables_by_name(angles: Tensor, kind: str, dtype: torch.dtype) -> dict[str, object]:
    """What a layer is given for each of the names of such tables.

    Args:
        angles: Of each pair, (seq, d_k / 2), or (batch, seq, d_k / 2).
        kind: A key of `TABLES`.
        dtype: Of cosines and sines.
    """
    if kind in ("halves", "batch"):
        angles = torch.cat([angles, angles], dim=-1)
    elif kind == "neighbours":
        angles = angles.repeat_interleave(2, dim=-1)
    if kind == "batch" and angles.ndim == 2:
        angles = angles[None]
    cos, sin = angles.cos().to(dtype), angles.sin().to(dtype)
    turns = torch.polar(torch.ones_like(angles), angles)
    turns = turns if dtype == torch.float64 else turns.to(torch.complex64)
    values = ((COSINES, cos), (SINES, sin), (BOTH, (cos, sin)), (COMPLEX, turns))
    return {name: value for names, value in values for name in names}
