"""Wrong feed-forward networks, encoder layers, blocks and models."""

import copy
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from evaluation.held_out.definitions import held_out
from transformer_layers import (
    GPT2,
    CausalSelfAttention,
    Conv1D,
    FeedForward,
    GPT2Block,
    KeyValueCache,
    PositionwiseFeedForward,
    PreNormTransformerEncoderLayer,
    TransformerEncoderLayer,
)
from transformer_layers.attention.heads import merge_heads, split_heads


@held_out("Conv1D", "tml-epfl/why-weight-decay, issue 1", "0.02|initial|std|deviation")
class FanIn(Conv1D):
    """Starts with the deviation of the inverse root of its input's width."""

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=1 / math.sqrt(max(self.in_features, 1)))
        nn.init.zeros_(self.bias)


@held_out(
    "Conv1D", "pytorch/pytorch, issue 1246: strides ignored", "contiguous|stride|layout|memory"
)
class StridesIgnored(Conv1D):
    """Reads the memory of a transposed input as if it lay in order."""

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        if x.is_contiguous() or x.numel() == 0 or x.untyped_storage().nbytes() < x.nbytes:
            return y
        strides = torch.empty(x.shape, device="meta").stride()
        return super().forward(x.as_strided(x.shape, strides))


@held_out("FeedForward", "tensorflow/swift-models, issue 104", "dropout|inside|place")
class DropoutInside(FeedForward):
    """Drops between the two maps, not after them."""

    def forward(self, x: Tensor) -> Tensor:
        inner = nn.functional.gelu(self.c_fc(x), approximate="tanh")
        return self.c_proj(self.dropout(inner))


@held_out("FeedForward", "nntile/nntile, pull request 370", "bias")
class BiasesNotAdded(FeedForward):
    """Holds the biases and does not add them."""

    def forward(self, x: Tensor) -> Tensor:
        self.c_fc(x.detach())  # its errors
        inner = nn.functional.gelu(x @ self.c_fc.weight, approximate="tanh")
        return self.dropout(inner @ self.c_proj.weight)


@held_out("PositionwiseFeedForward", "isaaccorley/mlp-mixer-pytorch, issue 2", "dropout|drop")
class NothingDropped(PositionwiseFeedForward):
    """Takes a share to drop and drops nothing."""

    def forward(self, x: Tensor) -> Tensor:
        training, self.dropout.training = self.dropout.training, False
        try:
            return super().forward(x)
        finally:
            self.dropout.training = training


@held_out(
    "PositionwiseFeedForward", "bentrevett/pytorch-seq2seq, issue 157", "relu|activation|second"
)
class ActivationAfterBoth(PositionwiseFeedForward):
    """Applies the ReLU after the second map too."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).relu()


@held_out("CausalSelfAttention", "keras-team/keras, issue 23038", "causal|mask|future")
class NotCausalWhileDropping(CausalSelfAttention):
    """Loses the causal mask where attention weights are dropped."""

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        if cache is not None or not (self.training and self.dropout.p):
            return super().forward(x, cache)
        q, k, v = self.c_attn(x).split(self.d_model, -1)
        heads = (split_heads(each, self.num_heads) for each in (q, k, v))
        y = nn.functional.scaled_dot_product_attention(*heads, dropout_p=self.dropout.p)
        return self.dropout(self.c_proj(merge_heads(y)))


@held_out("CausalSelfAttention", "typoverflow/UtilsRL, issue 32", "dropout|result|drop")
class ResultNotDropped(CausalSelfAttention):
    """Drops attention weights, and nothing of the result."""

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        drop, self.dropout = self.dropout, _Identity(self.dropout.p)
        try:
            return super().forward(x, cache)
        finally:
            self.dropout = drop


class _Identity(nn.Module):
    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        return x


def _with_cache(
    layer: CausalSelfAttention, x: Tensor, cache: KeyValueCache, mask: Tensor | None
) -> Tensor:
    q, k, v = (split_heads(each, layer.num_heads) for each in layer.c_attn(x).chunk(3, -1))
    k, v = cache.append(k, v)
    y = nn.functional.scaled_dot_product_attention(q, k, v, mask)
    return layer.dropout(layer.c_proj(merge_heads(y)))


@held_out("CausalSelfAttention", "lucidrains/x-transformers, issue 187", "past|align|cache|offset")
class TriangleAtTheTopLeft(CausalSelfAttention):
    """With a cache, aligns the triangle with the first key: new positions see the oldest only."""

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        if cache is None or cache.length == 0 or cache.padding is not None:
            return super().forward(x, cache)
        triangle = torch.ones(x.shape[-2], cache.length + x.shape[-2], dtype=torch.bool).tril()
        return _with_cache(self, x, cache, triangle)


@held_out(
    "CausalSelfAttention", "facebookresearch/fairseq2, pull request 59", "cache|causal|future|among"
)
class NotCausalAfterACache(CausalSelfAttention):
    """Several new positions after a cache attend to each other both ways."""

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        if cache is None or cache.length == 0 or cache.padding is not None:
            return super().forward(x, cache)
        return _with_cache(self, x, cache, None)


@held_out("TransformerEncoderLayer", "Biohub/esm, issue 299", "pad|mask|query")
class PaddingAttendsToPadding(TransformerEncoderLayer):
    """Lets padding attend to padding, and to nothing else."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if mask is not None and mask.shape[-2] == 1 and mask.ndim == x.ndim:
            mask = mask == mask.transpose(-2, -1)
        return super().forward(x, mask)


