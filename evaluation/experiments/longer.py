"""Small Llamas read prose that is four times as long as what they learned from.

They learn from pieces of five novels by Jane Austen, and are asked for a sixth. A model is asked as
it was trained, and with its rotary positions changed by each scaling: the weights are the same. Two
questions ask what hurts: a model sees the last keys alone, at distances that it has learned; and
the two halves of a short piece are moved apart by their position ids, so that it sees no more keys
than in training. A Llama of one block learns the sentences of the toy language, and is asked with
the last word's position id moved.
"""

from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from evaluation.novels import novels
from transformer_layers import (
    LinearScaling,
    Llama,
    Llama3Scaling,
    LlamaConfig,
    NTKScaling,
    YaRNScaling,
    train_tokenizer,
)
from transformer_layers.checkpoints.rotary_entries import RopeScaling
from transformer_training.toy_language import VERBS, WORDS, draw, encode, kind
from transformer_training.toy_language.model import by_itself

SOURCES = (
    "evaluation/novels.py",
    "src/transformer_layers/attention/causal.py",
    "src/transformer_layers/attention/grouped.py",
    "src/transformer_layers/feed_forward/gated.py",
    "src/transformer_layers/models/llama/block.py",
    "src/transformer_layers/models/llama/model.py",
    "src/transformer_layers/models/rotary_decoder.py",
    "src/transformer_layers/norms/rms_norm.py",
    "src/transformer_layers/positions/rotary.py",
    "src/transformer_layers/positions/scaling.py",
    "src/transformer_layers/tokenizers/*.py",
    "src/transformer_training/toy_language/*.py",
)
HELD_OUT = "Persuasion"
SEEDS = 10
LENGTH = 64  # tokens of a piece in training
FACTOR = 4
LONG = FACTOR * LENGTH
BIN = 16  # positions over which a loss is averaged
STEPS = 1500
MORE_STEPS = 100  # of the training at the whole length
TOKENS = 1024  # of a batch
SCORED = 40_960  # tokens of the held-out novel that are asked for
RATE = 3e-3
GAPS = (0, 64, 128, 192)
CONFIG = LlamaConfig(
    vocab_size=1024,
    hidden_size=64,
    intermediate_size=172,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=4,
    max_position_embeddings=LONG,
    tie_word_embeddings=True,
)
FURTHER = (0, 3, 6)  # positions by which the last word of a sentence is moved
WORD_STEPS = 500
WORD_CONFIG = LlamaConfig(len(WORDS), 32, 64, num_hidden_layers=1, num_attention_heads=2)
SCALINGS: dict[str, RopeScaling | NTKScaling | None] = {
    "as trained": None,
    "linear": LinearScaling(float(FACTOR)),
    "NTK": NTKScaling(float(FACTOR)),
    "YaRN": YaRNScaling(float(FACTOR), original_max_position_embeddings=LENGTH),
    "Llama 3": Llama3Scaling(float(FACTOR), 1.0, 4.0, original_max_position_embeddings=LENGTH),
}


def texts() -> tuple[Int[Tensor, " tokens"], Int[Tensor, " tokens"]]:
    """The tokens of five novels, and those of the sixth; the tokenizer learned from the five."""
    by_name = novels()
    held_out = by_name.pop(HELD_OUT)
    tokenizer = train_tokenizer(by_name.values(), CONFIG.vocab_size)
    return torch.cat([tokenizer.encode(each) for each in by_name.values()]), tokenizer.encode(
        held_out
    )


