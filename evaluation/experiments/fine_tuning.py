"""What a small model keeps, and what it forgets, when it goes on to learn a new kind of sentence.

Every model has learned three kinds of the toy language, and then reads a few sentences of a fourth.
The arms differ in what they begin with, in which weights learn, and in what else is read: random
weights, all weights, low-rank adapters (Hu et al. 2021, https://arxiv.org/abs/2106.09685), and
either of these with sentences of an old kind in each batch. In one arm these are such sentences
alone as do not tell the old kind from the new one, since both nouns have one number. The verb alone
is scored. Each arm has the same three learning rates. The share of right verbs of the new kind is
over the sentences that were not read in fine-tuning.
"""

import copy
from typing import Any

import peft
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from transformer_layers import GPT2, Conv1D
from transformer_training.toy_language import encode, kind, trained_model
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
FEW, MANY = 12, 144
RANK = 4
ARMS = ("random weights", "all weights", "mixed", "one number", "low rank", "low rank, mixed")
VERB = -3  # where the verb stands in a sentence
SINGULAR = int(encode("cats"))  # tokens below are singular nouns


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


def of_one_number(texts: Int[Tensor, "n seq"]) -> Bool[Tensor, " n"]:
    """Whether both nouns of a sentence are singular, or both plural."""
    first, second = (texts[:, place] < SINGULAR for place in (1, 4))
    return first == second


def replayed(arm: str) -> Int[Tensor, "n seq"] | None:
    """The old sentences that an arm reads as well; None if it reads none."""
    old = kind(KEPT).texts
    if arm == "one number":
        return old[of_one_number(old)]
    return old if "mixed" in arm else None


def verb_loss(model: GPT2, texts: Int[Tensor, "n seq"]) -> Float[Tensor, ""]:
    """The loss of some of the texts, drawn by chance, in which the verb alone is scored."""
    batch = texts[torch.randint(len(texts), (BATCH,))]
    labels = torch.full_like(batch, -100)
    labels[:, VERB] = batch[:, VERB]
    return model.loss(batch, labels)


def fine_tuned(
    model: GPT2, texts: Int[Tensor, "n seq"], lr: float, old: Int[Tensor, "n_old seq"] | None
) -> GPT2:
    """Goes on with a model, in place.

    Args:
        model: Whose weights learn, but for those that need no gradient.
        texts: What it reads, over and over.
        lr: Learning rate, which falls in a straight line over the second half.
        old: Other texts, of which as many stand in each batch; None for none.

    Returns:
        The model.
    """
    learning = [each for each in model.parameters() if each.requires_grad]
    optimizer = torch.optim.AdamW(learning, lr=lr, fused=True)
    for step in range(UPDATES):
        for group in optimizer.param_groups:
            group["lr"] = lr * min(1.0, 2.0 * (1.0 - step / UPDATES))
        loss = verb_loss(model, texts)
        if old is not None:
            loss = (loss + verb_loss(model, old)) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


@torch.no_grad()
def shares(model: GPT2, asked: Int[Tensor, " n"]) -> list[float]:
    """The shares of right verbs.

    Args:
        model: The model.
        asked: Which prompts of the new kind.

    Returns:
        Of the new kind; of the old one; and of the old one where both nouns have one number.
    """
    verbs, new, old = encode("is are"), kind(NEW), kind(KEPT)

    def right(prompts: Tensor, wanted: Tensor) -> Tensor:
        return (verbs[model(prompts)[:, -1, verbs].argmax(dim=-1)] == wanted).double()

    kept = right(old.prompts, old.right)
    parts = right(new.prompts[asked], new.right[asked]), kept, kept[of_one_number(old.prompts)]
    return [round(part.mean().item(), 4) for part in parts]


def measure() -> dict[str, Any]:
    """Ten models, each fine-tuned in every arm, from as many sentences, at every rate.

    Returns:
        "before": the shares of each seed, as :func:`shares` has them; "rows": the same for each
        "arm", "rate" and number of "sentences".
    """
    settings = [(arm, MANY, rate) for arm in ARMS for rate in RATES]
    settings += [(arm, FEW, rate) for arm in ARMS[:2] for rate in RATES]
    before, rows = [], {setting: [] for setting in settings}
    for seed in range(SEEDS):
        with by_itself(seed):
            learned = trained_model(kinds=OLD, seed=seed)
            fresh = trained_model(kinds=OLD, steps=0, seed=SEEDS + seed)
            before.append(shares(learned, torch.arange(len(kind(NEW).prompts))))
            for arm, sentences, rate in settings:
                read, asked = split(sentences, seed)
                model = copy.deepcopy(fresh if arm == "random weights" else learned)
                torch.manual_seed(seed)  # the same batches in each arm
                model = low_rank(model) if "low rank" in arm else model
                fine_tuned(model, whole(read), rate, replayed(arm))
                rows[arm, sentences, rate].append(shares(model, asked))
    return {
        "before": before,
        "rows": [
            {"arm": arm, "sentences": sentences, "rate": rate, "shares": found}
            for (arm, sentences, rate), found in rows.items()
        ],
        "updates": UPDATES,
        "rank": RANK,
    }
