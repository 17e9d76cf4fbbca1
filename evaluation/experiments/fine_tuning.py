"""What a small model keeps, and what it forgets, when it goes on to learn a new kind of sentence.

Every model has learned three kinds of the toy language, and then reads sentences of a fourth, in
which four of the six animals stand. The arms differ in what they begin with, in which weights
learn, and in what else is read: random weights, a trained model whose embeddings stay as they are,
low-rank adapters (Hu et al. 2021, https://arxiv.org/abs/2106.09685), and either of these with
sentences of an old kind in each batch. In one arm these are such sentences alone as do not tell the
old kind from the new one, since both nouns have one number. The verb alone is scored. Each arm has
the same three learning rates. At the end the vectors of the nouns that it did not go on to read are
exchanged, the plurals for the singulars: what it knows of them from before must turn around.
"""

import copy
from itertools import product
from typing import Any, cast

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
HEADS = 2
UPDATES = 400
BATCH = 32
RATES = (5e-3, 2e-3, 5e-4)
RANK = 8
ARMS = ("random weights", "new", "mixed", "one number", "low rank", "low rank, mixed")
VERB = -3  # where the verb stands in a sentence
READ = "cat cats dog dogs bird birds fox foxes"  # the nouns of the new sentences that are read
OTHERS = "goat goats hen hens", "goats goat hens hen"  # those that are not read, and exchanged
SINGULAR = int(encode("cats"))  # tokens below are singular nouns


def low_rank(model: GPT2) -> GPT2:
    """The same model with adapters of rank eight beside its maps, which alone learn."""
    config = peft.LoraConfig(
        r=RANK,
        lora_alpha=2 * RANK,
        target_modules=["c_attn", "c_proj", "c_fc"],
        fan_in_fan_out=True,
    )
    config._register_custom_module({Conv1D: peft.tuners.lora.Linear})
    return cast(GPT2, peft.get_peft_model(model, config).base_model.model)


def among(nouns: str) -> Bool[Tensor, "n 2"]:
    """Which of the two nouns of each beginning of the new kind are among some nouns."""
    return torch.isin(kind(NEW).prompts[:, [1, 4]], encode(nouns))


def whole(rows: Bool[Tensor, " n"]) -> Int[Tensor, "n_chosen seq"]:
    """The sentences of the new kind that begin with some of its beginnings, with one adjective."""
    new = kind(NEW)
    ends = encode("old .").expand(int(rows.sum()), 2)
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
        lr: Learning rate, which rises in a straight line over the first tenth of the updates, and
            falls in one over the second half.
        old: Other texts, of which as many stand in each batch; None for none.

    Returns:
        The model.
    """
    learning = [each for each in model.parameters() if each.requires_grad]
    optimizer = torch.optim.AdamW(learning, lr=lr, fused=True)
    for step in range(UPDATES):
        for group in optimizer.param_groups:
            group["lr"] = lr * min(1.0, 10 * (step + 1) / UPDATES, 2.0 * (1.0 - step / UPDATES))
        loss = verb_loss(model, texts)
        if old is not None:
            loss = (loss + verb_loss(model, old)) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


@torch.no_grad()
def shares(model: GPT2) -> list[float]:
    """The shares of right verbs.

    Args:
        model: The model.

    Returns:
        Of the new kind, with the nouns that are read, and with other nouns alone; of the old kind;
        of the old kind where both nouns have one number; of the kinds without *here*; and of the
        new kind with other nouns alone, whose vectors are exchanged.
    """
    verbs, new, old = encode("is are"), kind(NEW), kind(KEPT)

    def right(prompts: Tensor, wanted: Tensor) -> Tensor:
        return (verbs[model(prompts)[:, -1, verbs].argmax(dim=-1)] == wanted).double()

    learned, kept = right(new.prompts, new.right), right(old.prompts, old.right)
    read = among(READ)
    of_new = learned[read.all(dim=1)], learned[~read.any(dim=1)]
    short = [right(kind(name).prompts, kind(name).right) for name in ("near", "or")]
    others = ~read.any(dim=1)
    here, there = map(encode, OTHERS)
    kept_vectors = model.wte.weight[here].clone()
    model.wte.weight[here] = model.wte.weight[there]
    turned = right(new.prompts[others], new.right[others])
    model.wte.weight[here] = kept_vectors
    parts = *of_new, kept, kept[of_one_number(old.prompts)], *short, turned
    return [round(part.mean().item(), 4) for part in parts]


def begun(arm: str, learned: GPT2, seed: int) -> GPT2:
    """The model of an arm before its first update; what is not to learn is frozen."""
    if arm == "random weights":
        return trained_model(kinds=OLD, n_head=HEADS, steps=0, seed=SEEDS + seed)
    model = copy.deepcopy(learned)
    if "low rank" in arm:
        return low_rank(model)
    for embedding in (model.wte, model.wpe):
        embedding.requires_grad_(False)
    return model


def of_seed(seed: int) -> list[list[float]]:
    """The shares of a trained model, and then of what each setting makes of it."""
    with by_itself(seed):
        learned = trained_model(kinds=OLD, n_head=HEADS, seed=seed)
        found = [shares(learned)]
        texts = whole(among(READ).all(dim=1))
        for arm in ARMS:
            torch.manual_seed(seed)  # of adapters
            start = begun(arm, learned, seed)
            for rate in RATES:
                torch.manual_seed(seed)  # the same batches in each arm
                found.append(shares(fine_tuned(copy.deepcopy(start), texts, rate, replayed(arm))))
    return found


def measure() -> dict[str, Any]:
    """Ten models, each fine-tuned in every arm, at every rate.

    Returns:
        "before": the shares of each seed, as :func:`shares` has them; "rows": the same for each
        "arm" and "rate".
    """
    before, *rows = zip(*map(of_seed, range(SEEDS)), strict=True)
    return {
        "before": list(before),
        "rows": [
            {"arm": arm, "rate": rate, "shares": list(row)}
            for (arm, rate), row in zip(product(ARMS, RATES), rows, strict=True)
        ],
        "updates": UPDATES,
        "rank": RANK,
    }
