"""Ablations: each makes a Transformer without a part. What is left learns as it would have."""

import math
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from transformer_layers import Transformer, TransformerConfig


class _WithoutPositions(Transformer):
    """A Transformer to which the words of a sequence are a heap."""

    def _embed(self, ids: Tensor, past: int = 0) -> Tensor:
        return self.dropout(self.embedding(ids) * math.sqrt(self.config.d_model))


def cross_attention(config: TransformerConfig) -> Transformer:
    """Takes the attention to the source out: what it adds is zero, and stays so."""
    model = Transformer(config)
    for layer in model.decoder.layers:
        output_proj = layer.get_submodule("cross_attention.output_proj")
        for parameter in output_proj.parameters():
            nn.init.zeros_(parameter).requires_grad_(False)
    return model


def mask(config: TransformerConfig) -> Transformer:
    """Takes the decoder's causal mask out: in training each word sees those that follow."""

    def without_mask(decoder: nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        x, memory, _, *others = arguments
        return (x, memory, None, *others)

    model = Transformer(config)
    model.decoder.register_forward_pre_hook(without_mask)
    return model


def positions(config: TransformerConfig) -> Transformer:
    """Takes positions out, those of the source and those of the target."""
    return _WithoutPositions(config)


ABLATIONS: dict[str, Callable[[TransformerConfig], Transformer]] = {
    "cross-attention": cross_attention,
    "mask": mask,
    "positions": positions,
}
"""What makes a Transformer without a part, by the name of the part."""
