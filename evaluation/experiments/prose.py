"""A small GPT-2 learns English prose, beside two tables that count.

Five novels by Jane Austen are read, and most of a sixth is held out. The bigram and the trigram
are interpolated with absolute discounting, and their discounts are tuned on the held-out text,
which favors them. The tokenizer has seen the held-out text, too: all three use it. It is one run
with one seed, so the numbers are of this run.
"""

import json
import math
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from evaluation.novels import novels
from transformer_layers import GPT2
from transformer_training import TrainingConfig, train
from transformer_training.ranks import ranks_of
from transformer_training.run import Run
from transformer_training.step import evaluate
from transformer_training.tokens import Tokens, number_of_rows, prepare, sequences
from transformer_training.vocabulary import AnyTokenizer, tokens_of

SOURCES = (
    "evaluation/novels.py",
    "src/transformer_layers/generation/loss.py",
    "src/transformer_layers/generation/sampling.py",
    "src/transformer_layers/models/gpt2/attention.py",
    "src/transformer_layers/models/gpt2/block.py",
    "src/transformer_layers/models/gpt2/feed_forward.py",
    "src/transformer_layers/models/gpt2/model.py",
    "src/transformer_layers/tokenizers/*.py",
    "src/transformer_training/step.py",
    "src/transformer_training/tokens.py",
    "src/transformer_training/vocabulary.py",
)
HELD_OUT = "Persuasion"
SIZES: dict[str, Any] = {
    "n_layer": 4,
    "n_head": 4,
    "n_embd": 128,
    "seq": 128,
    "vocab_size": 2048,
    "dropout": 0.1,
}
STEPS = 5000
FIRST_STEPS = 200  # those that are run again to renew the record
BATCH_SIZE = 16
RATE = 2e-3
DISCOUNTS = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
PROMPT = "She had"
SAMPLE_TOKENS = 90
TEMPERATURE = 0.8
SEED = 0


@dataclass(frozen=True)
class Table:
    """How often each token followed each context of so many tokens, and a shorter table.

    Attributes:
        order: Tokens of a row that is counted: 2 of a bigram.
        following: For each context, how often each token followed.
        discount: What is taken off each count, and given to the shorter table.
        shorter: The next shorter table; the shares of single tokens if there is none.
        shares: How often each token comes, as a share of all.
    """

    order: int
    following: Mapping[tuple[int, ...], Counter[int]]
    discount: float
    shorter: "Table | None"
    shares: Float[Tensor, " vocab_size"]

    def likely(self, rows: Int[Tensor, "rows order"]) -> Float[Tensor, " rows"]:
        """The probability of the last token of each row, given those before it."""
        rows = rows[:, -self.order :]
        below = self.shorter.likely(rows) if self.shorter else self.shares[rows[:, -1]]
        return self._mixed(self._counts(rows), below)

    def best(self, rows: Int[Tensor, "rows order"]) -> "Table":
        """The same table with the discount that is best for some rows."""
        rows = rows[:, -self.order :]
        below = self.shorter.likely(rows) if self.shorter else self.shares[rows[:, -1]]
        counts = self._counts(rows)
        tables = [replace(self, discount=each) for each in DISCOUNTS]
        return min(tables, key=lambda table: -table._mixed(counts, below).log().sum().item())

    def write(self, ids: Sequence[int], tokens: int) -> list[int]:
        """Goes on after some tokens, drawn with the temperature and the seed of this module."""
        draws, written = torch.Generator().manual_seed(SEED), list(ids)
        for _ in range(tokens):
            context = torch.tensor(written[1 - self.order :]).expand(len(self.shares), -1)
            rows = torch.cat([context, torch.arange(len(self.shares))[:, None]], dim=1)
            tempered = (self.likely(rows).log() / TEMPERATURE).softmax(dim=0)
            written.append(int(torch.multinomial(tempered, 1, generator=draws)))
        return written

    def _counts(self, rows: Tensor) -> Float[Tensor, "3 rows"]:
        """How often each row came, its context, and how many tokens followed this context."""
        found = []
        for *context, last in rows.tolist():
            counts = self.following.get(tuple(context), Counter())
            found.append((counts[last], counts.total(), len(counts)))
        return torch.tensor(found, dtype=torch.float64).T

    def _mixed(self, counts: Tensor, below: Tensor) -> Tensor:
        came, contexts, kinds = counts
        kept = (came - self.discount).clamp(min=0) + self.discount * kinds * below
        return torch.where(contexts > 0, kept / contexts.clamp(min=1), below)


def counted(tokens: Int[Tensor, " count"], order: int, vocab_size: int) -> Table:
    """The table of rows of so many tokens, with nothing but single tokens below it."""
    following: dict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
    for *context, last in tokens.unfold(0, order, 1).tolist():
        following[tuple(context)][last] += 1
    shares = torch.bincount(tokens, minlength=vocab_size) + 1.0  # a token may never come
    shares = shares.double() / shares.sum()
    return Table(order, following, DISCOUNTS[0], None, shares)