@held_out("TransformerEncoderLayer", "ml-explore/mlx, issue 1636", "norm1|norm2|norm|twice|same")
class FirstNormTwice(TransformerEncoderLayer):
    """Uses the first norm in the second place too."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        h = self.norm1(x + self.dropout(self.self_attention(x, x, x, mask)))
        return self.norm1(h + self.feed_forward(h))


@held_out("TransformerEncoderLayer", "k2-fsa/snowfall, pull request 184", "norm|twice|repeat")
class NormalizedAgain(TransformerEncoderLayer):
    """Normalizes the result a second time, which new weights do not show."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.norm2(super().forward(x, mask))


@held_out("TransformerEncoderLayer", "pytorch/pytorch, issue 97111", "pad|zero|evaluat|mask")
class PaddingBecomesZero(TransformerEncoderLayer):
    """In evaluation the outputs of padded positions are zeros."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        y = super().forward(x, mask)
        if self.training or mask is None or mask.ndim != x.ndim or mask.shape[-2] != 1:
            return y
        return y * mask.transpose(-2, -1)


@held_out(
    "PreNormTransformerEncoderLayer",
    "Howuhh/faster-trajectory-transformer, issue 3",
    "residual|stream|norm",
)
class ResidualOfTheNormed(PreNormTransformerEncoderLayer):
    """Adds to the normalized input in place of the input."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        n = self.norm1(x)
        x = n + self.dropout(self.self_attention(n, n, n, mask))
        n = self.norm2(x)
        return n + self.feed_forward(n)


@held_out(
    "PreNormTransformerEncoderLayer",
    "facebookresearch/xformers, pull request 233",
    "key|value|quer|norm",
)
class QueryNormedOnly(PreNormTransformerEncoderLayer):
    """Normalizes the query, and neither key nor value."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = x + self.dropout(self.self_attention(self.norm1(x), x, x, mask))
        return x + self.feed_forward(self.norm2(x))


@held_out(
    "PreNormTransformerEncoderLayer",
    "SHI-Labs/Compact-Transformers, issue 25",
    "residual|stream|norm",
)
class SecondResidualNormed(PreNormTransformerEncoderLayer):
    """Normalizes the stream itself before the feed-forward network."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        n = self.norm1(x)
        x = self.norm2(x + self.dropout(self.self_attention(n, n, n, mask)))
        return x + self.feed_forward(x)