def learn(model: Llama, tokens: Int[Tensor, " count"], seq: int, steps: int, rate: float) -> None:
    """Trains a model on pieces drawn at random, at a rate that falls to nothing."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.95), fused=True)
    falling = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / 50, 1.0) * (1 - step / steps)
    )
    for _ in range(steps):
        starts = torch.randint(len(tokens) - seq, (TOKENS // seq, 1))
        loss = model.loss(tokens[starts + torch.arange(seq + 1)])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        falling.step()


def with_scaling(model: Llama, scaling: RopeScaling | NTKScaling | None) -> Llama:
    """A model of the same weights, with its rotary positions changed."""
    if isinstance(scaling, NTKScaling):  # a config says it by another base
        d_k = model.config.d_k
        base = model.config.rope_theta * scaling.factor ** (d_k / (d_k - 2))
        changed = replace(model.config, rope_theta=base)
    else:
        changed = replace(model.config, rope_scaling=scaling)
    other = Llama(changed)
    other.load_state_dict(model.state_dict())
    return other.eval()


@torch.no_grad()
def losses(
    model: Llama,
    pieces: Int[Tensor, "count seq_and_next"],
    mask: Bool[Tensor, "seq seq"] | None = None,
    positions: Int[Tensor, " seq"] | None = None,
) -> Float[Tensor, " seq"]:
    """The mean loss of the token after each position, in nats."""
    found = torch.zeros(pieces.shape[1] - 1)
    for ids in pieces.split(32):
        seen = None if mask is None else mask.expand(len(ids), *mask.shape)
        logits = model(ids[:, :-1], mask=seen, positions=positions)
        targets = ids[:, 1:]
        found += nn.functional.cross_entropy(logits.mT, targets, reduction="none").sum(0)
    return found / len(pieces)


def window(size: int) -> Bool[Tensor, "seq seq"]:
    """A mask that shows to each of `LONG` positions the last keys alone, itself among them."""
    everything = torch.ones(LONG, LONG, dtype=torch.bool)
    return everything.tril() & everything.triu(1 - size)


def of_seed(
    seed: int, learned: Int[Tensor, " tokens"], held_out: Int[Tensor, " tokens"]
) -> dict[str, Any]:
    """What one model loses, in nats, each number rounded to four digits.

    Returns:
        "losses": for each way of asking, a loss for every `BIN` positions; "apart": the loss of a
        short piece's second half, its position ids moved by each of `GAPS`; "alone": the same
        without the first half; "more": the losses after `MORE_STEPS` updates at the whole length.
    """
    pieces, short = (held_out.unfold(0, seq + 1, seq) for seq in (LONG, LENGTH))
    places = torch.arange(LENGTH)
    second = places >= LENGTH // 2
    alone = second.expand(LENGTH, -1) | ~second[:, None]

    def asked(model: Llama, mask: Tensor | None = None) -> list[float]:
        means = losses(model, pieces, mask).unflatten(0, (-1, BIN)).mean(1)
        return [round(each, 4) for each in means.tolist()]

    def of_second_half(gap: int, mask: Tensor | None = None) -> float:
        return round(losses(model, short, mask, places + gap * second)[second].mean().item(), 4)

    with by_itself(seed):
        model = Llama(CONFIG)
        learn(model, learned, LENGTH, STEPS, RATE)
        found = {name: asked(with_scaling(model, each)) for name, each in SCALINGS.items()}
        found["window"] = asked(model, window(LENGTH))
        more = {}
        for name in ("as trained", "linear", "YaRN"):
            longer = with_scaling(model, SCALINGS[name])
            learn(longer, learned, LONG, MORE_STEPS, RATE / 10)
            more[name] = asked(longer)
        return {
            "losses": found,
            "apart": [of_second_half(gap) for gap in GAPS],
            "alone": of_second_half(0, alone),
            "more": more,
        }


def of_words(seed: int) -> list[float]:
    """The share of right verbs of a Llama of one block, the last word moved by each of `FURTHER`.

    The words stay as they are: the position id of the last one alone is another.
    """
    with by_itself(seed):
        model = Llama(WORD_CONFIG)
        optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
        for _ in range(WORD_STEPS):
            loss = model.loss(draw(VERBS, 11))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        verbs = encode("is are")

        @torch.no_grad()
        def share(further: int) -> float:
            positions, found = torch.tensor([0, 1, 2, 3, 4, 5 + further]), []
            for asked in map(kind, ("near here", "or here")):
                scores = model(asked.prompts, positions=positions)[:, -1, verbs]
                found.append((verbs[scores.argmax(-1)] == asked.right).double())
            return round(torch.cat(found).mean().item(), 4)

        return [share(each) for each in FURTHER]


def measure() -> dict[str, Any]:
    """Ten models, and sizes.

    Returns:
        "rows": what :func:`of_seed` finds, of each seed; "words": what :func:`of_words` finds.
    """
    learned, held_out = texts()
    held_out = held_out[: SCORED + 1]
    return {
        "rows": [of_seed(seed, learned, held_out) for seed in range(SEEDS)],
        "words": [of_words(seed) for seed in range(SEEDS)],
        "further": list(FURTHER),
        "word_steps": WORD_STEPS,
        "seeds": SEEDS,
        "length": LENGTH,
        "factor": FACTOR,
        "bin": BIN,
        "steps": STEPS,
        "more_steps": MORE_STEPS,
        "tokens": TOKENS,
        "scored": SCORED,
        "gaps": list(GAPS),
        "learned": len(learned),
        "weights": sum(each.numel() for each in Llama(CONFIG).parameters()),
    }
