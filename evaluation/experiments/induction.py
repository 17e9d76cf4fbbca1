"""How two blocks learn to continue any list, and what is lost when a part of them is taken out.

Every model reads lists of different words, over and over, and is then asked for facts, which it has
never read. The controls are one block in place of two, and the same number of heads taken out of
both blocks in place of one.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transformer_layers import GPT2, attention_weights, causal_mask
from transformer_layers.attention.heads import merge_heads, split_heads
from transformer_layers.models.gpt2.block import GPT2Block
from transformer_training.lists import (
    LENGTH,
    N_HEADS,
    STEPS,
    WIDTH,
    came_before,
    list_model,
    lists,
    loss_of_returns,
)
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
)
SEEDS = 10
GUESS = math.log(len(WORDS) - 1)
"""The loss of a guess among all words but the full stop, in nats."""


def blocks_of(model: GPT2) -> list[GPT2Block]:
    """The blocks of a model."""
    return list(model.h)  # type: ignore[arg-type]  # a list of modules forgets which


def after_the_same(ids: Int[Tensor, "n seq"]) -> Bool[Tensor, "n seq seq"]:
    """The places right after those."""
    moved = came_before(ids).roll(1, -1)
    moved[..., 0] = False
    return moved


def maps(model: GPT2, ids: Int[Tensor, "n seq"]) -> list[tuple[Tensor, Tensor]]:
    """Attention weights and values of each block, a head in the second axis."""
    found: list[Tensor] = []
    hooks = [
        block.attn.c_attn.register_forward_hook(lambda *called: found.append(called[-1]))
        for block in blocks_of(model)
    ]
    model(ids)
    for hook in hooks:
        hook.remove()
    allowed = causal_mask(ids.shape[-1])
    cut = [[split_heads(part, N_HEADS) for part in each.chunk(3, dim=-1)] for each in found]
    return [(attention_weights(query, key, allowed), value) for query, key, value in cut]


@torch.no_grad()
def scores(model: GPT2, ids: Int[Tensor, "n seq"]) -> list[float]:
    """How far each head of the first block looks back by one, and how far each of the last matches.

    The first numbers are the weights on the place before, at places 1 to 16; the others, at words
    that came before, the weights on the places after them.
    """
    found = [weights for weights, _ in maps(model, ids)]
    before = found[0][:, :, 1:17].diagonal(dim1=-2, dim2=-1).mean((0, 2))
    matched = (found[-1] * after_the_same(ids)[:, None]).sum(-1).transpose(0, 1)
    return [*before.tolist(), *matched[:, came_before(ids).any(-1)].mean(-1).tolist()]


@contextmanager
def alone(seed: int) -> Iterator[None]:
    """Seeds torch, in float64, and leaves all as it was."""
    dtype = torch.get_default_dtype()
    with torch.random.fork_rng(devices=[]):
        try:
            torch.manual_seed(seed)
            torch.set_default_dtype(torch.float64)  # the same model on every processor
            yield
        finally:
            torch.set_default_dtype(dtype)


def trained(blocks: int = 2, seed: int = 0, steps: int = STEPS) -> tuple[GPT2, list[list[float]]]:
    """A GPT-2 of float64 with four heads in each block, trained on lists.

    Args:
        blocks: How many.
        seed: Of the first weights and of the lists.
        steps: Updates.

    Returns:
        The model, in evaluation mode; and for every tenth update its number, the loss on lists not
        yet read, and the `scores` on 32 other ones.
    """
    curve: list[list[float]] = []

    def watch(step: int, loss: float, model: GPT2, others: Int[Tensor, "n seq"]) -> None:
        if step % 10 == 0:
            curve.append([step, loss, *scores(model, others)])

    return list_model(blocks, seed, steps, watch=watch), curve


def facts_right(model: GPT2) -> float:
    """The share of all 2,304 questions about facts whose color gets the highest score of all."""
    asked = kind("facts")
    return (model(asked.prompts)[:, -1].argmax(-1) == asked.right).double().mean().item()


@contextmanager
def replaced(part: nn.Module, change: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Changes what a part reads."""
    hook = part.register_forward_pre_hook(lambda part, inputs: (change(inputs[0]),))
    try:
        yield
    finally:
        hook.remove()


