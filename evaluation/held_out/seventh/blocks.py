"""Wrong versions of the encoder's and the decoder's layers."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from evaluation.held_out.definitions import held_out
from transformer_layers.attention.masks import causal_mask
from transformer_layers.attention.memory import DecoderCache, attend, keys_and_values
from transformer_layers.attention.multi_head import MultiHeadAttention
from transformer_layers.blocks.decoder import (
    PreNormTransformerDecoderLayer,
    TransformerDecoderLayer,
)
from transformer_layers.blocks.encoder import (
    PreNormTransformerEncoderLayer,
    TransformerEncoderLayer,
)
from transformer_layers.feed_forward.positionwise import PositionwiseFeedForward
from transformer_layers.norms.layer_norm import LayerNorm
from transformer_layers.regularization.dropout import Dropout, dropout

Activation = Callable[[Tensor], Tensor]
Device = torch.device | str | int | None


class _Encoder(nn.Module):
    """The parts of an encoder layer, with a hook for those that are made from arguments."""

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        dropout: float = 0.1,
        *,
        activation: Activation = torch.relu,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(
            d_model, num_heads, dropout, device=device, dtype=dtype
        )
        self.feed_forward = self._feed_forward(d_model, d_ff, dropout, activation)
        self.feed_forward.to(device=device, dtype=dtype)
        self.norm1 = LayerNorm(d_model, device=device, dtype=dtype)
        self.norm2 = LayerNorm(d_model, device=device, dtype=dtype)
        self.dropout = Dropout(dropout)

    def _feed_forward(
        self, d_model: int, d_ff: int, dropout: float, activation: Activation
    ) -> PositionwiseFeedForward:
        return PositionwiseFeedForward(d_model, d_ff, dropout, activation=activation)

    def reset_parameters(self) -> None:
        for each in (self.self_attention, self.feed_forward, self.norm1, self.norm2):
            each.reset_parameters()

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = self.norm1(x + self.dropout(self.self_attention(x, x, x, mask)))
        return self.norm2(x + self.feed_forward(x))


@held_out(
    "TransformerEncoderLayer", "review practice", r"activation|relu|gelu|argument|handed|pass"
)
class EncoderDeafToItsActivation(_Encoder):
    """Does not hand its activation on, so that there is a ReLU whatever was asked for."""

    def _feed_forward(
        self, d_model: int, d_ff: int, dropout: float, activation: Activation
    ) -> PositionwiseFeedForward:
        return PositionwiseFeedForward(d_model, d_ff, dropout)


@held_out("TransformerEncoderLayer", "review practice", r"dropout|drop|rate|handed|default|pass")
class EncoderWithARateOfItsOwn(_Encoder):
    """Does not hand its dropout on to the feed-forward network, which drops a tenth."""

    def _feed_forward(
        self, d_model: int, d_ff: int, dropout: float, activation: Activation
    ) -> PositionwiseFeedForward:
        return PositionwiseFeedForward(d_model, d_ff, activation=activation)


@held_out("TransformerEncoderLayer", "review practice", r"\beps|small|constant|1e-")
class EncoderWithTheEpsilonOfBert(TransformerEncoderLayer):
    """Has BERT's epsilon of 1e-12 in its norms, which shows where positions hardly vary."""

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        dropout: float = 0.1,
        *,
        activation: Activation = torch.relu,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            d_model, num_heads, d_ff, dropout, activation=activation, device=device, dtype=dtype
        )
        self.norm1.eps = self.norm2.eps = 1e-12


@held_out(
    "PreNormTransformerEncoderLayer", "review practice", r"drop|path|whole|element|branch|sequence"
)
class PreNormEncoderDroppingPaths(PreNormTransformerEncoderLayer):
    """Drops the attention of whole sequences in training, as vision models do, not elements."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        n = self.norm1(x)
        passing = dropout(torch.ones_like(x[..., :1, :1]), self.dropout.p, self.training)
        x = x + passing * self.self_attention(n, n, n, mask)
        return x + self.feed_forward(self.norm2(x))


@held_out(
    "PreNormTransformerEncoderLayer",
    "review practice",
    r"parallel|after|attention|second|residual",
)
class PreNormEncoderSideBySide(_Encoder):
    """Computes attention and feed-forward network from the same input, side by side."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        n = self.norm1(x)
        attended = self.dropout(self.self_attention(n, n, n, mask))
        return x + attended + self.feed_forward(self.norm2(x))


@held_out("TransformerDecoderLayer", "review practice", r"memory_mask|mask|padding|cache")
class DecoderUnmaskedByItsCache(TransformerDecoderLayer):
    """Ignores the memory's mask where there is a cache, so that padding is read while it writes."""

    def _attend_to_memory(
        self, x: Tensor, memory: Tensor, mask: Tensor | None, cache: DecoderCache | None
    ) -> Tensor:
        return super()._attend_to_memory(x, memory, mask if cache is None else None, cache)


