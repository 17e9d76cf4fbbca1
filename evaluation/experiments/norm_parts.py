"""What of layer normalization a small model needs: subtraction, division, or larger numbers.

Every model is GPT-2 with one block and one head, and learns the toy language for as many updates.
The arms differ in their norms alone: LayerNorm, which subtracts and divides; RMSNorm, which
divides; one that subtracts the mean and divides by nothing; one that multiplies by a constant, so
that numbers become as large as after a norm and unequal sizes stay unequal, in all three places, in
the block alone or before the head alone; and none, the control.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer_layers import GPT2, GPT2Config, LayerNorm, RMSNorm
from transformer_training.toy_language import VERBS, WORDS, draw, share_right
from transformer_training.toy_language.model import N_POSITIONS, by_itself

SOURCES = (
    "src/transformer_training/toy_language/*.py",
    "src/transformer_layers/models/gpt2/model.py",
    "src/transformer_layers/models/gpt2/block.py",
    "src/transformer_layers/models/gpt2/attention.py",
    "src/transformer_layers/models/gpt2/feed_forward.py",
    "src/transformer_layers/norms/*.py",
    "src/transformer_layers/generation/loss.py",
)
SEEDS = 10
STEPS = 600
RATES = (0.005, 0.01)
WIDTH = 32
KINDS = ("near here", "or here")
FACTOR = 7.0  # the first stream's entries are of size 1/7: two tables of 0.02 times 5


class MeanSubtracted(nn.Module):
    """Subtracts the mean, and multiplies by a gain."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Maps x as the class says."""
        return self.weight * (x - x.mean(dim=-1, keepdim=True))


class Enlarged(nn.Module):
    """Multiplies by `FACTOR`, and learns nothing."""

    def __init__(self, d_model: int) -> None:
        super().__init__()

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Maps x as the class says."""
        return FACTOR * x


# What stands in the block, twice, and what stands before the head.
NORMS: dict[str, tuple[type[nn.Module], type[nn.Module]]] = {
    "LayerNorm": (LayerNorm, LayerNorm),
    "RMSNorm": (RMSNorm, RMSNorm),
    "mean subtracted": (MeanSubtracted, MeanSubtracted),
    "times a constant": (Enlarged, Enlarged),
    "constant in the block": (Enlarged, nn.Identity),
    "constant at the head": (nn.Identity, Enlarged),
    "none": (nn.Identity, nn.Identity),
}


def trained(norm: str, rate: float, seed: int = 0) -> GPT2:
    """One block that has learned the sentences that end in a verb.

    Args:
        norm: One of `NORMS`.
        rate: Learning rate of AdamW.
        seed: Of the first weights and of the texts.

    Returns:
        The model in float64, in evaluation mode.
    """
    with by_itself(seed):
        model = GPT2(GPT2Config(len(WORDS), N_POSITIONS, WIDTH, n_layer=1, n_head=1, dropout=0.0))
        block, (inside, last) = model.h[0], NORMS[norm]
        # Its fields are LayerNorms, and any module may stand there.
        block.ln_1, block.ln_2, model.ln_f = inside(WIDTH), inside(WIDTH), last(WIDTH)  # type: ignore[assignment]  # other norms than GPT-2 has
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.ndim == 2:
                    parameter.mul_(5)  # as the toy language's own models begin
        optimizer = torch.optim.AdamW(model.parameters(), lr=rate, fused=True)
        for _ in range(STEPS):
            loss = model.loss(draw(VERBS, 11))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model.eval()


def measure() -> dict[str, Any]:
    """Ten models of each arm, at each rate.

    Returns:
        "rows": "norm", "rate" and "shares", the mean share of right verbs in "near here" and "or
        here", one of each seed.
    """
    rows = []
    for norm in NORMS:
        for rate in RATES:
            shares = []
            for seed in range(SEEDS):
                model = trained(norm, rate, seed)
                asked = [share_right(model, name) for name in KINDS]
                shares.append(round(sum(asked) / len(asked), 4))
            rows.append({"norm": norm, "rate": rate, "shares": shares})
    return {"rows": rows, "seeds": SEEDS}