@contextmanager
def without(model: GPT2, heads: Iterable[tuple[int, int]]) -> Iterator[None]:
    """Takes heads out: each text gets the mean over all texts of what they write at each place.

    Args:
        model: A model of this page.
        heads: A block and a head in it for each, from 0.
    """
    width = WIDTH // N_HEADS

    def averaged(merged: Tensor, head: int) -> Tensor:
        merged = merged.clone()
        part = merged[..., width * head : width * (head + 1)]
        part[:] = part.mean(0)
        return merged

    with ExitStack() as taken:
        for block, head in heads:
            layer = blocks_of(model)[block].attn.c_proj
            taken.enter_context(replaced(layer, partial(averaged, head=head)))
        yield


def other_weights(
    weights: Float[Tensor, " seq"], value: Float[Tensor, "seq d_v"], unwanted: Float[Tensor, " seq"]
) -> Float[Tensor, " seq"]:
    """Attention weights with the same output, and little on what is unwanted."""
    conditions = torch.cat([value, torch.ones(len(value), 1)], dim=1)
    new, free = weights.clone(), weights > 0
    while True:
        left = torch.linalg.svd(conditions[free].T)
        rank = int((left.S > 1e-9 * left.S[0]).sum())
        unseen = left.Vh[rank:].T  # directions that change no output
        step = torch.zeros_like(new)
        step[free] = -unseen @ (unseen.T @ unwanted[free])
        if step.norm() < 1e-9:
            return new
        reach = torch.where(step < -1e-12, -new / step, torch.inf)
        new = (new + reach.min() * step).clamp(min=0)
        new[reach.argmin()], free[reach.argmin()] = 0, False


def moved(weights: Float[Tensor, " seq"], value: Float[Tensor, "seq d_v"]) -> float:
    """The share of the whole weight that can lie on other words, away from the largest."""
    return (other_weights(weights, value, weights) - weights).abs().sum().item() / 2


def loss_with_cut_maps(
    model: GPT2, block: int, removed: Bool[Tensor, "..."], ids: Int[Tensor, "n seq"]
) -> float:
    """The loss when no head of a block gives weight where it is removed."""
    weights, value = maps(model, ids)[block]
    weights = weights.masked_fill(removed, 0.0)
    weights = weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-9)
    output = merge_heads(weights @ value)
    with replaced(blocks_of(model)[block].attn.c_proj, lambda _: output):
        return loss_of_returns(ids, model).item()


def loss_without_part(model: GPT2, part: nn.Module, ids: Int[Tensor, "n seq"]) -> float:
    """The loss when a part adds its mean over texts and places."""
    hook = part.register_forward_hook(
        lambda part, inputs, output: output.mean(dim=(0, 1)).expand_as(output)
    )
    loss = loss_of_returns(ids, model).item()
    hook.remove()
    return loss


def loss_unread(model: GPT2, part: nn.Module, ids: Int[Tensor, "n seq"]) -> float:
    """The loss when the second block's heads do not read what a part of the first wrote."""
    seen: list[Tensor] = []
    hooks = [
        part.register_forward_hook(lambda part, inputs, output: seen.append(output)),
        blocks_of(model)[1].register_forward_pre_hook(lambda block, inputs: seen.append(inputs[0])),
    ]
    model(ids)
    for hook in hooks:
        hook.remove()
    written, stream = seen
    stream = blocks_of(model)[1].ln_1(stream - written + written.mean(dim=(0, 1)))
    with replaced(blocks_of(model)[1].attn.c_attn, lambda _: stream):
        return loss_of_returns(ids, model).item()


def found_after(model: GPT2, place: int, n: int = 200) -> float:
    """How often the word after is found, when only the last of 32 words stood at a place before."""
    ids = torch.rand(n, len(WORDS) - 1).argsort(dim=-1)[:, :LENGTH]
    ids[:, -1] = ids[:, place]
    return (model(ids)[:, -1].argmax(-1) == ids[:, place + 1]).double().mean().item()


def streams(model: GPT2, ids: Int[Tensor, "n seq"]) -> list[Tensor]:
    """The residual stream before each block, and after the last."""
    found: list[Tensor] = []
    hooks = [
        part.register_forward_pre_hook(lambda part, inputs: found.append(inputs[0]))
        for part in (*blocks_of(model), model.ln_f)
    ]
    model(ids)
    for hook in hooks:
        hook.remove()
    return found


