"""How attention of several heads is probed that takes an argument beside query, key and value."""

from collections.abc import Callable

import torch
from torch import Tensor

from layer_checks.kit.candidates import randn64
from layer_checks.kit.definitions import Candidate
from layer_checks.kit.probes import Function, Probing

_HEADS, _D_K = 3, 6


def probing_of_heads(pair: Callable[[Candidate], tuple[Function, Function]]) -> Probing:
    """What probes need of a function of query, key, value and mask, all with three heads.

    Args:
        pair: Of a candidate, it and the oracle, each with the further argument filled in.
    """
    return Probing(
        pair=pair,
        inputs=_given,
        narrow=lambda candidate: (*pair(candidate), _given(2, 4, 1)),
        wide=lambda candidate, size: (*pair(candidate), _given(1, 4, size)),
        masked=_masked,
    )


def _given(batch: int, seq: int, width: int = _D_K) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    keys = 5 if seq > 1 else 1
    mask = torch.rand(seq, keys).argsort(dim=-1) < 3
    shape = (batch, _HEADS, keys, width)
    return randn64(batch, _HEADS, seq, width), randn64(*shape), randn64(*shape), mask


def _masked(batch: int, seq: int, mask: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A mask of three axes is one for each sequence, shared by its heads."""
    query, key, value = randn64(3, batch, _HEADS, seq, _D_K)
    return query, key, value, mask if mask.ndim == 2 else mask[:, None]
