"""What a small translator gets wrong without a part, and what label smoothing changes.

Each setting is trained with each seed, on the same sentences; the sentences that are asked were
held out.
"""

from typing import Any

import torch

from transformer_layers import Transformer
from transformer_training.toy_language import VERBS
from transformer_training.toy_translation import (
    ABLATIONS,
    batch,
    held_out,
    share_exact,
    source_mask,
    trained_translator,
)

SOURCES = (
    "src/transformer_layers/attention/*.py",
    "src/transformer_layers/blocks/*.py",
    "src/transformer_layers/generation/*.py",
    "src/transformer_layers/models/transformer/config.py",
    "src/transformer_layers/models/transformer/model.py",
    "src/transformer_training/toy_language/language.py",
    "src/transformer_training/toy_language/model.py",
    "src/transformer_training/toy_translation/*.py",
)
SEEDS = 10
SMOOTHING = 0.1
SETTINGS: tuple[tuple[str | None, float], ...] = (  # what is taken out, label smoothing
    (None, 0.0),
    *((part, 0.0) for part in ABLATIONS),
    (None, SMOOTHING),
)


@torch.no_grad()
def held_out_loss(model: Transformer) -> float:
    """Cross-entropy of each held-out word, given the right words before it."""
    asked = held_out()
    source_ids = batch(pair.source for pair in asked)
    target_ids = batch(pair.target for pair in asked)
    return model.loss(source_ids, target_ids, source_mask(source_ids)).item()


def measure() -> dict[str, Any]:
    """The shares of held-out sentences that are translated exactly, and the losses, by seed."""
    rows = []
    for without, epsilon in SETTINGS:
        models = [trained_translator(without, epsilon=epsilon, seed=seed) for seed in range(SEEDS)]
        rows.append(
            {
                "without": without,
                "epsilon": epsilon,
                "exact": [share_exact(model) for model in models],
                "loss": [held_out_loss(model) for model in models],
                "kinds": {kind: [share_exact(model, kind) for model in models] for kind in VERBS},
            }
        )
    return {"seeds": SEEDS, "rows": rows}
