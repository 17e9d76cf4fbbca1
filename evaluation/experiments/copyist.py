"""What a small GPT-2 makes of a sheet that it reads again and again, and what helps.

A copyist has written down sentences of the toy language such as "the cat near the dogs is old .",
some with the wrong verb. A model of one block reads this sheet once in each step. Other sentences
are held out: none that begins as one of them does stands on a sheet.

Rate, decay and number of steps are varied, three settings of them with one product; the controls
have no decay. Dropout is tried on one sheet and on a new one for each step, and pre-norm beside
post-norm.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from evaluation.experiments.norm_placement import BLOCKS
from transformer_layers import GPT2, GPT2Config
from transformer_training import make_optimizer, train_step
from transformer_training.toy_language import WORDS, encode, kind
from transformer_training.toy_language.model import by_itself

SOURCES = (
    "src/transformer_layers/models/gpt2/*.py",
    "src/transformer_training/step.py",
    "src/transformer_training/toy_language/language.py",
    "src/transformer_training/toy_language/model.py",
    "evaluation/experiments/norm_placement.py",
)
SEEDS = 10
EVERY = 10  # steps between two points of a curve
LENGTH, VERB = 8, 5  # words of a sentence, and where its verb stands


@dataclass(frozen=True)
class Setting:
    """How a model is trained.

    Attributes:
        rate: Learning rate of AdamW, the same in all steps.
        decay: Weight decay of the block's matrices.
        steps: How many; each reads one sheet.
        dropout: Rate in the four places of GPT-2.
        norm: "pre" or "post", where the block's norms stand.
        new_sheets: Whether each step has a sheet of its own.
    """

    rate: float = 0.01
    decay: float = 0.0
    steps: int = 80
    dropout: float = 0.0
    norm: str = "pre"
    new_sheets: bool = False


SETTINGS = (
    Setting(),
    Setting(decay=0.1),
    Setting(decay=10.0),
    Setting(dropout=0.3),
    Setting(new_sheets=True),
    Setting(new_sheets=True, dropout=0.3),
    Setting(steps=110, norm="post"),
    Setting(steps=400),
    Setting(steps=400, decay=2.0),
    Setting(steps=800),
    Setting(steps=800, decay=1.0),
    Setting(rate=0.0025, steps=320),
    Setting(rate=0.0025, steps=320, decay=10.0),
)


@dataclass(frozen=True)
class Run:
    """A trained model, and what it was asked on its way.

    Attributes:
        model: In evaluation mode.
        sheet: What it has read in its last step, or would read in the next where sheets are new.
        first: The block's matrices before training.
        held_out: The loss on the sentences that are held out, before every tenth step and at last.
        copied: The loss on the sheet that comes next, then too.
    """

    model: GPT2
    sheet: Int[Tensor, "n 8"]
    first: list[Tensor]
    held_out: list[float]
    copied: list[float]


def held_out() -> Int[Tensor, "n 8"]:
    """The sentences that no sheet has: a fifth of all, whole beginnings with each adjective."""
    return _by_beginning()[::5].flatten(0, 1)


def sheet(n: int = 64) -> Int[Tensor, "n 8"]:
    """Draws a sheet with torch's generator; the first eighth of it has the wrong verb."""
    language = _by_beginning()
    others = language[torch.arange(len(language)) % 5 != 0].flatten(0, 1)
    rows = others[torch.randint(len(others), (n,))]
    rows[: n // 8, VERB] = encode("is are").sum() - rows[: n // 8, VERB]
    return rows


def fresh(setting: Setting) -> GPT2:
    """A model of one block before training, drawn with torch's generator."""
    model = GPT2(
        GPT2Config(len(WORDS), LENGTH, n_embd=32, n_layer=1, n_head=2, dropout=setting.dropout)
    )
    for block in model.h:
        block.__class__ = BLOCKS[setting.norm]
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(5 if weight.ndim == 2 else 1)  # as the toy language's own models begin
    return model


def matrices(model: GPT2) -> list[Tensor]:
    """The weights that decay: the matrices of the block."""
    return [weight for weight in model.h.parameters() if weight.ndim == 2]


def trained(setting: Setting, seed: int = 0) -> Run:
    """Trains a model on a sheet, in float64.

    Args:
        setting: How.
        seed: Of the sheet, the first weights and the dropout.
    """
    with by_itself(seed):
        asked, rows, model = held_out(), sheet(), fresh(setting)
        first = [weight.detach().clone() for weight in matrices(model)]
        optimizer = make_optimizer(model, lr=setting.rate, weight_decay=setting.decay)
        curve: list[float] = []
        own: list[float] = []
        for step in range(setting.steps):
            if step % EVERY == 0:
                curve.append(loss(model, asked))
                own.append(loss(model, rows))
            train_step(model.loss, optimizer, [rows], lr=setting.rate)
            rows = sheet() if setting.new_sheets else rows
        curve.append(loss(model, asked))
        own.append(loss(model, rows))
        return Run(model.eval(), rows, first, curve, own)


@torch.no_grad()
def loss(model: GPT2, rows: Int[Tensor, "n 8"]) -> float:
    """A model's loss without dropout, in nats; its mode is left as it was."""
    training = model.training
    found = model.eval().loss(rows).item()
    model.train(training)
    return found


def measured(run: Run) -> dict[str, Any]:
    """What the pages say of a run, by name."""
    learned = [weight - first for weight, first in zip(matrices(run.model), run.first, strict=True)]
    return {
        "held out": _rounded(run.held_out),
        "copied": _rounded(run.copied),
        "right": _probability(run.model, held_out()),
        "wrong": _probability(run.model, run.sheet[: len(run.sheet) // 8]),
        "size": torch.nn.utils.get_total_norm(matrices(run.model)).item(),
        "weights": _largest_share(matrices(run.model)),
        "change": _largest_share(learned),
    }


def measure() -> dict[str, Any]:
    """Ten runs of each setting.

    Returns:
        "rows": for each setting its fields, and under each name of :func:`measured` a value a seed.
    """
    rows = []
    for setting in SETTINGS:
        found = [measured(trained(setting, seed)) for seed in range(SEEDS)]
        rows.append(
            {**asdict(setting), **{name: [each[name] for each in found] for name in found[0]}}
        )
    return {"rows": rows, "seeds": SEEDS}


def of(rows: Iterable[dict[str, Any]], setting: Setting) -> dict[str, Any]:
    """The row of a setting among those that were recorded.

    Raises:
        ValueError: If there is none.
    """
    for row in rows:
        if asdict(setting).items() <= row.items():
            return row
    raise ValueError(f"no row was recorded for {setting}")


def _by_beginning() -> Int[Tensor, "beginnings adjectives 8"]:
    return kind("near").texts.unflatten(0, (-1, 3))


@torch.no_grad()
def _probability(model: GPT2, rows: Int[Tensor, "n 8"]) -> float:
    # of the verbs that stand in the rows
    scores = model(rows[:, :VERB])[:, -1].softmax(dim=-1)
    return round(scores.gather(1, rows[:, VERB : VERB + 1]).mean().item(), 4)


def _largest_share(weights: Sequence[Tensor]) -> float:
    # of a matrix's sum of squares, in the direction that it stretches most; a mean over matrices
    spectra = [torch.linalg.svdvals(each.detach()).square() for each in weights]
    return round(sum((each[0] / each.sum()).item() for each in spectra) / len(spectra), 4)


def _rounded(values: Iterable[float]) -> list[float]:
    return [round(value, 4) for value in values]
