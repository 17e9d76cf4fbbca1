"""Where the norm stands, and which learning rates a small stack then stands.

Every model begins with the same weights for a seed, whatever its order. It learns the toy language
with AdamW, at a rate that is the same in all updates or, with a warm-up, grows to it in a straight
line.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from transformer_layers import GPT2, GPT2Config
from transformer_layers.attention.context import CacheOrContext
from transformer_layers.models.gpt2.block import GPT2Block
from transformer_training.toy_language import VERBS, WORDS, draw, share_right
from transformer_training.toy_language.model import N_POSITIONS, by_itself

SOURCES = (
    "src/transformer_training/toy_language/*.py",
    "src/transformer_layers/models/gpt2/model.py",
    "src/transformer_layers/models/gpt2/block.py",
    "src/transformer_layers/models/gpt2/attention.py",
    "src/transformer_layers/models/gpt2/feed_forward.py",
    "src/transformer_layers/generation/loss.py",
)
SEEDS = 10
RATES = (0.001, 0.003, 0.01, 0.03)
STEPS = 150
WARM_UP = 50
# With a warm-up too, the control: what it does for an order that may not need it.
ARMS = (("pre", 0), ("post", 0), ("none", 0), ("pre", WARM_UP), ("post", WARM_UP))


class PostNorm(GPT2Block):
    """The order of 2017: the norm is on the stream, after each sum."""

    def forward(
        self, x: Float[Tensor, "*batch seq d_model"], cache: CacheOrContext = None
    ) -> Float[Tensor, "*batch seq d_model"]:
        """Maps x as the class says."""
        x = self.ln_1(x + self.attn(x, cache))
        return self.ln_2(x + self.mlp(x))


class NoNorm(GPT2Block):
    """A block without norms; its model keeps the last one."""

    def forward(
        self, x: Float[Tensor, "*batch seq d_model"], cache: CacheOrContext = None
    ) -> Float[Tensor, "*batch seq d_model"]:
        """Maps x as the class says."""
        x = x + self.attn(x, cache)
        return x + self.mlp(x)


BLOCKS = {"pre": GPT2Block, "post": PostNorm, "none": NoNorm}


def trained(order: str, rate: float, seed: int, warm_up: int = 0) -> tuple[GPT2, list[float]]:
    """A stack of four blocks, trained on the sentences that end in a verb.

    Args:
        order: "pre", "post" or "none".
        rate: Learning rate of AdamW.
        seed: Of the first weights and of the texts.
        warm_up: Updates in which the rate grows to `rate`.

    Returns:
        The model, in evaluation mode, trained in float64 and then of torch's default dtype; and
        the loss of each update, on texts not yet learned from.
    """
    with by_itself(seed) as dtype:
        model = GPT2(GPT2Config(len(WORDS), N_POSITIONS, 32, n_layer=4, n_head=2, dropout=0.0))
        for block in model.h:
            block.__class__ = BLOCKS[order]
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.ndim == 2:
                    parameter.mul_(5)  # as the toy language's own models begin
        optimizer = torch.optim.AdamW(model.parameters(), fused=True)
        losses = []
        for step in range(STEPS):
            optimizer.param_groups[0]["lr"] = rate * min(1, (step + 1) / (warm_up + 1))
            loss = model.loss(draw(VERBS, 8))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model = model.eval().to(dtype)
    return model, losses


def measure() -> dict[str, Any]:
    """Ten models of each order, at each rate.

    Returns:
        "rows": "order", "warm_up", "rate", and for each seed "losses", the mean of the last twenty
        updates, and "shares", the share of right verbs in "near here" and "or here".
    """
    rows = []
    for order, warm_up in ARMS:
        for rate in RATES:
            found = [trained(order, rate, seed, warm_up) for seed in range(SEEDS)]
            asked = [
                [share_right(model, kind) for kind in ("near here", "or here")]
                for model, _ in found
            ]
            rows.append(
                {
                    "order": order,
                    "warm_up": warm_up,
                    "rate": rate,
                    "losses": [round(sum(losses[-20:]) / 20, 4) for _, losses in found],
                    "shares": [round(sum(each) / len(each), 4) for each in asked],
                }
            )
    return {"rows": rows}