@held_out("TransformerDecoderLayer", "review practice", r"memory|stale|kept|second|another|state")
class DecoderFaithfulToAMemory(TransformerDecoderLayer):
    """Keeps a memory's keys for inference, and takes them for each later memory of that shape."""

    _kept: tuple[torch.Size, tuple[Tensor, Tensor]] | None = None

    def _attend_to_memory(
        self, x: Tensor, memory: Tensor, mask: Tensor | None, cache: DecoderCache | None
    ) -> Tensor:
        fresh = super()._attend_to_memory(x, memory, mask, cache)
        if cache is not None or self.training or torch.is_grad_enabled():
            self._kept = None
            return fresh
        if self._kept is None or self._kept[0] != memory.shape:
            self._kept = memory.shape, keys_and_values(self.cross_attention, memory)
        return attend(self.cross_attention, x, *self._kept[1], mask)


@held_out(
    "TransformerDecoderLayer",
    "review practice",
    r"causal|default|no mask|without (a )?mask|not given",
)
class DecoderCausalUnasked(TransformerDecoderLayer):
    """Hides later positions where no mask is given, and all should be seen."""

    def _attend_to_itself(
        self, x: Tensor, mask: Tensor | None, cache: DecoderCache | None
    ) -> Tensor:
        if mask is None and cache is None and x.ndim > 1:
            mask = causal_mask(x.shape[-2], device=x.device)
        return super()._attend_to_itself(x, mask, cache)


@held_out(
    "TransformerDecoderLayer",
    "jadore801120/attention-is-all-you-need-pytorch, issue 28",
    r"beam|several rows|repeat|interleav|order|row",
)
class DecoderOfShuffledBeams(TransformerDecoderLayer):
    """Lays memories out by turns where there are several rows for each, which lie side by side."""

    def _attend_to_memory(
        self, x: Tensor, memory: Tensor, mask: Tensor | None, cache: DecoderCache | None
    ) -> Tensor:
        if cache is None or x.shape[0] == memory.shape[0]:
            return super()._attend_to_memory(x, memory, mask, cache)
        beams, rest = divmod(x.shape[0], max(memory.shape[0], 1))
        if rest or not beams:
            raise ValueError(f"got {x.shape[0]} rows for {memory.shape[0]} of the memory")
        keys, values = cache.of_memory(self.cross_attention, memory)
        keys, values = keys.repeat(beams, 1, 1, 1), values.repeat(beams, 1, 1, 1)
        shown = mask if mask is None or mask.ndim == 2 else mask.repeat(beams, 1, 1)
        return self.dropout(attend(self.cross_attention, x, keys, values, shown))


@held_out("PreNormTransformerDecoderLayer", "review practice", r"memory|norm|cross|encoder")
class PreNormDecoderNormingItsMemory(PreNormTransformerDecoderLayer):
    """Norms the memory as well, which hardly shows while it comes from an untrained norm."""

    def _attend_to_memory(
        self, x: Tensor, memory: Tensor, mask: Tensor | None, cache: DecoderCache | None
    ) -> Tensor:
        if cache is not None and cache._memory is memory:  # its keys are there
            return super()._attend_to_memory(x, memory, mask, cache)
        normed = super()._attend_to_memory(x, self.norm2(memory), mask, cache)
        if cache is not None:
            cache._memory = memory
        return normed


@held_out("PreNormTransformerDecoderLayer", "review practice", r"drop|twice|feed|rate|share")
class PreNormDecoderDroppingTwice(PreNormTransformerDecoderLayer):
    """Drops the feed-forward network's result once more than the network itself."""

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache: DecoderCache | None = None,
    ) -> Tensor:
        x = x + self._attend_to_itself(self.norm1(x), mask, cache)
        x = x + self._attend_to_memory(self.norm2(x), memory, memory_mask, cache)
        return x + self.dropout(self.feed_forward(self.norm3(x)))


@held_out("PreNormTransformerDecoderLayer", "review practice", r"cache|norm|key|step")
class PreNormDecoderKeepingTheRaw(PreNormTransformerDecoderLayer):
    """With a cache, makes keys and values of what is not normed, and queries of what is."""

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache: DecoderCache | None = None,
    ) -> Tensor:
        if cache is None or mask is not None:
            return super().forward(x, memory, mask, memory_mask, cache)
        keys, values = cache.append(*keys_and_values(self.self_attention, x))
        shown = cache.mask(x.shape[-2])
        x = x + self.dropout(attend(self.self_attention, self.norm1(x), keys, values, shown))
        x = x + self._attend_to_memory(self.norm2(x), memory, memory_mask, cache)
        return x + self.feed_forward(self.norm3(x))
