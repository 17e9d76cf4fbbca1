"""Whether the second of two blocks finds a place by what the first block wrote there.

At two places of a text the notes are exchanged: all that the first block added to the stream. Only
the keys of the second block read the exchanged notes; its queries, its values and the rest of the
model read the stream as it was. Where one of the two places follows the same word, a model that
looks for the note should give the word at the other place. As a control, the notes of two places
are exchanged of which neither follows the same word.
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from evaluation.experiments.induction import alone, blocks_of, streams
from transformer_layers import GPT2
from transformer_training.lists import LENGTH, WIDTH, list_model
from transformer_training.toy_language import WORDS, kind

SOURCES = (
    "src/transformer_training/lists.py",
    "src/transformer_training/toy_language/model.py",
    "src/transformer_training/toy_language/language.py",
    "src/transformer_layers/models/gpt2/model.py",
    "src/transformer_layers/models/gpt2/block.py",
    "src/transformer_layers/models/gpt2/attention.py",
    "src/transformer_layers/models/gpt2/feed_forward.py",
    "src/transformer_layers/attention/definition.py",
    "evaluation/experiments/induction.py",
)
SEEDS = 10
MANY = 400
"""Texts that a model is asked."""
FIRST = 12
"""Among so many places stands the word that returns: there the models find it."""


def returns(n: int) -> tuple[Int[Tensor, "n seq"], Int[Tensor, " n"], Int[Tensor, "n 2"]]:
    """Texts whose words all differ, but for the last, which stood once before.

    Returns:
        The texts; for each the place after the word that returns; and two other places.
    """
    ids = torch.rand(n, len(WORDS) - 1).argsort(dim=-1)[:, :LENGTH]
    places = torch.rand(n, FIRST).argsort(dim=-1)[:, :3] + 1
    ids[:, -1] = ids.gather(1, places[:, :1] - 1)[:, 0]
    return ids, places[:, 0], places[:, 1:]


def facts() -> tuple[Int[Tensor, "n seq"], Int[Tensor, " n"], Int[Tensor, "n 2"]]:
    """All questions about facts, the place of the right color, and those of two others."""
    ids = kind("facts").prompts
    right = (ids[:, :-1] == ids[:, -1:]).int().argmax(dim=-1) + 1
    steps = torch.rand(len(ids), 3).argsort(dim=-1)[:, :2] + 1
    return ids, right, (right[:, None] + 2 * steps) % (ids.shape[1] - 1)


@torch.no_grad()
def said_with_exchanged(
    model: GPT2, ids: Int[Tensor, "n seq"], one: Int[Tensor, " n"], other: Int[Tensor, " n"]
) -> Int[Tensor, " n"]:
    """The next words, when the second block's keys have the notes of two places exchanged.

    Args:
        model: A model of two blocks.
        ids: Texts.
        one: A place of each.
        other: Another.
    """
    second = blocks_of(model)[1]
    before, after, _ = streams(model, ids)
    note, rows = after - before, torch.arange(len(ids))
    exchanged = note.clone()
    exchanged[rows, one], exchanged[rows, other] = note[rows, other], note[rows, one]
    reads = second.ln_1(before + exchanged)
    read = second.attn.c_attn(reads)[..., WIDTH : 2 * WIDTH]

    def keys(part: Any, inputs: Any, output: Float[Tensor, "n seq d"]) -> Tensor:
        return torch.cat([output[..., :WIDTH], read, output[..., 2 * WIDTH :]], dim=-1)

    hook = second.attn.c_attn.register_forward_hook(keys)
    said: Tensor = model(ids)[:, -1].argmax(dim=-1)
    hook.remove()
    return said


def _asked(
    model: GPT2, ids: Int[Tensor, "n seq"], match: Int[Tensor, " n"], others: Int[Tensor, "n 2"]
) -> dict[str, float]:
    at = {"match": ids.gather(1, match[:, None])[:, 0], "other": ids.gather(1, others)[:, 0]}
    said = {
        "whole": said_with_exchanged(model, ids, match, match),
        "match exchanged": said_with_exchanged(model, ids, match, others[:, 0]),
        "others exchanged": said_with_exchanged(model, ids, *others.unbind(1)),
    }
    return {
        f"{name}: word of {place}": round((words == word).double().mean().item(), 4)
        for name, words in said.items()
        for place, word in at.items()
    }


def measure() -> dict[str, Any]:
    """Ten models of two blocks, each asked texts of different words, and facts.

    Returns:
        "texts" and "facts": for each seed, and for each way of exchanging notes, the share of texts
        in which the next word is that after the same word, and that at the other place.
    """
    result: dict[str, Any] = {"texts": [], "facts": []}
    for seed in range(SEEDS):
        model = list_model(2, seed)
        with alone(2000 + seed):
            result["texts"].append(_asked(model, *returns(MANY)))
            result["facts"].append(_asked(model, *facts()))
    return result
