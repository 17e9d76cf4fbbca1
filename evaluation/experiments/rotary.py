"""Learned positions and rotary ones, on texts that begin later than those of training.

Every model is one block with one head, and learns the toy language for as many updates. The arms
differ in their positions alone: a learned table, trained on texts that begin at position 0; the
same table, trained on texts that begin anywhere from 0 to 8, the control; and rotary positions,
trained on texts that begin at 0.
"""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer_layers import GPT2, GPT2Config, RotaryPositions
from transformer_layers.attention.cache import KeyValueCache
from transformer_layers.attention.causal import causal_attention
from transformer_layers.attention.heads import merge_heads, split_heads
from transformer_layers.models.gpt2.attention import CausalSelfAttention
from transformer_training.toy_language import VERBS, WORDS, draw, encode, kind
from transformer_training.toy_language.model import by_itself

SOURCES = (
    "src/transformer_training/toy_language/*.py",
    "src/transformer_layers/models/gpt2/model.py",
    "src/transformer_layers/models/gpt2/block.py",
    "src/transformer_layers/models/gpt2/attention.py",
    "src/transformer_layers/models/gpt2/feed_forward.py",
    "src/transformer_layers/attention/causal.py",
    "src/transformer_layers/positions/rotary.py",
)
SEEDS = 10
STEPS = 500
WIDTH = 32
PLACES = 64  # rows of the learned table, of which training at 0 reads the first eleven
LAST_START = 8
STARTS = (0, 1, 2, 4, 8, 16, 32)
KINDS = ("near here", "or here")
ARMS = ("table", "table, any start", "rotary")


class RotaryAttention(nn.Module):
    """GPT-2's attention, with queries and keys that are turned."""

    def __init__(self, attention: CausalSelfAttention) -> None:
        super().__init__()
        self.c_attn, self.c_proj = attention.c_attn, attention.c_proj
        self.num_heads = attention.num_heads
        self.rotary = RotaryPositions(WIDTH // attention.num_heads)
        self.start = 0

    def forward(
        self, x: Float[Tensor, "*batch seq d_model"], cache: KeyValueCache | None = None
    ) -> Float[Tensor, "*batch seq d_model"]:
        """Attends from positions that begin at `start`."""
        if cache is not None:
            raise ValueError("this attention keeps no cache; got one")
        projections = self.c_attn(x).chunk(3, dim=-1)
        query, key, value = (split_heads(each, self.num_heads) for each in projections)
        places = torch.arange(self.start, self.start + x.shape[-2], device=x.device)
        turned = (self.rotary(query, places), self.rotary(key, places))
        return self.c_proj(merge_heads(causal_attention(*turned, value)))


def logits(
    model: GPT2, ids: Int[Tensor, "*batch seq"], start: int = 0
) -> Float[Tensor, "*batch seq vocab"]:
    """The logits of a text that begins at a position.

    Args:
        model: One of :func:`trained`.
        ids: The text.
        start: Where it begins.

    Returns:
        A row for each word of the text.
    """
    stream = model.wte(ids)
    block = model.h[0]
    if isinstance(block.attn, RotaryAttention):
        block.attn.start = start
    else:
        stream = stream + model.wpe.weight[start : start + ids.shape[-1]]
    return model.ln_f(block(stream)) @ model.wte.weight.T


def trained(arm: str, seed: int = 0) -> GPT2:
    """One block that has learned the sentences that end in a verb.

    Args:
        arm: One of `ARMS`.
        seed: Of the first weights and of the texts.

    Returns:
        The model in float64, in evaluation mode.
    """
    with by_itself(seed):
        config = GPT2Config(len(WORDS), PLACES, WIDTH, n_layer=1, n_head=1, dropout=0.0)
        model = GPT2(config)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.ndim == 2:
                    parameter.mul_(5)  # as the toy language's own models begin
        if arm == "rotary":
            # A list of modules forgets which they are.
            model.h[0].attn = RotaryAttention(model.h[0].attn)  # type: ignore[arg-type]  # a module forgets which
            model.wpe.weight.requires_grad_(False)  # not read
        learning = [each for each in model.parameters() if each.requires_grad]
        optimizer = torch.optim.AdamW(learning, lr=5e-3, fused=True)
        for _ in range(STEPS):
            ids = draw(VERBS, 11)
            start = int(torch.randint(LAST_START + 1, ())) if arm == "table, any start" else 0
            found = logits(model, ids[:, :-1], start)
            loss = nn.functional.cross_entropy(found.flatten(0, 1), ids[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model.eval()


@torch.no_grad()
def share_right(model: GPT2, start: int, kinds: Sequence[str] = KINDS) -> float:
    """The share of right verbs over all sentences of some kinds, which begin at a position."""
    verbs, found = encode("is are"), []
    for name in kinds:
        asked = kind(name)
        chosen = logits(model, asked.prompts, start)[:, -1, verbs].argmax(dim=-1)
        found.append((verbs[chosen] == asked.right).double())
    return torch.cat(found).mean().item()


def measure() -> dict[str, Any]:
    """Ten models of each arm, asked at each start.

    Returns:
        "rows": "arm", and for each of the "starts" the "shares", one of each seed.
    """
    rows = []
    for arm in ARMS:
        models = [trained(arm, seed) for seed in range(SEEDS)]
        shares = [[round(share_right(model, start), 4) for model in models] for start in STARTS]
        rows.append({"arm": arm, "starts": list(STARTS), "shares": shares})
    return {"rows": rows, "seeds": SEEDS, "last_start": LAST_START}
