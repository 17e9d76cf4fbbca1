"""Which words of the toy language share an expert, and what balances the experts.

A GPT-2 of one block has four feed-forward layers in the place of one, and a router sends each token
to one of them (`transformer_layers.MixtureOfExperts`). The arms differ in what the balance of the
experts counts beside the loss. The trained models are asked again with tokens sent to another
expert than the router chose: all of them, or the four words between the nouns alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from transformer_layers import (
    GPT2,
    MixtureOfExperts,
    TopKRouter,
    load_balancing_loss,
    router_scores,
)
from transformer_training.toy_language import VERBS, draw, encode, kind, share_right, trained_model
from transformer_training.toy_language.model import by_itself

SOURCES = (
    "src/transformer_training/toy_language/*.py",
    "src/transformer_layers/feed_forward/experts.py",
    "src/transformer_layers/feed_forward/gated.py",
    "src/transformer_layers/models/gpt2/model.py",
    "src/transformer_layers/models/gpt2/block.py",
    "src/transformer_layers/models/gpt2/attention.py",
)
SEEDS = 10
EXPERTS, D_FF = 4, 64
STEPS, RATE, TEXTS = 800, 5e-3, 11
BALANCES = (0.0, 0.001, 0.01, 0.1)
BETWEEN = "near behind or and"  # the words between the nouns


def trained(balance: float, seed: int) -> GPT2:
    """A model with experts, in evaluation mode; its first weights and texts are the seed's."""
    model = trained_model(steps=0, seed=seed).double().train()
    width = model.config.n_embd
    router = TopKRouter(width, EXPERTS, 1, renormalize=False)
    model.h[0].mlp = MixtureOfExperts(width, D_FF, EXPERTS, 1, router)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    for step in range(STEPS):
        optimizer.param_groups[0]["lr"] = RATE * min(1.0, 2 - 2 * step / STEPS)
        with router_scores(model) as scores:
            loss = model.loss(draw(VERBS, TEXTS))
        (loss + balance * load_balancing_loss(scores[0], 1)).backward()
        optimizer.step()
        optimizer.zero_grad()
    return model.eval()


@torch.no_grad()
def chosen(model: GPT2, ids: Tensor) -> Tensor:
    """The expert of each token."""
    with router_scores(model) as scores:
        model(ids)
    return scores[0].argmax(dim=-1)


@contextmanager
def sent_elsewhere(model: GPT2, shift: int, ids: Tensor | None = None) -> Iterator[None]:
    """Sends tokens to another expert than the router chose, with the weight of that one.

    Args:
        model: The model.
        shift: By how many the experts' numbers are moved.
        ids: The words that are sent elsewhere; all if not given.
    """
    seen: list[Tensor] = []

    def note(_: Any, given: tuple[Tensor, ...]) -> None:
        seen.append(given[0])

    def moved(_: Any, __: Any, found: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        weights, numbers = found
        here = torch.ones_like(numbers) if ids is None else torch.isin(seen[-1], ids)[..., None]
        return weights, (numbers + shift * here) % EXPERTS

    mixture: Any = model.h[0].mlp
    hooks = [
        model.wte.register_forward_pre_hook(note),
        mixture.router.register_forward_hook(moved),
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def shares(model: GPT2) -> list[float]:
    """The share of right verbs, of each kind of sentence."""
    return [round(share_right(model, name), 4) for name in VERBS]


@torch.no_grad()
def loss_after(model: GPT2, ids: Tensor) -> float:
    """The mean loss of the words that follow some words, over all texts, in nats."""
    losses = []
    for name in VERBS:
        texts = kind(name).texts
        here = torch.isin(texts[:, :-1], ids)
        losses.append(
            cross_entropy(model(texts)[:, :-1][here], texts[:, 1:][here], reduction="none")
        )
    return round(torch.cat(losses).mean().item(), 4)


def asked(model: GPT2) -> dict[str, Any]:
    """What a model answers, where it sends its tokens, and what it answers with others' experts."""
    texts = [kind(name).texts.flatten() for name in VERBS]
    numbers = [chosen(model, kind(name).texts).flatten() for name in VERBS]
    words, experts = torch.cat(texts), torch.cat(numbers)
    loads = torch.bincount(experts, minlength=EXPERTS) / len(experts)
    between = encode(BETWEEN)
    of_between = torch.bincount(experts[torch.isin(words, between)], minlength=EXPERTS)
    found: dict[str, Any] = {
        "right": shares(model),
        "loads": [round(each, 4) for each in sorted(loads.tolist())],
        "between": round((of_between.max() / of_between.sum()).item(), 4),
        "loss after": [loss_after(model, between)],
    }
    for name, ids in (("all elsewhere", None), ("between elsewhere", between)):
        found[name] = []
        for shift in range(1, EXPERTS):
            with sent_elsewhere(model, shift, ids):
                found[name].append(shares(model))
                if ids is not None:
                    found["loss after"].append(loss_after(model, ids))
    return found


def measure() -> dict[str, Any]:
    """Ten models for each weight of the balance.

    Returns:
        "rows": for each "balance" and "seed" the shares of right verbs of each kind, "right"; the
        shares of the tokens of the experts, the least first, "loads"; the share of the words
        between the nouns that goes to their commonest expert, "between"; and for each of three
        other experts the shares of right verbs where all tokens go there, "all elsewhere", or these
        words alone, "between elsewhere"; the loss of the words that follow these, in nats, with
        their own expert and with each of the others, "loss after".
    """
    rows = []
    for balance in BALANCES:
        for seed in range(SEEDS):
            with by_itself(seed):
                model = trained(balance, seed)
                rows.append({"balance": balance, "seed": seed, **asked(model)})
    return {"rows": rows, "kinds": list(VERBS)}
