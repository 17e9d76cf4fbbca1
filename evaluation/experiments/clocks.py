"""Whether small models learn the order of words from fixed clocks in place of learned places."""

from typing import Any
from unittest.mock import patch

import torch

from transformer_layers import GPT2, sinusoidal_positions
from transformer_training.toy_language import ABLATIONS, share_right, trained_model

SOURCES = (
    "src/transformer_training/toy_language/*.py",
    "src/transformer_layers/models/gpt2/model.py",
    "src/transformer_layers/models/gpt2/block.py",
    "src/transformer_layers/models/gpt2/attention.py",
    "src/transformer_layers/models/gpt2/feed_forward.py",
    "src/transformer_layers/attention/definition.py",
    "src/transformer_layers/norms/*.py",
    "src/transformer_layers/generation/loss.py",
    "src/transformer_layers/positions/sinusoidal.py",
)
SEEDS = 10
KINDS = ("near", "near here", "or", "or here")


@torch.no_grad()
def clocks_of(model: GPT2) -> None:
    """Puts fixed clocks, a quarter as long, in the place of learned places, before training."""
    table = model.wpe.weight.requires_grad_(False)
    table.copy_(sinusoidal_positions(*table.shape) / 4)


def trained(seed: int, **settings: Any) -> GPT2:
    """A model of one block and one head, with clocks."""
    with patch.dict(ABLATIONS, clocks=clocks_of):
        return trained_model("clocks", seed=seed, **settings)


def measure() -> dict[str, Any]:
    """Ten models, one of each seed.

    Returns:
        For each kind of sentence the share of right verbs, seed by seed.
    """
    models = [trained(seed) for seed in range(SEEDS)]
    return {name: [round(share_right(each, name), 4) for each in models] for name in KINDS}
