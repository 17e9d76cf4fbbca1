"""What a small model keeps, and what it forgets, when it goes on to learn a new kind of sentence.

Every model has learned three kinds of the toy language, and then reads a few sentences of a fourth.
The arms differ in what they begin with, in which weights learn, and in what else is read: random
weights, all weights, all weights with sentences of an old kind in each batch, and low-rank
adapters (Hu et al. 2021, https://arxiv.org/abs/2106.09685). Each arm has the same three learning
rates. The share of right verbs is over the sentences of a kind that were not read in fine-tuning.
"""

import copy
from typing import Any

import peft
import torch
from jaxtyping import Int
from torch import Tensor

from transformer_layers import GPT2, Conv1D
from transformer_training.toy_language import draw, encode, kind, trained_model
from transformer_training.toy_language.model import by_itself

SOURCES = (
    "src/transformer_training/toy_language/*.py",
    "src/transformer_layers/models/gpt2/model.py",
    "src/transformer_layers/models/gpt2/block.py",
    "src/transformer_layers/models/gpt2/attention.py",
    "src/transformer_layers/models/gpt2/conv1d.py",
    "src/transformer_layers/models/gpt2/feed_forward.py",
)
SEEDS = 10
OLD = ("near", "near here", "or")
NEW, KEPT = "or here", "near here"
UPDATES = 300
BATCH = 16
RATES = (5e-3, 1e-3, 2e-4)
SENTENCES = (12, 144)
RANK = 4
ARMS = ("random weights", "all weights", "mixed", "low rank")


def low_rank(model: GPT2) -> GPT2:
    """The same model with adapters of rank four beside its maps, which alone learn."""
    config = peft.LoraConfig(
        r=RANK,
        lora_alpha=2 * RANK,
        target_modules=["c_attn", "c_proj", "c_fc"],
        fan_in_fan_out=True,
    )
    config._register_custom_module({Conv1D: peft.tuners.lora.Linear})
    adapted: GPT2 = peft.get_peft_model(model, config).base_model.model
    return adapted


def split(n: int, seed: int) -> tuple[Int[Tensor, " n"], Int[Tensor, " others"]]:
    """Which prompts of the new kind are read, and which are asked."""
    order = torch.randperm(len(kind(NEW).prompts), generator=torch.Generator().manual_seed(seed))
    return order[:n], order[n:]


def whole(rows: Int[Tensor, " n"]) -> Int[Tensor, "n seq"]:
    """The sentences of the new kind that begin with some of its prompts, with one adjective."""
    new = kind(NEW)
    ends = encode("old .").expand(len(rows), 2)
    return torch.cat([new.prompts[rows], new.right[rows, None], ends], dim=1)


def fine_tuned(model: GPT2, texts: Int[Tensor, "n seq"], lr: float, *, mixed: bool = False) -> GPT2:
    """Goes on with a model, in place.

    Args:
        model: Whose weights learn, but for those that need no gradient.
        texts: What it reads, over and over.
        lr: Learning rate, which falls in a straight line over the second half.
        mixed: Whether as many sentences of the old kind stand in each batch.

    Returns:
        The model.
    """
    learning = [each for each in model.parameters() if each.requires_grad]
    optimizer = torch.optim.AdamW(learning, lr=lr, fused=True)
    for step in range(UPDATES):
        for group in optimizer.param_groups:
            group["lr"] = lr * min(1.0, 2.0 * (1.0 - step / UPDATES))
        loss = model.loss(texts[torch.randint(len(texts), (BATCH,))])
        if mixed:
            loss = (loss + model.loss(draw([KEPT], BATCH))) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


@torch.no_grad()
def share_right(model: GPT2, name: str, rows: Int[Tensor, " n"] | None = None) -> float:
    """The share of right verbs after some prompts of a kind; after all if none are given."""
    asked, verbs = kind(name), encode("is are")
    prompts, right = asked.prompts, asked.right
    if rows is not None:
        prompts, right = prompts[rows], right[rows]
    chosen = verbs[model(prompts)[:, -1, verbs].argmax(dim=-1)]
    return round((chosen == right).double().mean().item(), 4)


def measure() -> dict[str, Any]:
    """Ten models, each fine-tuned in every arm, from as many sentences, at every rate.

    Returns:
        "before": the shares of the new and of the old kind, of each seed; "rows": for each "arm",
        "rate" and number of "sentences" the "shares", a pair of each seed.
    """
    settings = [(arm, sentences, rate) for arm in ARMS for sentences in SENTENCES for rate in RATES]
    before, rows = [], {setting: [] for setting in settings}
    for seed in range(SEEDS):
        with by_itself(seed):
            learned = trained_model(kinds=OLD, seed=seed)
            fresh = trained_model(kinds=OLD, steps=0, seed=SEEDS + seed)
            before.append([share_right(learned, NEW), share_right(learned, KEPT)])
            for arm, sentences, rate in settings:
                read, asked = split(sentences, seed)
                model = copy.deepcopy(fresh if arm == "random weights" else learned)
                torch.manual_seed(seed)  # the same batches in each arm
                model = low_rank(model) if arm == "low rank" else model
                fine_tuned(model, whole(read), rate, mixed=arm == "mixed")
                found = [share_right(model, NEW, asked), share_right(model, KEPT)]
                rows[arm, sentences, rate].append(found)
    return {
        "before": before,
        "rows": [
            {"arm": arm, "sentences": sentences, "rate": rate, "shares": shares}
            for (arm, sentences, rate), shares in rows.items()
        ],
        "updates": UPDATES,
        "rank": RANK,
    }