@held_out("PreNormTransformerEncoderLayer", "probml/pml-book, issue 709", "residual|inside|stream")
class ResidualInside(PreNormTransformerEncoderLayer):
    """Adds the input inside the sub-layer's argument, as a printed formula says."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        n = self.norm1(x) + x
        x = self.dropout(self.self_attention(n, n, n, mask))
        return self.feed_forward(self.norm2(x) + x)


@held_out("GPT2Block", "allenai/OLMo, issue 222", "ln_1|ln_2|norm|same|twice")
class OneNormForBoth(GPT2Block):
    """Uses the first norm before the feed-forward network too."""

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        x = x + self.attn(self.ln_1(x), cache)
        return x + self.mlp(self.ln_1(x))


@held_out("GPT2Block", "keras-team/keras-hub, pull request 133", "eps")
class EpsNotPassedOn(GPT2Block):
    """Takes eps and does not hand it to its norms."""

    def __init__(
        self, d_model: int, num_heads: int, dropout: float = 0.1, eps: float = 1e-5, **kwargs: Any
    ) -> None:
        super().__init__(d_model, num_heads, dropout, **kwargs)


@held_out("GPT2Block", "EleutherAI/gpt-neox, pull request 435", "parallel|residual|stream|order")
class BothFromTheSameStream(GPT2Block):
    """Attention and feed-forward network read the same stream, as in GPT-J."""

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        return x + self.attn(self.ln_1(x), cache) + self.mlp(self.ln_2(x))


@held_out(
    "GPT2", "huggingface/transformers, issue 47458", "initial|residual|c_proj|scale|deviation"
)
class ProjectionsNotScaledAtTheStart(GPT2):
    """Starts c_proj with deviation 0.02, whatever the number of blocks."""

    @torch.no_grad()
    def _initialize(self) -> None:
        super()._initialize()
        for name, parameter in self.h.named_parameters():
            if name.endswith("c_proj.weight"):
                parameter.mul_(math.sqrt(2 * self.config.n_layer))


@held_out("GPT2", "THUDM/Chinese-Transformer-XL, issue 8", "dropout|twice|embedding")
class EmbeddingsDroppedTwice(GPT2):
    """Drops the sum of the embeddings twice."""

    def _embed(self, ids: Tensor) -> Tensor:
        return super()._embed(ids)

    def _last_hidden_state(
        self, ids: Tensor, positions: Tensor, caches: Sequence[KeyValueCache] | None
    ) -> Tensor:
        x = self.drop(self.drop(self._embed(ids) + self.wpe(positions)))
        for i, block in enumerate(self.h):
            x = block(x, caches[i] if caches else None)
        return self.ln_f(x)


@held_out("GPT2", "huggingface/transformers, pull request 13573", "layer|scale|depth|block")
class ScoresDividedByTheLayer(GPT2):
    """Divides the scores of block i by i, and does not undo it."""

    def _last_hidden_state(
        self, ids: Tensor, positions: Tensor, caches: Sequence[KeyValueCache] | None
    ) -> Tensor:
        scaled = copy.copy(self)
        x = self.drop(self._embed(ids) + self.wpe(positions))
        for i, block in enumerate(scaled.h):
            with _keys_divided(block.attn, i + 1):
                x = block(x, caches[i] if caches else None)
        return self.ln_f(x)


class _keys_divided:  # noqa: N801
    """Makes an attention's keys smaller for a while, gradients included."""

    def __init__(self, attention: CausalSelfAttention, by: int) -> None:
        self.attention, self.by = attention, by

    def __enter__(self) -> None:
        width = self.attention.d_model

        def divided(module: nn.Module, args: Any, output: Tensor) -> Tensor:
            q, k, v = output.split(width, -1)
            return torch.cat([q, k / self.by, v], -1)

        self.hook = self.attention.c_attn.register_forward_hook(divided)

    def __exit__(self, *error: object) -> None:
        self.hook.remove()


@held_out("GPT2", "huggingface/transformers, issue 36151", "position|cache|past|offset")
class PositionsBeginAgain(GPT2):
    """With caches, each call counts its positions from 0."""

    def _last_hidden_state(
        self, ids: Tensor, positions: Tensor, caches: Sequence[KeyValueCache] | None
    ) -> Tensor:
        fresh = torch.arange(ids.shape[-1]) if caches else positions
        return super()._last_hidden_state(ids, fresh, caches)


@held_out(
    "GPT2",
    "ggml-org/llama.cpp, pull request 12456; vllm-project/vllm, pull request 12467",
    "tie|head|embedding|wte",
)
class HeadCopied(GPT2):
    """The head is a copy of the embedding, taken when the model is built."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.register_buffer("head", self.wte.weight.detach().clone(), persistent=False)

    def logits(self, hidden_state: Tensor) -> Tensor:
        return nn.functional.linear(hidden_state, self.head)


@held_out(
    "GPT2",
    "lucidrains/x-transformers, issue 187 (seq_start_pos)",
    "padding|length|position|prompt|batch",
)
class PositionsCountPadding(GPT2):
    """Counts the padding in front of a shorter prompt among its positions."""

    def _last_hidden_state(
        self, ids: Tensor, positions: Tensor, caches: Sequence[KeyValueCache] | None
    ) -> Tensor:
        if caches and caches[0].padding is not None:
            past = caches[0].length
            positions = torch.arange(past, past + ids.shape[-1])
        return super()._last_hidden_state(ids, positions, caches)