def lens(model: GPT2, stream: Float[Tensor, "... d_model"]) -> Float[Tensor, "... vocab"]:
    """The probabilities that the last norm and the head read in a stream."""
    return model.logits(model.ln_f(stream)).softmax(dim=-1)


def _asked(model: GPT2) -> dict[str, Any]:
    ids, asked = lists(128), kind("facts")
    heads = [(block, head) for block in range(2) for head in range(N_HEADS)]
    taken = {
        "each": [[each] for each in heads],
        "block": [[(block, head) for head in range(N_HEADS)] for block in range(2)],
        "both": [
            [(0, a), (0, b), (1, c), (1, d)]
            for a, b in ((0, 1), (2, 3), (0, 2))
            for c, d in ((0, 1), (2, 3), (0, 2))
        ],
    }
    out: dict[str, Any] = {"loss": loss_of_returns(ids, model).item(), "facts": facts_right(model)}
    for name, sets in taken.items():
        losses, shares = [], []
        for each in sets:
            with without(model, each):
                losses.append(loss_of_returns(ids, model).item())
                shares.append(facts_right(model))
        out[f"loss without {name}"], out[f"facts without {name}"] = losses, shares
    before = torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril(-1).triu(-1)
    itself = torch.eye(LENGTH, dtype=torch.bool)
    out["loss without place before"] = loss_with_cut_maps(model, 0, before, ids)
    out["loss without own place"] = loss_with_cut_maps(model, 0, itself, ids)
    out["loss without match"] = loss_with_cut_maps(model, 1, after_the_same(ids)[:, None], ids)
    first, second = blocks_of(model)
    for name, part in {"mlp 1": first.mlp, "mlp 2": second.mlp}.items():
        out[f"loss without {name}"] = loss_without_part(model, part, ids)
    out["loss heads unread"] = loss_unread(model, first.attn, ids)
    out["loss mlp unread"] = loss_unread(model, first.mlp, ids)
    out["found"] = [found_after(model, place) for place in range(LENGTH - 2)]
    read = [lens(model, each) for each in streams(model, asked.prompts)]
    out["lens right"] = [
        each[:, -1].gather(-1, asked.right[:, None]).median().item() for each in read
    ]
    out["lens itself"] = [
        (each.argmax(-1) == asked.prompts).double().mean().item() for each in read
    ]
    out["lens before"] = [
        (each[:, -1].argmax(-1) == asked.prompts[:, -2]).double().mean().item() for each in read
    ]
    # At the last of 32 words, in lists and in texts whose words all differ.
    alike = {"lists": ids[:4], "different": torch.rand(4, len(WORDS) - 1).argsort(-1)[:, :LENGTH]}
    for name, texts in alike.items():
        found = maps(model, texts)
        out[f"moved {name}"] = [
            [
                [moved(weights[i, head, -1], value[i, head]) for i in range(len(texts))]
                for head in range(N_HEADS)
            ]
            for weights, value in found
        ]
        out[f"largest {name}"] = [
            weights[:, :, -1].max(-1).values.T.tolist() for weights, _ in found
        ]
    return out


def _rounded(found: Any) -> Any:
    if isinstance(found, dict):
        return {name: _rounded(each) for name, each in found.items()}
    return [_rounded(each) for each in found] if isinstance(found, list) else round(found, 4)


def measure() -> dict[str, Any]:
    """Ten models of two blocks and ten of one.

    Returns:
        "two": for each seed the curve of its training, the loss on lists and the share of right
        facts, as they are and with parts taken out; "one": the curve, the loss and the share.
    """
    result: dict[str, Any] = {"two": [], "one": []}
    for seed in range(SEEDS):
        model, curve = trained(2, seed)
        with alone(1000 + seed), torch.no_grad():
            result["two"].append(_rounded({"curve": curve, **_asked(model)}))
        model, curve = trained(1, seed)
        with alone(1000 + seed), torch.no_grad():
            loss = loss_of_returns(lists(128), model).item()
            found = {"curve": curve, "loss": loss, "facts": facts_right(model)}
            result["one"].append(_rounded(found))
    return result
