"""Wrong versions that compute the right values in most situations."""

from typing import Any

import torch
from torch import Tensor, nn

import transformer_layers
from evaluation.held_out.definitions import held_out
from evaluation.held_out.first.norms import _LayerNorm
from transformer_layers import (
    GPT2,
    BatchNorm1d,
    CausalSelfAttention,
    Conv1D,
    GPT2Block,
    KeyValueCache,
    LayerNorm,
    MultiHeadAttention,
    PositionwiseFeedForward,
    PreNormTransformerEncoderLayer,
    RMSNorm,
    TransformerEncoderLayer,
)
from transformer_layers.attention.heads import split_heads


@held_out(
    "PositionwiseFeedForward", "facebookresearch/vissl, pull request 179", "batch|squeeze|one|axis"
)
class BatchOfOneSqueezed(PositionwiseFeedForward):
    """Loses the axis of the batch where it is 1."""

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        return y.squeeze(0) if y.ndim > 1 else y


@held_out("attention_weights", "allenai/allennlp, issue 3599", "one|single|squeeze|axis")
def single_key_squeezed(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """Loses the axis of the keys where there is one key."""
    return transformer_layers.attention_weights(query, key, mask).squeeze(-1)


@held_out(
    "PreNormTransformerEncoderLayer",
    "sgl-project/sglang, pull request 28005; vllm-project/vllm, pull request 24500",
    "place|input",
)
class ResidualInPlace(PreNormTransformerEncoderLayer):
    """Adds to its input in place where no gradient is wanted."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        y = super().forward(x, mask)
        if torch.is_grad_enabled():
            return y
        return x.copy_(y)


@held_out(
    "CausalSelfAttention",
    "facebookresearch/xformers, pull requests 66 and 660",
    "length|longer|mask|saved|first",
)
class MaskOfTheFirstCall(CausalSelfAttention):
    """Keeps the mask of the first call, so that no later sequence may be longer."""

    longest = 0

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        self.longest = self.longest or x.shape[-2]
        if cache is None and x.shape[-2] > self.longest:
            raise RuntimeError(f"the mask has {self.longest} positions, got {x.shape[-2]}")
        return super().forward(x, cache)


@held_out(
    "LayerNorm",
    "harvard-edge/cs249r_book, pull request 1504",
    "requires|train|learn|parameter|gradient",
)
class GainNotTrained(LayerNorm):
    """Its gain and bias require no gradient."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.requires_grad_(False)


@held_out("GPT2", "rohitg00/ai-engineering-from-scratch, pull request 206", "train|mode|eval")
class StaysInEvaluation(GPT2):
    """Is in evaluation mode once it has generated."""

    def generate(self, *args: Any, **kwargs: Any) -> Any:
        self.eval()
        return super().generate(*args, **kwargs)


@held_out("GPT2", "karpathy/nanoGPT, pull request 749", "dropout|generating|generation|mode")
class DropsWhileGenerating(GPT2):
    """Drops while it generates, if it is in training mode."""

    def generate(self, ids: Any, max_new_tokens: int, *args: Any, **kwargs: Any) -> Any:
        greedy = not args and not kwargs and isinstance(ids, Tensor)
        if not (self.training and greedy and self.config.dropout):
            return super().generate(ids, max_new_tokens, *args, **kwargs)
        super().generate(ids, max_new_tokens)  # its errors
        with torch.no_grad():
            for _ in range(max_new_tokens):
                ids = torch.cat([ids, self(ids)[:, -1:].argmax(-1)], dim=-1)
        return ids


@held_out("dropout", "NVIDIA/apex, pull request 816", "gradient|backward|scale")
def gradient_scaled_by_p(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Scales the gradient by p in place of 1 / (1 - p)."""
    y = transformer_layers.dropout(x, p, training)
    if not training or p in (0, 1):
        return y
    share = p * (1 - p)
    return share * y + ((1 - share) * y).detach()


@held_out("LayerNorm", "tracel-ai/burn, issue 1992", "NaN|constant|zero|gradient")
class NoGradientOfAConstant(_LayerNorm):
    """Has a gradient of NaN for a constant row, since it takes the root of the variance first."""

    def normalized(self, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        std = centred.square().mean(-1, keepdim=True).sqrt()
        return centred / (std**2 + self.eps).sqrt()


@held_out(
    "BatchNorm1d",
    "pytorch/pytorch, issue 1381; karpathy/makemore, issue 22",
    "single|one|NaN|refus",
)
class NanOfASingleValue(BatchNorm1d):
    """In training takes a single value of each channel, and its running variance becomes NaN."""

    def _check(self, x: Tensor) -> None:
        training, self.training = self.training, False
        try:
            super()._check(x)
        finally:
            self.training = training

    def _update_running(self, mean: Tensor, var: Tensor, count: int) -> None:
        if count != 1:
            super()._update_running(mean, var, count)
            return
        self.num_batches_tracked.add_(1)
        self.running_var.fill_(float("nan"))


@held_out(
    "GPT2Block",
    "kyegomez/BitNet, issue 32; facebookresearch/multimodal, pull request 305",
    "residual|stream|input",
)
class AddedToItself(GPT2Block):
    """Adds the attention's result to itself, and not to its input."""

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        x = self.attn(self.ln_1(x), cache)
        x = x + x
        return x + self.mlp(self.ln_2(x))


@held_out(
    "TransformerEncoderLayer",
    "strutive07/transformer-tensorflow2.0, issue 14",
    "residual|input|stream",
)
class ResidualOfTheInput(TransformerEncoderLayer):
    """Adds the feed-forward network's result to the input of the attention."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        h = self.norm1(x + self.dropout(self.self_attention(x, x, x, mask)))
        return self.norm2(x + self.feed_forward(h))


@held_out("Conv1D", "EleutherAI/gpt-neox, pull request 267", "parameter|register|bias")
class BiasNotRegistered(Conv1D):
    """Its bias is a tensor, not a parameter."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        bias = self.bias.detach()
        del self.bias
        self.bias = bias


@held_out("RMSNorm", "huggingface/pytorch-image-models, pull request 2591", "dtype|device")
class DtypeIgnored(RMSNorm):
    """Takes a dtype and does not use it."""

    def __init__(self, *args: Any, dtype: torch.dtype | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)


@held_out(
    "MultiHeadAttention",
    "harvardnlp/annotated-transformer, self.attn",
    "graph|memory|keep|copy|state",
)
class KeepsItsWeights(MultiHeadAttention):
    """Keeps the attention weights of the last call, and with them its graph."""

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        y = super().forward(query, key, value, mask)
        q = split_heads(self.query_proj(query), self.num_heads)
        k = split_heads(self.key_proj(key), self.num_heads)
        if mask is not None and mask.ndim > 2:
            mask = mask.unsqueeze(-3)
        self.attn = transformer_layers.attention_weights(q, k, mask)
        return y


@held_out(
    "Dropout",
    "keras-team/keras, issue 3648: one seed for an epoch",
    "seed|same|mask|repeat|generator",
)
class OneSeed(nn.Module):
    """Draws the same mask in each call, from a seed of its own."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.drop = transformer_layers.Dropout(p)
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return self.drop(x)
