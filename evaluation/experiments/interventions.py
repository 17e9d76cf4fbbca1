"""What the verb of a small model rests on: words deleted, hidden and swapped, and layers silenced.

Thirty models of one block with one head, one of each seed, are asked for the verb of each sentence
whose two nouns differ in number. At the last word a term of attention is deleted (its weight is set
to zero), or the word is hidden (the other weights are also divided by their sum), or a noun is put
into its other number. Each is done to both nouns and to every other word, so that what turns the
answer stands beside what does not.
"""

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from transformer_layers import GPT2, attention_weights, causal_mask
from transformer_layers.models.gpt2.block import GPT2Block
from transformer_training.toy_language import NOUNS, encode, kind, trained_model
from transformer_training.toy_language.model import by_itself

SOURCES = (
    "src/transformer_training/toy_language/*.py",
    "src/transformer_layers/models/gpt2/model.py",
    "src/transformer_layers/models/gpt2/block.py",
    "src/transformer_layers/models/gpt2/attention.py",
    "src/transformer_layers/models/gpt2/feed_forward.py",
    "src/transformer_layers/attention/definition.py",
    "src/transformer_layers/norms/*.py",
    "src/transformer_layers/generation/loss.py",
)
SEEDS = 30
KINDS = ("near here", "or here")
PLACES = {"the": 0, "first noun": 1, "joint": 2, "the again": 3, "second noun": 4, "last": 5}
"""Where the words stand in such a sentence: the cat near the dogs here."""
SWAPPED = ("first noun", "second noun")
FOLLOWED = {"near here": "first noun", "or here": "second noun"}
"""The noun with which the verb agrees."""
MANY = len(NOUNS) // 2
CLEAR = 0.03
"""By how much a feature that asks a question must be more open where the answer is yes."""
DRAWS = 20


def block_of(model: GPT2) -> GPT2Block:
    """The block of a model that has one."""
    (block,) = model.h
    return block  # type: ignore[return-value]  # a list of modules forgets which


def plural(ids: Int[Tensor, "n seq"], noun: str) -> Bool[Tensor, " n"]:
    """Whether a noun of each sentence is a plural."""
    return ids[:, PLACES[noun]] >= MANY


def swapped(ids: Int[Tensor, "n seq"], noun: str) -> Int[Tensor, "n seq"]:
    """The sentences with a noun in its other number."""
    changed = ids.clone()
    changed[:, PLACES[noun]] = (ids[:, PLACES[noun]] + MANY) % len(NOUNS)
    return changed


def mixed(name: str) -> tuple[Int[Tensor, "n seq"], Bool[Tensor, " n"]]:
    """The sentences of a kind with a singular and a plural noun, and whether the verb is *are*."""
    asked = kind(name)
    differ = plural(asked.prompts, "first noun") != plural(asked.prompts, "second noun")
    return asked.prompts[differ], asked.right[differ] == encode("are")


def read(
    model: GPT2, ids: Int[Tensor, "n seq"]
) -> tuple[Float[Tensor, "n seq"], Float[Tensor, "n seq d_v"]]:
    """The weights of the last word in a model of one block and one head, and the values."""
    block = block_of(model)
    stream = model.wte(ids) + model.wpe.weight[: ids.shape[1]]
    query, key, value = block.attn.c_attn(block.ln_1(stream)).chunk(3, dim=-1)
    return attention_weights(query, key, causal_mask(ids.shape[1]))[:, -1], value


def leads(
    model: GPT2,
    last: Int[Tensor, "n seq"],
    weights: Float[Tensor, "n seq"],
    value: Float[Tensor, "n seq d_v"],
) -> Float[Tensor, " n"]:
    """By how much *are* leads over *is* after the last word, when attention gives it these terms.

    Args:
        model: A model of one block and one head.
        last: The sentences; the row of their last word is computed.
        weights: Of the last word.
        value: Of each word.
    """
    block = block_of(model)
    place = last.shape[1] - 1
    row = model.wte(last[:, place]) + model.wpe.weight[place]
    row = row + block.attn.c_proj((weights[..., None] * value).sum(dim=-2))
    row = row + block.mlp(block.ln_2(row))
    scores = model.logits(model.ln_f(row))[:, encode("is are")]
    return scores[:, 1] - scores[:, 0]


