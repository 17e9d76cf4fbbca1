"""What was measured, and whether it still is what would be."""

import datetime
import platform
from pathlib import Path
from typing import Any

import torch

from evaluation.recorded import read_results
from evaluation.sources import changed, digests

RESULTS = Path(__file__).with_name("results.json")

# What the shares depend on, beside torch.
SOURCES = (
    "src/transformer_training/toy_language/*.py",
    "src/transformer_layers/models/gpt2/model.py",
    "src/transformer_layers/models/gpt2/block.py",
    "src/transformer_layers/models/gpt2/attention.py",
    "src/transformer_layers/models/gpt2/feed_forward.py",
    "src/transformer_layers/models/gpt2/conv1d.py",
    "src/transformer_layers/attention/causal.py",
    "src/transformer_layers/attention/heads.py",
    "src/transformer_layers/attention/kernel.py",
    "src/transformer_layers/generation/loss.py",
    "evaluation/ablations/plan.py",
    "evaluation/ablations/measure.py",
)


def facts() -> dict[str, Any]:
    """When, with which versions and from which sources a record is made."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "sources": digests(SOURCES),
    }


def recorded(file: Path = RESULTS) -> dict[str, Any]:
    """What `make ablations` has measured.

    Args:
        file: Where it was written.

    Returns:
        "rows" as :func:`evaluation.ablations.measure.measure` returns them, "seeds", "date", the
        versions, and "sources", a digest of each.

    Raises:
        SystemExit: If it cannot be read, or sources have changed since; with the remedy.
    """
    results = read_results(file, ("rows", "seeds", "date", "sources"), "run make ablations")
    stale = changed(results["sources"], digests(SOURCES))
    if stale:
        raise SystemExit(
            f"{file}: it was measured before {', '.join(stale)} changed. Remedy: run make ablations"
        )
    return results
