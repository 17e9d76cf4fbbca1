"""Lists of random words, said over and over, and small models that learn to go on with them."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from transformer_layers import GPT2, GPT2Config
from transformer_training.toy_language import WORDS
from transformer_training.toy_language.model import by_itself

LENGTH = 32
N_HEADS = 4
WIDTH = 32
STEPS = 400


def lists(n: int) -> Int[Tensor, "n seq"]:
    """Texts of 32 words: a list of 6 to 16 different words, over and over."""
    period = torch.randint(6, 17, (n, 1))
    drawn = torch.rand(n, len(WORDS) - 1).argsort(dim=-1)
    return drawn.gather(1, torch.arange(LENGTH) % period)


def came_before(ids: Int[Tensor, "n seq"]) -> Bool[Tensor, "n seq seq"]:
    """Which earlier places of a text hold the word of each place."""
    return (ids[:, :, None] == ids[:, None, :]).tril(-1)


def loss_of_returns(ids: Int[Tensor, "n seq"], model: GPT2) -> Float[Tensor, ""]:
    """The mean loss after words that came before: what follows the others, none can know."""
    losses = cross_entropy(model(ids)[:, :-1].mT, ids[:, 1:], reduction="none")
    return losses[came_before(ids).any(-1)[:, :-1]].mean()


def list_model(
    blocks: int = 2,
    seed: int = 0,
    steps: int = STEPS,
    *,
    watch: Callable[[int, float, GPT2, Int[Tensor, "n seq"]], None] | None = None,
) -> GPT2:
    """Trains a GPT-2 of float64, with four heads in each block, on lists.

    It is the same model wherever it is trained. Torch's generators are left as they were.

    Args:
        blocks: How many.
        seed: Of the first weights and of the lists.
        steps: Updates.
        watch: Called after each update with its number, its loss, the model, and 32 lists that are
            no training texts.

    Returns:
        The model, in evaluation mode, without gradients.

    Raises:
        ValueError: If `steps` is negative, or `blocks` is below 1.

    Examples:
        >>> list_model(blocks=1, steps=0).config.n_layer
        1
    """
    if steps < 0:
        raise ValueError(f"steps must be at least 0, got {steps}")
    with by_itself(seed):
        model = GPT2(GPT2Config(len(WORDS), LENGTH, WIDTH, blocks, N_HEADS, dropout=0.0))
        with torch.no_grad():
            for name, weight in model.named_parameters():
                if weight.ndim == 2 and name != "wpe.weight":
                    weight.mul_(5)  # so small a model starts sooner with larger weights
        optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.0, fused=True)
        others = lists(32)
        for step in range(steps):
            optimizer.param_groups[0]["lr"] = 5e-3 * min(1.0, (step + 1) / 50)
            loss = loss_of_returns(lists(16), model)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if watch is not None:
                watch(step, loss.item(), model, others)
    return model.eval().requires_grad_(False)