def deleted(
    weights: Float[Tensor, "n seq"], places: int | Int[Tensor, " n"]
) -> Float[Tensor, "n seq"]:
    """The weights without that of one place, the same of all sentences or one of each."""
    where = torch.as_tensor(places).expand(len(weights))[:, None]
    return weights.scatter(-1, where, 0.0)


def hidden(
    weights: Float[Tensor, "n seq"], places: int | Int[Tensor, " n"]
) -> Float[Tensor, "n seq"]:
    """The weights without that of one place, and the others grown to the sum 1."""
    left = deleted(weights, places)
    return left / left.sum(dim=-1, keepdim=True)


def words(model: GPT2, name: str) -> dict[str, Any]:
    """What each word does to the verb of the mixed sentences of a kind.

    Args:
        model: A model of one block and one head.
        name: One of `KINDS`.

    Returns:
        The number of sentences; the share of right verbs; the median lead of the right verb; for
        each intervention the share of answers that it turns, of all and of those that are *is* and
        *are*, and the median lead that it leaves; and for the word of the largest weight where it
        stands, and what it turns when it is deleted.
    """
    ids, are = mixed(name)
    weights, value = read(model, ids)
    sign = torch.where(are, 1.0, -1.0)
    whole = sign * leads(model, ids, weights, value)

    def found(weights: Tensor, value: Tensor = value) -> dict[str, float]:
        lead = sign * leads(model, ids, weights, value)
        turned = (lead > 0) != (whole > 0)
        return {
            "turned": turned.double().mean().item(),
            "turned of is": turned[~are].double().mean().item(),
            "turned of are": turned[are].double().mean().item(),
            "lead": lead.median().item(),
        }

    largest = weights.argmax(dim=-1)
    first, second = (weights[:, PLACES[noun]] for noun in SWAPPED)
    nouns = torch.tensor([PLACES[noun] for noun in SWAPPED])
    swaps = {}
    for noun in SWAPPED:
        other_weights, other_value = read(model, swapped(ids, noun))
        swaps[noun] = {
            "free": found(other_weights, other_value),
            "weights fixed": found(weights, other_value),
            "weights alone": found(other_weights),
        }
    return {
        "sentences": len(ids),
        "right": (whole > 0).double().mean().item(),
        "lead": whole.median().item(),
        "deleted": {word: found(deleted(weights, i)) for word, i in PLACES.items()},
        "hidden": {word: found(hidden(weights, i)) for word, i in PLACES.items()},
        "swapped": swaps,
        "largest": {
            "at": {word: (largest == i).double().mean().item() for word, i in PLACES.items()},
            "deleted": found(deleted(weights, largest)),
            "noun of more weight deleted": found(deleted(weights, nouns[(second > first).long()])),
            "noun of less weight deleted": found(deleted(weights, nouns[(second <= first).long()])),
        },
    }


def share_right(
    model: GPT2, name: str, weights: Float[Tensor, "n seq"], value: Float[Tensor, "n seq d_v"]
) -> float:
    """The share of right verbs of all sentences of a kind, when attention gives these terms."""
    asked = kind(name)
    said_are = leads(model, asked.prompts, weights, value) > 0
    return (said_are == (asked.right == encode("are"))).double().mean().item()


