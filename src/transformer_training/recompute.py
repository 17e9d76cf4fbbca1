"""Less memory for more computing: a block's activations are computed once more when needed."""

from collections.abc import Iterable
from functools import partial

from torch import nn
from torch.utils.checkpoint import checkpoint


def recompute_activations(blocks: Iterable[nn.Module]) -> None:
    """Keeps the input of each block alone for the backward pass, which runs the block once more.

    https://arxiv.org/abs/1604.06174, section 4. Memory is that of the inputs and of one block, in
    place of all blocks; the second forward pass makes the blocks a third more expensive. Dropout
    draws the same again, so that gradients are the same. In evaluation nothing changes.

    Args:
        blocks: Those of a model, which are changed in place; names and weights stay.

    Raises:
        ValueError: If that was done to one of them before.

    Examples:
        >>> import torch
        >>> block = nn.Sequential(nn.Linear(3, 8), nn.GELU(), nn.Linear(8, 3))
        >>> x = torch.randn(2, 3)
        >>> expected = torch.autograd.grad(block(x).sum(), block.parameters())
        >>> recompute_activations([block])
        >>> found = torch.autograd.grad(block(x).sum(), block.parameters())
        >>> all(map(torch.equal, found, expected))
        True
    """
    for number, block in enumerate(blocks):
        if "forward" in vars(block):
            raise ValueError(f"block {number} recomputes its activations already")
        block.forward = partial(checkpoint, block.forward, use_reentrant=False)
