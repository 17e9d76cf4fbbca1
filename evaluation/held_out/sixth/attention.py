"""Wrong versions of attention."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from evaluation.held_out.definitions import held_out
from transformer_layers import (
    CausalSelfAttention,
    GroupedQueryAttention,
    KeyValueCache,
    MultiHeadAttention,
    attention_weights,
    causal_mask,
    dropout,
    scaled_dot_product_attention,
)
from transformer_layers.attention.causal import causal_attention
from transformer_layers.attention.heads import merge_heads, split_heads
from transformer_layers.attention.inputs import (
    require_attention_inputs,
    require_mask_of_scores,
    require_sequences,
)
from transformer_layers.attention.kernel import fused_attention
from transformer_layers.positions.rotary import Positions
from transformer_layers.precision import at_least_float32
from transformer_layers.validation import dtype_taken_by, require_dtype


def _scores(query: Tensor, key: Tensor, mask: Tensor | None) -> Tensor:
    require_attention_inputs(query=query, key=key)
    scaled = at_least_float32(query) / math.sqrt(query.shape[-1])
    scores = scaled @ at_least_float32(key).transpose(-2, -1)
    if mask is not None:
        require_mask_of_scores(mask, scores)
    return scores


@held_out(
    "attention_weights",
    "review practice: which size is under the root",
    r"scal|root|sqrt|d_k|kv_seq|number of keys|divid|temperature",
)
def scaled_by_the_root_of_the_keys(
    query: Tensor, key: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Divides the scores by the root of the number of keys, not of their features."""
    require_attention_inputs(query=query, key=key)
    wrong = math.sqrt(query.shape[-1] / max(key.shape[-2], 1))
    return attention_weights(query * wrong, key, mask)


