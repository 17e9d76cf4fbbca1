"""What warm-up, the shared matrix, the factor on embeddings and positions change in a translator.

They are choices of sections 5.3, 3.4 and 3.5 of https://arxiv.org/abs/1706.03762. Each setting is
trained with each seed at each of several rates, so that none loses for its rate alone; the
sentences that are asked were held out.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from evaluation.experiments.translation import SEEDS, held_out_loss
from evaluation.experiments.translation import SOURCES as OF_TRANSLATIONS
from transformer_layers import Transformer, TransformerConfig
from transformer_training.toy_language.model import by_itself
from transformer_training.toy_translation import share_exact, source_mask
from transformer_training.toy_translation.language import END, PADDING, START, WORDS, draw

SOURCES = (*OF_TRANSLATIONS, "evaluation/experiments/translation.py")
STEPS, BATCH = 400, 64
LAYERS = 3  # of each side, where warm-up is asked; with one there is little to warm up
WARMED_RATES = (1e-2, 2e-2)
RATES = (2e-3, 1e-2)
NORMS = ("post", "pre")


class OwnHead(Transformer):
    """A Transformer whose scores come of a second matrix, drawn as the first is."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        self.head = nn.Parameter(torch.empty_like(self.embedding.weight))
        nn.init.normal_(self.head, std=config.d_model**-0.5)

    def logits(self, hidden_state: Tensor) -> Tensor:
        """Scores every token by a row of its own."""
        return nn.functional.linear(hidden_state, self.head)


class _Heap(Transformer):
    """A Transformer with a way to read words as a heap, wherever they stand."""

    def words_alone(self, ids: Tensor) -> Tensor:
        """Embeds tokens without their positions."""
        return self.dropout(self.embedding(ids) * math.sqrt(self.config.d_model))


class SourceHeap(_Heap):
    """A Transformer that adds no positions to the source; its target has them."""

    def encode(self, source_ids: Tensor, source_mask: Tensor | None = None) -> Tensor:
        """Reads a source as a heap of words."""
        return self.encoder(self.words_alone(source_ids), source_mask)


class TargetHeap(_Heap):
    """A Transformer that adds no positions to the target; its source has them."""

    def encode(self, source_ids: Tensor, source_mask: Tensor | None = None) -> Tensor:
        """Reads a source, with positions."""
        return self.encoder(super()._embed(source_ids), source_mask)

    def _embed(self, ids: Tensor, past: int = 0) -> Tensor:
        return self.words_alone(ids)  # only the causal mask tells which came first


def _without_factor(config: TransformerConfig) -> Transformer:
    return Transformer(replace(config, scaled_embedding=False))


def _wide_without_factor(config: TransformerConfig) -> Transformer:
    """As torch's `nn.Embedding` starts: variance 1, and nothing to multiply."""
    model = _without_factor(config)
    nn.init.normal_(model.embedding.weight)
    return model


DESIGNS: dict[str, Callable[[TransformerConfig], Transformer]] = {
    "as in the paper": Transformer,
    "a head of its own": OwnHead,
    "no factor": _without_factor,
    "no factor, variance 1": _wide_without_factor,
    "no positions in the source": SourceHeap,
    "no positions in the target": TargetHeap,
}


def _config(**changes: Any) -> TransformerConfig:
    tokens = {"start_token": START, "end_token": END, "padding_token": PADDING}
    sizes = {"d_model": 32, "num_layers": 1, "num_heads": 2, "d_ff": 64, "dropout": 0.0}
    return TransformerConfig(len(WORDS), **{**sizes, **tokens, **changes})


def trained(
    make: Callable[[TransformerConfig], Transformer],
    config: TransformerConfig,
    lr: float,
    seed: int,
    warmup: float = 0.1,
) -> Transformer:
    """Trains a translator; its rate rises in a share of the updates, then falls in a line."""
    rising = round(warmup * STEPS)
    with by_itself(seed):
        model = make(config)
        adam = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=True)
        for step in range(1, STEPS + 1):
            falling = (STEPS + 1 - step) / (STEPS - rising)
            for group in adam.param_groups:
                group["lr"] = lr * (min(step / rising, falling) if rising else falling)
            source_ids, target_ids = draw(BATCH)
            loss = model.loss(source_ids, target_ids, source_mask(source_ids))
            adam.zero_grad()
            loss.backward()
            adam.step()
        return model.eval()


def _asked(**options: Any) -> dict[str, list[float]]:
    models = [trained(**options, seed=seed) for seed in range(SEEDS)]
    with by_itself(0):
        return {
            "exact": [share_exact(model) for model in models],
            "loss": [held_out_loss(model) for model in models],
        }


def measure() -> dict[str, Any]:
    """The shares of held-out sentences that are translated exactly, and the losses, by seed."""
    warmed = [
        {"norm": norm, "lr": lr, "warmup": warmup}
        | _asked(
            make=Transformer,
            config=_config(num_layers=LAYERS, pre_norm=norm == "pre"),
            lr=lr,
            warmup=warmup,
        )
        for norm in NORMS
        for lr in WARMED_RATES
        for warmup in (0.1, 0.0)
    ]
    designs = [
        {"design": name, "lr": lr} | _asked(make=make, config=_config(), lr=lr)
        for name, make in DESIGNS.items()
        for lr in RATES
    ]
    return {"seeds": SEEDS, "layers": LAYERS, "warmed": warmed, "designs": designs}
