"""Laws that GPT-2's attention and its block share: both are causal, and take a cache."""

import torch
from torch import Tensor, nn

from layer_checks.candidates import randn64
from layer_checks.evidence import Evidence, equivalent
from transformer_layers import KeyValueCache


def sequences(d_model: int, batch: int = 2, seq: int = 4) -> Tensor:
    """Random sequences in float64."""
    return randn64(batch, seq, d_model)


def cache_for(d_model: int, num_heads: int, max_seq: int) -> KeyValueCache:
    """An empty cache for two sequences in float64."""
    return KeyValueCache(2, num_heads, max_seq, d_model // num_heads, dtype=torch.float64)


def future_changes_nothing(ours: nn.Module, d_model: int, atol: float) -> Evidence:
    """Changes positions 4 and 5 of 6, and holds 0 to 3 against what they were."""
    x = sequences(d_model, seq=6)
    changed = x.clone()
    changed[:, 4:] = randn64(2, 2, d_model)
    return equivalent(ours(changed)[:, :4], ours(x)[:, :4], atol=atol)


def steps_equal_the_whole(
    ours: nn.Module, theirs: nn.Module, d_model: int, num_heads: int
) -> Evidence:
    """Holds steps of 3, 2 and 1 positions with a cache against all six at once."""
    x = sequences(d_model, seq=6)
    cache = cache_for(d_model, num_heads, max_seq=6)
    steps = [ours(part, cache=cache) for part in x.split([3, 2, 1], dim=1)]
    return equivalent(torch.cat(steps, dim=1), theirs(x), atol=1e-12)
