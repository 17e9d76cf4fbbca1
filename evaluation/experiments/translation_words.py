"""Which English words a small translator needs, by hiding them and by changing them.

Each translator is trained with its own seed. One token of each held-out sentence is hidden from
the decoder, and it is counted how many sentences still come out right, word by word; so it is where
the full stop is seen, but what is read there is nothing, or the same in each sentence. Then one
word of each sentence of a kind is changed to its other number, and it is counted how many German
verbs change. Last, the encoder's vector of the second noun alone is taken from the sentence with
that noun's other number, or those of all other tokens are; and it is counted how many German
articles of that noun change.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor, nn

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
_STOP = HIDDEN["stop"]


def other_number(word: str) -> str:
    """The plural of a singular, and the singular of a plural."""
    if word in ("is", "are"):
        return "are" if word == "is" else "is"
    many = len(NOUNS) // 2
    return NOUNS[(NOUNS.index(word) + many) % len(NOUNS)]


@contextmanager
def nothing_read(model: Transformer, tokens: Bool[Tensor, "batch seq"]) -> Iterator[None]:
    """Makes the values of cross-attention zero at some tokens; their keys stay as they are."""

    def zeroed(_: nn.Module, __: tuple[Tensor, ...], value: Tensor) -> Tensor:
        return value.masked_fill(tokens[..., None], 0)

    layers = [layer.get_submodule("cross_attention.value_proj") for layer in model.decoder.layers]
    hooks = [layer.register_forward_hook(zeroed) for layer in layers]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _share_exact(model: Transformer, memory: Tensor, seen: Tensor) -> float:
    target_ids = batch(pair.target for pair in held_out())
    said = model.logits(model.decode(model.shifted(target_ids), memory, seen)).argmax(dim=-1)
    right = (said == target_ids) | (target_ids == PADDING)
    return right.all(dim=-1).double().mean().item()


@torch.no_grad()
def share_exact_without(model: Transformer, token: int) -> float:
    """The share of held-out sentences with every word right, given the right words before it.

    Args:
        model: A translator.
        token: What each position of the decoder does not see in the source.
    """
    source_ids = batch(pair.source for pair in held_out())
    seen = source_mask(source_ids)
    memory = model.encode(source_ids, seen)
    return _share_exact(model, memory, seen & (source_ids != token)[:, None])


@torch.no_grad()
def shares_exact_with_idle_stop(model: Transformer) -> dict[str, float]:
    """The same share where the full stop is seen, and says nothing of its sentence.

    Returns:
        "mean": each full stop's vector is the mean of all; "zero": what is read there is zero, and
        the weights are what they were.
    """
    source_ids = batch(pair.source for pair in held_out())
    seen, stop = source_mask(source_ids), source_ids == _STOP
    memory = model.encode(source_ids, seen)
    alike = memory.clone()
    alike[stop] = memory[stop].mean(dim=0)
    with nothing_read(model, stop):
        zero = _share_exact(model, memory, seen)
    return {"mean": _share_exact(model, alike, seen), "zero": zero}


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


@torch.no_grad()
def shares_of_changed_articles(model: Transformer) -> dict[str, float]:
    """The share of held-out sentences of `KIND` whose second German article changes.

    The article is read where the decoder has the right words before it.

    Returns:
        "noun": the encoder's vector of the second noun alone is taken from the sentence with that
        noun's other number; "others": those of all other tokens are; "both": all are.
    """
    pairs = [pair for pair in held_out() if pair.kind == KIND]
    place = CHANGED["second noun"]
    other = []
    for pair in pairs:
        words = pair.source.split()
        words[place] = other_number(words[place])
        other.append(" ".join(words))
    source_ids, target_ids = batch(pair.source for pair in pairs), batch(p.target for p in pairs)
    read = model.shifted(target_ids)
    # "hier ist die Katze bei den Hunden alt .": the article is behind the preposition.
    where = ((read == WORDS.index("bei")) | (read == WORDS.index("hinter"))).int().argmax(dim=1)
    rows = torch.arange(len(pairs))
    seen = source_mask(source_ids)
    here, there = model.encode(source_ids, seen), model.encode(batch(other), seen)
    noun = (torch.arange(source_ids.shape[1]) == place)[None, :, None]
    memories = {
        "noun": torch.where(noun, there, here),
        "others": torch.where(noun, here, there),
        "both": there,
    }

    def articles(memory: Tensor) -> Tensor:
        return model.logits(model.decode(read, memory, seen))[rows, where].argmax(dim=-1)

    before = articles(here)
    return {
        name: (articles(each) != before).double().mean().item() for name, each in memories.items()
    }


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
    idle = [shares_exact_with_idle_stop(model) for model in models]
    articles = [shares_of_changed_articles(model) for model in models]
    return {
        "seeds": SEEDS,
        "hidden": hidden,
        "idle stop": {name: [each[name] for each in idle] for name in idle[0]},
        "changed": changed,
        "articles": {name: [each[name] for each in articles] for name in articles[0]},
    }
