"""Which English words a small translator needs, by hiding them and by changing them.

Each translator is trained with its own seed. One token of each held-out sentence is hidden from
the decoder, and it is counted how many sentences still come out right, word by word. Then one word
of each sentence of a kind is changed to its other number, and it is counted how many German verbs
change.
"""

from typing import Any

import torch

from evaluation.experiments.translation import SEEDS
from evaluation.experiments.translation import SOURCES as OF_TRANSLATIONS
from transformer_layers import Transformer
from transformer_training.toy_language import NOUNS
from transformer_training.toy_translation import (
    END,
    PADDING,
    WORDS,
    batch,
    held_out,
    source_mask,
    trained_translator,
    translated,
)

SOURCES = (*OF_TRANSLATIONS, "evaluation/experiments/translation.py")
HIDDEN = {"nothing": -1, "end": END, "stop": WORDS.index(".")}
KIND = "near here"  # the cat near the dogs here is old .
CHANGED = {"first noun": 1, "second noun": 4, "verb": 6}  # where they stand in such a sentence
_GERMAN_VERB = 1


def other_number(word: str) -> str:
    """The plural of a singular, and the singular of a plural."""
    if word in ("is", "are"):
        return "are" if word == "is" else "is"
    many = len(NOUNS) // 2
    return NOUNS[(NOUNS.index(word) + many) % len(NOUNS)]


@torch.no_grad()
def share_exact_without(model: Transformer, token: int) -> float:
    """The share of held-out sentences with every word right, given the right words before it.

    Args:
        model: A translator.
        token: What each position of the decoder does not see in the source.
    """
    pairs = held_out()
    source_ids = batch(pair.source for pair in pairs)
    target_ids = batch(pair.target for pair in pairs)
    seen = source_mask(source_ids)
    memory = model.encode(source_ids, seen)
    seen = seen & (source_ids != token)[:, None]
    said = model.logits(model.decode(model.shifted(target_ids), memory, seen)).argmax(dim=-1)
    right = (said == target_ids) | (target_ids == PADDING)
    return right.all(dim=-1).double().mean().item()


def share_of_changed_verbs(model: Transformer, place: int) -> float:
    """The share of held-out sentences of `KIND` whose German verb changes with an English word.

    Args:
        model: A translator.
        place: Of the English word that is put into its other number.
    """
    texts = [pair.source for pair in held_out() if pair.kind == KIND]
    changed = []
    for text in texts:
        words = text.split()
        words[place] = other_number(words[place])
        changed.append(" ".join(words))
    verbs = [
        [(each.split() + [""] * 2)[_GERMAN_VERB] for each in translated(model, asked)]
        for asked in (texts, changed)
    ]
    return sum(a != b for a, b in zip(*verbs, strict=True)) / len(texts)


def measure() -> dict[str, Any]:
    """The shares of ten translators, one of each seed."""
    models = [trained_translator(seed=seed) for seed in range(SEEDS)]
    hidden = {
        name: [share_exact_without(model, token) for model in models]
        for name, token in HIDDEN.items()
    }
    changed = {
        name: [share_of_changed_verbs(model, place) for model in models]
        for name, place in CHANGED.items()
    }
    return {"seeds": SEEDS, "hidden": hidden, "changed": changed}
