"""What dropout, averaged checkpoints and beams change in a small translator.

They are choices of sections 5.4 and 6.1 of https://arxiv.org/abs/1706.03762. Each setting is
trained with each seed; the sentences that are asked were held out.
"""

from collections.abc import Sequence
from typing import Any

from evaluation.experiments.translation import SEEDS, held_out_loss
from evaluation.experiments.translation import SOURCES as OF_TRANSLATIONS
from transformer_layers import PaperLengthPenalty, Transformer
from transformer_training.toy_translation import share_exact, trained_translator

SOURCES = (*OF_TRANSLATIONS, "evaluation/experiments/translation.py")
SENTENCES = (120, 480, None)  # how many pairs a translator learns from; None is all
RATES = (0.0, 0.1, 0.3)
STEPS = (200, 400)
CHECKPOINTS = (1, 5)  # whose weights are averaged
BEAMS = ((1, None), (4, None), (4, 0.6))  # beams, and the exponent of the paper's length penalty


def _asked(models: Sequence[Transformer]) -> dict[str, list[float]]:
    return {
        "exact": [share_exact(model) for model in models],
        "loss": [held_out_loss(model) for model in models],
    }


def _trained(**options: Any) -> list[Transformer]:
    return [trained_translator(**options, seed=seed) for seed in range(SEEDS)]


def measure() -> dict[str, Any]:
    """The shares of held-out sentences that are translated exactly, and the losses, by seed."""
    dropout = [
        {"sentences": sentences, "dropout": rate}
        | _asked(_trained(sentences=sentences, dropout=rate))
        for sentences in SENTENCES
        for rate in RATES
    ]
    averaged, searched = [], []
    for steps in STEPS:
        for checkpoints in CHECKPOINTS:
            models = _trained(steps=steps, checkpoints=checkpoints)
            averaged.append({"steps": steps, "checkpoints": checkpoints} | _asked(models))
            if checkpoints == 1:
                searched += [
                    {
                        "steps": steps,
                        "beams": beams,
                        "alpha": alpha,
                        "exact": [
                            share_exact(
                                model,
                                beams=beams,
                                length_penalty=0.0 if alpha is None else PaperLengthPenalty(alpha),
                            )
                            for model in models
                        ],
                    }
                    for beams, alpha in BEAMS
                ]
    return {"seeds": SEEDS, "dropout": dropout, "averaged": averaged, "searched": searched}
