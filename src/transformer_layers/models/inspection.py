"""What a decoder computes on its way to the logits."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn


@dataclass(frozen=True)
class Inspection:
    """What a forward pass has computed on its way.

    Attributes:
        logits: What the model returns, shape `(..., seq, vocab_size)`.
        hidden_states: The residual stream before the first block and behind each, without the last
            norm: one more than there are blocks, each of shape `(..., seq, d_model)`.
        attention_weights: Those of each block, shape `(..., num_heads, seq, length)`, before any
            dropout; `length` counts the positions in the caches, too. A position that may attend to
            nothing has zeros.
    """

    logits: Tensor
    hidden_states: tuple[Tensor, ...]
    attention_weights: tuple[Tensor, ...]


@contextmanager
def stream_of(blocks: nn.ModuleList) -> Iterator[list[Tensor]]:
    """Notes the residual stream of the next forward pass.

    Args:
        blocks: The model's.

    Yields:
        A list to which what comes to the first block, and what each gives, is added.
    """
    stream: list[Tensor] = []

    def came(block: nn.Module, arguments: tuple[Any, ...]) -> None:
        stream.append(arguments[0])

    def gave(block: nn.Module, arguments: tuple[Any, ...], output: Tensor) -> None:
        stream.append(output)

    hooks = [blocks[0].register_forward_pre_hook(came)] if len(blocks) else []
    hooks += [block.register_forward_hook(gave) for block in blocks]
    try:
        yield stream
    finally:
        for hook in hooks:
            hook.remove()