def layers(model: GPT2, name: str) -> dict[str, float]:
    """The shares of right verbs of all sentences of a kind, with a noun hidden or a layer silent.

    A silent layer adds zeros. Without the feed-forward layer it is also asked in how many mixed
    sentences the verb follows the first noun, and how often *is* follows two plurals.

    Args:
        model: A model of one block and one head. It is left as it was.
        name: One of `KINDS`.
    """
    ids = kind(name).prompts
    weights, value = read(model, ids)
    shares = {"whole": share_right(model, name, weights, value)}
    for noun in SWAPPED:
        shares[f"{noun} hidden"] = share_right(model, name, hidden(weights, PLACES[noun]), value)
    block = block_of(model)
    for layer, part in {"attention": block.attn, "feed-forward": block.mlp}.items():
        kept = [each.clone() for each in part.c_proj.parameters()]  # type: ignore[union-attr]  # a module forgets which
        for each in part.c_proj.parameters():  # type: ignore[union-attr]  # a module forgets which
            each.zero_()
        shares[f"no {layer}"] = share_right(model, name, weights, value)
        if layer == "feed-forward":
            says_are = leads(model, ids, weights, value) > 0
            one, two = (plural(ids, noun) for noun in SWAPPED)
            shares["follows the first noun"] = (says_are == one)[one != two].double().mean().item()
            shares["is after two plurals"] = (~says_are)[one & two].double().mean().item()
        for each, before in zip(part.c_proj.parameters(), kept, strict=True):  # type: ignore[union-attr]  # a module forgets which
            each.copy_(before)
    return shares


def opened(model: GPT2, ids: Int[Tensor, "n seq"]) -> Float[Tensor, "n d_ff"]:
    """The hidden features at the last word of each sentence, after the activation."""
    found: list[Tensor] = []
    hook = block_of(model).mlp.c_proj.register_forward_pre_hook(
        lambda part, inputs: found.append(inputs[0])
    )
    leads(model, ids, *read(model, ids))
    hook.remove()
    return found[0]


def asking(model: GPT2) -> Int[Tensor, " n_features"]:
    """The features that ask "*near*, and a plural first noun?".

    The least value of such a feature after the sentences of *near here* that have a plural first
    noun lies by more than `CLEAR` above each value after others, those of *or* and *and* too.
    """
    prompts = torch.cat([kind(name).prompts for name in (*KINDS, "and here")])
    near = torch.arange(len(prompts)) < len(kind("near here").prompts)
    asked = near & plural(prompts, "first noun")
    value = opened(model, prompts)
    return (value[asked].amin(0) - value[~asked].amax(0) > CLEAR).nonzero().flatten()


def features(model: GPT2) -> dict[str, Any]:
    """What the features of `asking` do to *are*, beside as many others.

    Args:
        model: A model of one block and one head. It is left as it was.

    Returns:
        Their number; the median lead of *are* over the mixed sentences of *near here* with a plural
        first noun; and for the features, and for each of `DRAWS` draws of as many others, the share
        of these answers that turn when the features add nothing, and the lead that is left.
    """
    ids, are = mixed("near here")
    ids = ids[are]
    terms = read(model, ids)
    rows = block_of(model).mlp.c_proj.weight
    theirs = asking(model)
    rest = torch.tensor([i for i in range(len(rows)) if i not in theirs.tolist()])

    def without(some: Tensor) -> dict[str, float]:
        kept = rows.clone()
        rows[some] = 0
        lead = leads(model, ids, *terms)
        rows.copy_(kept)
        return {"turned": (lead < 0).double().mean().item(), "lead": lead.median().item()}

    others = [without(rest[torch.randperm(len(rest))[: len(theirs)]]) for _ in range(DRAWS)]
    return {
        "features": len(theirs),
        "lead": leads(model, ids, *terms).median().item(),
        "without them": without(theirs),
        "without others": {name: [each[name] for each in others] for name in ("turned", "lead")},
    }


def _rounded(found: Any) -> Any:
    if isinstance(found, dict):
        return {name: _rounded(each) for name, each in found.items()}
    return [_rounded(each) for each in found] if isinstance(found, list) else round(found, 4)


def measure() -> dict[str, Any]:
    """Thirty models, one of each seed.

    Returns:
        "words" and "layers": for each kind what the function of that name finds, seed by seed;
        "features": what that function finds, seed by seed.
    """
    found: dict[str, Any] = {each: {name: [] for name in KINDS} for each in ("words", "layers")}
    found["features"] = []
    for seed in range(SEEDS):
        with by_itself(seed):
            model = trained_model(seed=seed)
            with torch.no_grad():
                for name in KINDS:
                    found["words"][name].append(_rounded(words(model, name)))
                    found["layers"][name].append(_rounded(layers(model, name)))
                found["features"].append(_rounded(features(model)))
    return {"seeds": SEEDS, **found}