def measure() -> dict[str, Any]:
    """Losses, perplexities and samples of the three, and the curve of the GPT-2."""
    with tempfile.TemporaryDirectory() as folder:
        config = _config(Path(folder))
        final = train(config)
        log = [json.loads(line) for line in (final.parent / "log.jsonl").read_text().splitlines()]
        tokens = prepare(config, final.parent / "tokens")
        return {
            "text": _text(tokens),
            "settings": {**SIZES, "steps": STEPS, "batch_size": BATCH_SIZE, "lr": RATE},
            "curve": _curve(log),
            **_compared(GPT2.from_pretrained(final), tokens, config.seq),
        }


def first_steps() -> dict[str, Any]:
    """The beginning of the curve, and what it was trained on; no more is run again."""
    with tempfile.TemporaryDirectory() as folder:
        config = _config(Path(folder))
        with ranks_of(config) as ranks, closing(Run(config, ranks)) as run:
            run.go_on()
            while run.step < FIRST_STEPS:
                run.next_step()
        log = (Path(config.out) / "log.jsonl").read_text().splitlines()
        tokens = prepare(config, Path(config.out) / "tokens")
        return {"text": _text(tokens), "curve": _curve([json.loads(line) for line in log])}


def _config(folder: Path) -> TrainingConfig:
    texts = novels()
    names = [*(name for name in texts if name != HELD_OUT), HELD_OUT]
    for name in names:
        (folder / f"{name}.txt").write_text(texts[name], encoding="utf-8")
    return TrainingConfig(
        data=tuple(str(folder / f"{name}.txt") for name in names),
        out=str(folder / "run"),
        steps=STEPS,
        batch_size=BATCH_SIZE,
        lr=RATE,
        seed=SEED,
        evaluate_every=100,
        validation_batches=10,
        checkpoint_every=500,
        device="cpu",
        **SIZES,
    )


def _text(tokens: Tokens) -> dict[str, Any]:
    return {
        "read": [name for name in novels() if name != HELD_OUT],
        "held_out": HELD_OUT,
        "tokens_read": len(tokens.train),
        "tokens_held_out": len(tokens.validation),
    }


def _curve(log: Sequence[dict[str, Any]]) -> list[dict[str, float]]:
    """Each validation loss, beside the mean loss of the steps since the last one."""
    found, since = [], []
    for line in log:
        since.append(line["loss"])
        if "validation_loss" in line:
            mean = sum(since) / len(since)
            found.append({"step": line["step"], "read": mean, "held_out": line["validation_loss"]})
            since = []
    return found


def _compared(model: GPT2, tokens: Tokens, seq: int) -> dict[str, Any]:
    learned, held_out = tokens.train.long(), tokens.validation.long()
    rows = number_of_rows(held_out, seq)
    targets = held_out[1 : rows * seq + 1]  # the tokens that the model is asked for
    # With the two tokens before each, the last one that was read among them.
    scored = torch.cat([learned[-1:], held_out[: rows * seq + 1]]).unfold(0, 3, 1)
    bytes_of_token = len(tokens.tokenizer.decode(targets).encode()) / len(targets)
    bigram = counted(learned, 2, tokens.tokenizer.vocab_size).best(scored)
    trigram = replace(counted(learned, 3, tokens.tokenizer.vocab_size), shorter=bigram).best(scored)
    batches = sequences(held_out, torch.arange(rows), seq).split(1)
    losses = {
        "bigram": -bigram.likely(scored).log().mean().item(),
        "trigram": -trigram.likely(scored).log().mean().item(),
        "GPT-2": evaluate(model, model.loss, batches).item(),
    }
    return {
        "scored": len(targets),
        "weights": sum(each.numel() for each in model.parameters()),
        "discounts": {"bigram": bigram.discount, "trigram": trigram.discount},
        "models": {
            name: {
                "nats_a_token": loss,
                "nats_a_byte": loss / bytes_of_token,
                "perplexity": math.exp(loss),
            }
            for name, loss in losses.items()
        },
        "samples": _samples(model, bigram, trigram, tokens.tokenizer),
    }


def _samples(model: GPT2, bigram: Table, trigram: Table, tokenizer: AnyTokenizer) -> dict[str, str]:
    prompt = torch.tensor(tokens_of(tokenizer, PROMPT))
    draws = torch.Generator().manual_seed(SEED)
    written = {
        name: table.write(prompt.tolist(), SAMPLE_TOKENS)
        for name, table in (("bigram", bigram), ("trigram", trigram))
    }
    [ids] = model.generate(prompt[None], SAMPLE_TOKENS, temperature=TEMPERATURE, generator=draws)
    written["GPT-2"] = ids.tolist()
    return {name: tokenizer.decode(torch.tensor(ids)) for name, ids in written.items()}
