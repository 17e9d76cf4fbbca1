"""What was measured, and whether it still is what would be."""

from pathlib import Path
from typing import Any

from evaluation.recorded import read_results
from evaluation.sources import refuse_stale

RESULTS = Path(__file__).with_name("results.json")

# What the shares depend on, beside torch; each row says itself what was trained.
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
    "evaluation/learning_curves/measure.py",
)


def recorded(file: Path = RESULTS) -> dict[str, Any]:
    """What `make curves` has measured.

    Args:
        file: Where it was written.

    Returns:
        "rows" as :func:`evaluation.learning_curves.measure.measure` yields them, "seeds", "date",
        the versions, and "sources", a digest of each.

    Raises:
        SystemExit: If it cannot be read, or sources have changed since; with the remedy.
    """
    results = read_results(file, ("rows", "seeds", "date", "sources"), "run make curves")
    refuse_stale(file, results["sources"], SOURCES, "make curves")
    return results
