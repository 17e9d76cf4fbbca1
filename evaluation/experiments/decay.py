"""What weight decay leaves of a sheet that a small GPT-2 reads too often.

Rate, decay and number of steps are varied, three settings of them with one product; the controls
have no decay. No sentence that is held out stands on a sheet.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

import torch
from torch import Tensor

from transformer_layers import GPT2, GPT2Config
from transformer_training import make_optimizer, train_step
from transformer_training.agreement import WORDS, encode, right_verb
from transformer_training.toy_language.model import by_itself

SOURCES = (
    "src/transformer_layers/models/gpt2/*.py",
    "src/transformer_training/step.py",
    "src/transformer_training/agreement/language.py",
    "src/transformer_training/toy_language/model.py",
)
SEEDS = 10
SETTINGS = (  # rate, decay, steps, dropout
    (0.01, 0.0, 80, 0.0),
    (0.01, 0.1, 80, 0.0),
    (0.01, 10.0, 80, 0.0),
    (0.01, 0.0, 400, 0.0),
    (0.01, 2.0, 400, 0.0),
    (0.01, 0.0, 800, 0.0),
    (0.01, 1.0, 800, 0.0),
    (0.0025, 0.0, 320, 0.0),
    (0.0025, 10.0, 320, 0.0),
    (0.01, 0.0, 80, 0.3),
)


def _language() -> Tensor:
    # the noun, preposition, noun, verb and adjective of each sentence
    rows = [
        [12, first, 13 + preposition, 12, second, 0, 18 + adjective, 21]
        for first, preposition, second, adjective in product(
            range(12), range(3), range(12), range(3)
        )
    ]
    found = torch.tensor(rows)
    found[:, 5] = right_verb(found[:, 1])
    return found


def _run(seed: int, rate: float, decay: float, steps: int, dropout: float) -> dict[str, float]:
    with by_itself(seed):
        language = _language()
        held_out, rest = language[::15], language[torch.arange(len(language)) % 15 != 0]
        rows = rest[torch.randperm(len(rest))[:64]]
        rows[:8, 5] = encode("is are").sum() - rows[:8, 5]  # the copyist's mistakes
        model = GPT2(GPT2Config(len(WORDS), 8, n_embd=32, n_layer=1, n_head=2, dropout=dropout))
        with torch.no_grad():  # so small a model starts sooner with these
            for weight in model.parameters():
                weight.mul_(5 if weight.ndim == 2 else 1)
        matrices = [weight for weight in model.h.parameters() if weight.ndim == 2]
        first = [weight.detach().clone() for weight in matrices]
        optimizer = make_optimizer(model, lr=rate, weight_decay=decay)
        for _ in range(steps):
            train_step(model.loss, optimizer, [rows], lr=rate)
        model.eval()
        with torch.no_grad():
            scores = model(held_out[:, :5])[:, -1].softmax(dim=-1)
            return {
                "held out": model.loss(held_out).item(),
                "copied": model.loss(rows).item(),
                "right": scores.gather(1, held_out[:, 5:6]).mean().item(),
                "weights": _largest_share(matrices),
                "change": _largest_share(
                    [weight - begun for weight, begun in zip(matrices, first, strict=True)]
                ),
            }


def _largest_share(matrices: Sequence[Tensor]) -> float:
    spectra = [torch.linalg.svdvals(each.detach()).square() for each in matrices]
    return sum((each[0] / each.sum()).item() for each in spectra) / len(spectra)


def measure() -> dict[str, Any]:
    """The losses, and the shares of the direction that is stretched most, a number a seed."""
    rows = []
    for rate, decay, steps, dropout in SETTINGS:
        found = [_run(seed, rate, decay, steps, dropout) for seed in range(SEEDS)]
        numbers = {name: [each[name] for each in found] for name in found[0]}
        rows.append({"rate": rate, "decay": decay, "steps": steps, "dropout": dropout, **numbers})
    return {"rows": rows}
