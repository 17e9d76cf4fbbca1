"""Wrong feed-forward networks, encoder layers, blocks and models."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from evaluation.held_out.definitions import held_out
from transformer_layers import (
    GPT2,
    Conv1D,
    FeedForward,
    GPT2Block,
    KeyValueCache,
    PositionwiseFeedForward,
    PreNormTransformerEncoderLayer,
    TransformerEncoderLayer,
)


@held_out("Conv1D", "tenstorrent/tt-metal, issue 16599", "bias")
class BiasOfTheFirstOnly(Conv1D):
    """Adds the bias to the first sequence only, where sequences have one position."""

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        if x.ndim != 3 or x.shape[1] != 1:
            return y
        return torch.cat([y[:1], x[1:] @ self.weight])


@held_out(
    "PositionwiseFeedForward", "theislab/CellFlow, pull request 296", "unused|ignore|linear|input"
)
class DropsItsInput(PositionwiseFeedForward):
    """Hands its input to the dropout, and the result of the two maps to nobody."""

    def forward(self, x: Tensor) -> Tensor:
        super().forward(x.detach())  # its errors
        return self.dropout(x)


@held_out("FeedForward", "teddykoker/image-gpt, issue 1", r"four|\b4\b|d_ff|width|inner")
class AsWideAsTheModel(FeedForward):
    """Is d_model wide inside, if no width is given."""

    def __init__(
        self, d_model: int, d_ff: int | None = None, dropout: float = 0.1, **kwargs: Any
    ) -> None:
        super().__init__(d_model, d_model if d_ff is None else d_ff, dropout, **kwargs)


@held_out("TransformerEncoderLayer", "neulab/xnmt, pull request 544", "dropout|drop")
class AttentionNotDropped(TransformerEncoderLayer):
    """Drops no attention weights."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.self_attention.dropout = 0.0


@held_out(
    "PreNormTransformerEncoderLayer",
    "ChristophReich1996/MaxViT, issue 8",
    "product|multipli|multiply|residual|stream|sum",
)
class ProductForSum(PreNormTransformerEncoderLayer):
    """Multiplies the stream by the feed-forward network's result."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        n = self.norm1(x)
        x = x + self.dropout(self.self_attention(n, n, n, mask))
        return x * self.feed_forward(self.norm2(x))


@held_out(
    "GPT2Block",
    "TransformerLensOrg/TransformerLens, issue 1639",
    "twice|double|residual|stream",
)
class StreamCountedTwice(GPT2Block):
    """Adds to the stream the attention's result that the stream was added to already."""

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        attended = x + self.attn(self.ln_1(x), cache)
        x = x + attended
        return x + self.mlp(self.ln_2(x))


@held_out("GPT2", "ml-explore/mlx-lm, pull request 93", "position|wpe|single|one token")
class NoPositionForOneToken(GPT2):
    """Adds no position to the embedding of a single token."""

    def _last_hidden_state(
        self, ids: Tensor, positions: Tensor, caches: Sequence[KeyValueCache] | None
    ) -> Tensor:
        x = self._embed(ids)
        if ids.shape[-1] > 1:
            x = x + self.wpe(positions)
        x = self.drop(x)
        for i, block in enumerate(self.h):
            x = block(x, caches[i] if caches else None)
        return self.ln_f(x)


@held_out("GPT2", "dmlc/gluon-nlp, issue 1015", "position|cache|past|offset")
class HeadsForLength(GPT2):
    """Takes the number of heads for the number of positions that a cache holds."""

    def _last_hidden_state(
        self, ids: Tensor, positions: Tensor, caches: Sequence[KeyValueCache] | None
    ) -> Tensor:
        if caches and caches[0].length:
            shift = self.config.n_head - caches[0].length
            positions = (positions + shift).clamp(0, self.config.n_positions - 1)
        return super()._last_hidden_state(ids, positions, caches)


@held_out("GPT2", "rasbt/LLMs-from-scratch, pull request 1048", "position|cache|state|earlier|call")
class PositionsGoOnWithoutACache(GPT2):
    """After a call with caches, one without them counts its positions from where that one ended."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.reached = [0]  # a list, so that a twin in evaluation mode shares it

    def _last_hidden_state(
        self, ids: Tensor, positions: Tensor, caches: Sequence[KeyValueCache] | None
    ) -> Tensor:
        if caches:
            self.reached[0] = caches[0].length + ids.shape[-1]
        return super()._last_hidden_state(
            ids, positions if caches else positions + self.reached[0], caches
        )


@held_out("GPT2", "huggingface/transformers, issue 143", "norm|gain|ln_")
class NormsStartFromNoise(GPT2):
    """Draws the gains and biases of its norms from normal(0, 0.02)."""

    @torch.no_grad()
    def _initialize(self) -> None:
        super()._initialize()
        for layer in self.modules():
            if isinstance(layer, nn.LayerNorm):
                layer.weight.normal_(std=0.02)
                layer.bias.normal_(std=0.02)