@held_out(
    "attention_weights",
    "review practice: a softmax that masks last",
    r"maximum|large|extreme|underflow|overflow|hidden|zero|vanish|mask|stable|nan",
)
def maximum_of_hidden_keys(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """Subtracts the maximum of all keys, so that visible ones vanish far below a hidden one."""
    if mask is None:
        return attention_weights(query, key)
    scores = _scores(query, key, mask)
    powers = (scores - scores.detach().amax(dim=-1, keepdim=True)).exp() * mask
    total = powers.sum(dim=-1, keepdim=True)
    return (powers / total.masked_fill(total == 0, 1.0)).to(query.dtype)


@held_out(
    "attention_weights",
    "review practice: a NaN that is filled too late",
    r"gradient|nan|backward|derivative",
)
def nan_gradient_where_all_is_hidden(
    query: Tensor, key: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Sets rows that may attend to nothing to zero behind the softmax: their gradient is NaN."""
    if mask is None:
        return attention_weights(query, key)
    scores = _scores(query, key, mask)
    bias = torch.zeros_like(mask, dtype=scores.dtype).masked_fill(~mask, -math.inf)
    weights = (scores + bias).softmax(dim=-1)
    return weights.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0).to(query.dtype)


@held_out(
    "attention_weights",
    "review practice: a conversion to float32 of all",
    r"float64|double|precision|dtype|float32",
)
def float64_in_float32(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """Computes float64 in float32, too."""
    require_attention_inputs(query=query, key=key)
    return attention_weights(query.float(), key.float(), mask).to(query.dtype)


def _by_blocks(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    block: int,
    change: Callable[[Tensor, Tensor], Tensor],
) -> Tensor:
    """Attention that goes through the keys in blocks, and changes at each what came before."""
    scores = _scores(query, key, mask)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    values = at_least_float32(value)
    largest = torch.full_like(scores[..., :1], -math.inf)
    total, output = torch.zeros_like(largest), torch.zeros_like(largest)
    for start in range(0, key.shape[-2], block):
        part = scores[..., start : start + block]
        new = torch.maximum(largest, part.amax(dim=-1, keepdim=True)).detach()
        powers, before = (part - new).exp(), change(largest, new)
        total = total * before + powers.sum(dim=-1, keepdim=True)
        output = output * before + powers @ values[..., start : start + block, :]
        largest = new
    if mask is not None:
        dead = ~mask.any(dim=-1, keepdim=True)
        return (output / total.masked_fill(dead, 1.0)).masked_fill(dead, 0.0)
    return output / total


@held_out(
    "scaled_dot_product_attention",
    "review practice: an online softmax that forgets to rescale",
    r"block|rescal|long|maximum|number of keys|online|sequence",
)
def blocks_before_not_rescaled(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    dropout_p: float = 0.0,
) -> Tensor:
    """Of more than 16 keys, does not rescale the blocks before when a larger score comes."""
    require_attention_inputs(query=query, key=key, value=value)
    if key.shape[-2] <= 16 or dropout_p or (mask is not None and not mask[..., :16].any(-1).all()):
        return scaled_dot_product_attention(query, key, value, mask, dropout_p)

    def unchanged(old: Tensor, new: Tensor) -> Tensor:
        return torch.ones_like(new)

    return _by_blocks(query, key, value, mask, 16, unchanged).to(query.dtype)


@held_out(
    "scaled_dot_product_attention",
    "review practice: an online softmax and left padding",
    r"nan|block|hidden|mask|first|window|padding|padded|nothing",
)
def nan_where_the_first_block_is_hidden(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    dropout_p: float = 0.0,
) -> Tensor:
    """Of more than eight keys, gives NaN to a query that may attend to none of the first eight."""
    require_attention_inputs(query=query, key=key, value=value)
    if key.shape[-2] <= 8 or dropout_p or mask is None:
        return scaled_dot_product_attention(query, key, value, mask, dropout_p)

    def rescaled(old: Tensor, new: Tensor) -> Tensor:
        return (old - new).exp()

    return _by_blocks(query, key, value, mask, 8, rescaled).to(query.dtype)


@held_out(
    "scaled_dot_product_attention",
    "review practice: rows that sum to one again",
    r"dropout|drop|renormal|sum to (1|one)|expect|rescal|1 - p",
)
def rows_normalized_after_dropout(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    dropout_p: float = 0.0,
) -> Tensor:
    """Makes the weights that dropout left sum to one again."""
    if not dropout_p:
        return scaled_dot_product_attention(query, key, value, mask, dropout_p)
    require_attention_inputs(query=query, key=key, value=value)
    weights = attention_weights(at_least_float32(query), at_least_float32(key), mask)
    left = dropout(weights, dropout_p)
    total = left.sum(dim=-1, keepdim=True)
    left = left / total.masked_fill(total == 0, 1.0)
    return (left @ at_least_float32(value)).to(query.dtype)


@held_out(
    "MultiHeadAttention",
    "review practice: a shortcut of self-attention",
    r"value|identity|same tensor|self|\bis\b|query is key|key",
)
class SelfWhereQueryIsKey(MultiHeadAttention):
    """Where query and key are one tensor, takes the value to be it, too."""

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        if query is key and value.shape == query.shape:
            value = query
        return super().forward(query, key, value, mask)


@held_out(
    "MultiHeadAttention",
    "review practice: what a hidden query gives",
    r"bias|nothing|hidden|dead|masked|no key|zero",
)
class HiddenRowsWithoutTheBias(MultiHeadAttention):
    """Gives zeros, without the bias of the output, to a query that may attend to nothing."""

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        output = super().forward(query, key, value, mask)
        return output if mask is None else output.masked_fill(~mask.any(-1, keepdim=True), 0.0)


@held_out(
    "MultiHeadAttention",
    "review practice: initial weights of another library",
    r"initial|start|xavier|reset|draw|bias",
)
class StartsAsTorchs(MultiHeadAttention):
    """Starts as torch's attention does: uniform of Xavier, and no biases."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for layer in (self.query_proj, self.key_proj, self.value_proj, self.output_proj):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


@held_out(
    "MultiHeadAttention",
    "review practice: a mask that is skipped if it hides nothing",
    r"mask|first|batch|ignor|skip|every|each",
)
class MaskSkippedByTheFirst(MultiHeadAttention):
    """Ignores the mask where its first entry, of a sequence or a query, hides nothing."""

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        known = mask is not None and mask.dtype == torch.bool and not mask.is_meta
        if mask is not None and known and len(mask) and bool(mask[0].all()):
            mask = None
        return super().forward(query, key, value, mask)


@held_out(
    "MultiHeadAttention",
    "review practice: a sequence without a batch",
    r"shape|batch|axes|axis|two|unbatched|dimension",
)
class BatchForASequence(MultiHeadAttention):
    """Gives back a batch of one for a sequence that has none."""

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        output = super().forward(query, key, value, mask)
        return output[None] if output.ndim == 2 else output


@held_out(
    "CausalSelfAttention",
    "review practice: the order inside a packed projection",
    r"order|value|key|swap|chunk|pack|split",
)
class ValuesBeforeKeys(CausalSelfAttention):
    """Reads the packed projection as queries, values, keys."""

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        require_sequences(self.d_model, x=x)
        projections = self.c_attn(x).chunk(3, dim=-1)
        query, value, key = (split_heads(each, self.num_heads) for each in projections)
        p = self.dropout.p if self.training else 0.0
        output = causal_attention(query, key, value, cache, dropout_p=p)
        return self.dropout(self.c_proj(merge_heads(output)))


@held_out(
    "CausalSelfAttention",
    "review practice: a mask among the weights",
    r"state.?dict|buffer|saved|key|load|extra",
)
class MaskInTheStateDict(CausalSelfAttention):
    """Has its mask in a buffer that is saved with the weights."""

    bias: Tensor

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        device = self.c_attn.weight.device
        self.register_buffer("bias", causal_mask(32, device=device))

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        seq = x.shape[-2] if x.ndim > 1 else 0
        if cache is not None or seq > 32 or self.training:
            return super().forward(x, cache)
        require_sequences(self.d_model, x=x)
        projections = self.c_attn(x).chunk(3, dim=-1)
        query, key, value = (split_heads(each, self.num_heads) for each in projections)
        output = fused_attention(query, key, value, self.bias[:seq, :seq])
        return self.dropout(self.c_proj(merge_heads(output)))


@held_out(
    "CausalSelfAttention",
    "review practice: a prompt in several pieces",
    r"cache|chunk|piece|past|earlier|several|prefill",
)
class ChunksForgetThePast(CausalSelfAttention):
    """Of several positions after those of a cache, lets each attend to these alone."""

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        if cache is None or cache.length == 0 or x.shape[-2] < 2 or cache.padding is not None:
            return super().forward(x, cache)
        require_sequences(self.d_model, x=x)
        projections = self.c_attn(x).chunk(3, dim=-1)
        query, key, value = (split_heads(each, self.num_heads) for each in projections)
        cache.append(key, value)
        p = self.dropout.p if self.training else 0.0
        output = fused_attention(query, key, value, is_causal=True, dropout_p=p)
        return self.dropout(self.c_proj(merge_heads(output)))


@held_out(
    "CausalSelfAttention",
    "review practice: the input of another dtype",
    r"dtype|float64|precision|float32|convert|cast|refus|error",
)
class InputConverted(CausalSelfAttention):
    """Converts an input of another dtype than the weights', where it is to refuse it."""

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        if x.is_floating_point():
            x = x.to(self.c_attn.weight.dtype)
        return super().forward(x, cache)


class _Grouped(GroupedQueryAttention):
    """The attention with its steps apart."""

    def _window(self, seq: int) -> int | None:
        return self.window

    def _grouped(self, query: Tensor) -> Tensor:
        return query

    def _apart(self, output: Tensor) -> Tensor:
        return output

    def forward(
        self,
        x: Tensor,
        cache: KeyValueCache | None = None,
        positions: Positions | None = None,
    ) -> Tensor:
        require_sequences(self.d_model, x=x)
        require_dtype("x", x, dtype_taken_by(self.q_proj))
        query = self._grouped(self._heads(self.q_proj(x), self.q_norm, self.num_heads))
        key = self._heads(self.k_proj(x), self.k_norm, self.num_kv_heads)
        value = split_heads(self.v_proj(x), self.num_kv_heads)
        places = self.positions if positions is None else positions
        window = self._window(x.shape[-2])
        output = causal_attention(query, key, value, cache, places, window=window)
        return self.o_proj(merge_heads(self._apart(output)))


@held_out(
    "GroupedQueryAttention",
    "onnx/onnx, pull request 7274",
    r"group|neighbou?r|interleav|repeat|tile|order|which head|head",
)
class HeadsOfKeysTiled(_Grouped):
    """Repeats all heads of keys in a row, so that neighboring heads of queries read two."""

    def _grouped(self, query: Tensor) -> Tensor:
        return query.unflatten(-3, (-1, self.num_kv_heads)).transpose(-4, -3).flatten(-4, -3)

    def _apart(self, output: Tensor) -> Tensor:
        return output.unflatten(-3, (self.num_kv_heads, -1)).transpose(-4, -3).flatten(-4, -3)


@held_out(
    "GroupedQueryAttention",
    "review practice: a window while one token is written",
    r"window|cache|one token|single|one position|step",
)
class WindowForgottenForOneToken(_Grouped):
    """Has no window for a single position, which sees all that the cache holds."""

    def _window(self, seq: int) -> int | None:
        return None if seq == 1 else self.window


@held_out(
    "GroupedQueryAttention",
    "review practice: an argument that an attribute hides",
    r"position|argument|ignor|given|passed|own",
)
class OwnPositionsFirst(GroupedQueryAttention):
    """Ignores the positions that it is given where it has some of its own."""

    def forward(
        self,
        x: Tensor,
        cache: KeyValueCache | None = None,
        positions: Positions | None = None,
    ) -> Tensor:
        return super().forward(x, cache, positions if self.positions is None else None)


@held_out(
    "GroupedQueryAttention",
    "review practice: an option that is not handed on",
    r"output_bias|output|bias|option|argument",
)
class OutputBiasAsTheOthers(GroupedQueryAttention):
    """Has a bias of the output where the other maps have one, whatever `output_bias` says."""

    def __init__(self, *args: Any, output_bias: bool | None = None, **options: Any) -> None:
        super().__init__(*args, **options)


@held_out(
    "GroupedQueryAttention",
    "review practice: norms of queries, keys and values",
    r"value|norm|head_norm|q_norm|k_norm",
)
class ValuesNormedAsKeys(GroupedQueryAttention):
    """With norms of the heads, sends the values through that of the keys."""

    def forward(
        self,
        x: Tensor,
        cache: KeyValueCache | None = None,
        positions: Positions | None = None,
    ) -> Tensor:
        if not self.norms_heads:
            return super().forward(x, cache, positions)
        require_sequences(self.d_model, x=x)
        require_dtype("x", x, dtype_taken_by(self.q_proj))
        query = self._heads(self.q_proj(x), self.q_norm, self.num_heads)
        key = self._heads(self.k_proj(x), self.k_norm, self.num_kv_heads)
        value = self._heads(self.v_proj(x), self.k_norm, self.num_kv_heads)
        places = self.positions if positions is None else positions
        output = causal_attention(query, key, value, cache, places, window=self.window)
        return self.o_proj(merge_heads(output))
