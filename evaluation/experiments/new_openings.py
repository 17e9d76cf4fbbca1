"""How a small GPT-2 with a tokenizer of its own goes on after openings that it hasn't read.

A text of the toy language begins with five words, such as *the cat near the dogs*; then comes a
verb. Each model, and its tokenizer, learns texts with all openings but a hundred, which differ from
seed to seed.
"""

from collections.abc import Iterable
from typing import Any

import torch

from transformer_layers import GPT2, GPT2Config, Tokenizer, train_tokenizer
from transformer_training.toy_language import decode, draw, kind
from transformer_training.toy_language.model import by_itself

SOURCES = (
    "src/transformer_training/toy_language/*.py",
    "src/transformer_layers/models/gpt2/model.py",
    "src/transformer_layers/models/gpt2/block.py",
    "src/transformer_layers/models/gpt2/attention.py",
    "src/transformer_layers/models/gpt2/feed_forward.py",
    "src/transformer_layers/generation/loss.py",
    "src/transformer_layers/tokenizers/*.py",
)
SEEDS = 10
STEPS = 150
HELD = 100
KINDS = ("near", "or")
VERBS = (" is", " are")


def openings() -> dict[str, str]:
    """The verb that is right after each opening."""
    return {
        decode(ids): decode(verb[None])
        for name in KINDS
        for ids, verb in zip(kind(name).prompts, kind(name).right, strict=True)
    }


def opening(line: str) -> str:
    """The words of a text before its verb."""
    return " ".join(line.split()[:5])


@torch.no_grad()
def right(model: GPT2, tokenizer: Tokenizer, texts: Iterable[str]) -> int:
    """After how many openings the right one of both verbs has the higher score.

    Raises:
        ValueError: If a verb is more than one token, whose score would not be the verb's.
    """
    ids = [tokenizer.encode(verb) for verb in VERBS]
    if any(len(each) != 1 for each in ids):
        raise ValueError(f"{VERBS} are {ids}: a token each was wanted")
    verbs, expected = torch.cat(ids), openings()
    found = 0
    for text in texts:
        best = model(tokenizer.encode(text)[None])[0, -1, verbs].argmax()
        found += VERBS[int(best)].strip() == expected[text]
    return found


def trained(seed: int) -> tuple[GPT2, Tokenizer, list[str]]:
    """A model that has not read some of the openings, its tokenizer, and those openings."""
    with by_itself(seed):
        lines = [decode(row).partition(" .")[0] + "." for row in draw(KINDS, 2000)]
        known = list(openings())
        held = [known[i] for i in torch.randperm(len(known))[:HELD].tolist()]
        kept = [lines[i] for i in torch.randperm(len(lines)).tolist()]
        kept = [line for line in kept if opening(line) not in held]
        tokenizer = train_tokenizer(kept, vocab_size=300)
        rows = [tokenizer.encode(" ".join(kept[i : i + 4]))[:32] for i in range(0, len(kept), 4)]
        ids = torch.stack([row for row in rows if len(row) == 32])
        config = GPT2Config(300, n_positions=64, n_embd=48, n_layer=2, n_head=2, dropout=0.0)
        model = GPT2(config)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(5 if parameter.ndim == 2 else 1)
        optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, fused=True)
        for _ in range(STEPS):
            loss = model.loss(ids[torch.randint(len(ids), (32,))])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model.eval(), tokenizer, held


def measure() -> dict[str, Any]:
    """Ten models, each asked for the verbs after the openings that it hasn't read.

    Returns:
        "right": after how many the verb is right, for each seed; "held": of how many.
    """
    return {"right": [right(*trained(seed)) for seed in range(SEEDS)], "held": HELD}
