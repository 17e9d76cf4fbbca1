"""Known wrong versions of the two decoder layers, made of the book's own parts."""

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from layer_checks.checks.decoder import (
    pre_norm_transformer_decoder_layer,
    transformer_decoder_layer,
)
from layer_checks.kit.definitions import in_words
from transformer_layers import MultiHeadAttention, PositionwiseFeedForward
from transformer_layers.attention.memory import (
    DecoderCache,
    cached_cross_attention,
    cached_self_attention,
)

Step = TypeVar("Step", bound=Callable[..., Tensor | None])
SubLayer = Callable[[Tensor], Tensor]


class _DecoderLayer(nn.Module):
    """The parts, and the steps, of which each wrong version changes one."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads, dropout)
        self.cross_attention = MultiHeadAttention(d_model, num_heads, dropout)
        self.feed_forward = PositionwiseFeedForward(d_model, d_ff, dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache: DecoderCache | None = None,
    ) -> Tensor:
        x = self.add(x, self.norm1, lambda x: self.attend(x, mask, cache))
        x = self.add(x, self.norm2, lambda x: self.cross(x, memory, memory_mask, cache))
        return self.add(x, self.norm3, self.feed_forward)

    def add(self, x: Tensor, norm: nn.Module, sub_layer: SubLayer) -> Tensor:
        raise NotImplementedError

    def attend(self, x: Tensor, mask: Tensor | None, cache: DecoderCache | None) -> Tensor:
        if cache is not None:
            return self.drop(cached_self_attention(self.self_attention, x, cache))
        return self.drop(self.self_attention(x, x, x, mask))

    def cross(
        self, x: Tensor, memory: Tensor, mask: Tensor | None, cache: DecoderCache | None
    ) -> Tensor:
        if cache is not None:
            return self.drop(cached_cross_attention(self.cross_attention, x, memory, mask, cache))
        return self.drop(self.cross_attention(x, memory, memory, mask))

    def drop(self, x: Tensor) -> Tensor:
        return self.dropout(x)


@transformer_decoder_layer.right_otherwise
class _PostNorm(_DecoderLayer):
    """A right one."""

    def add(self, x: Tensor, norm: nn.Module, sub_layer: SubLayer) -> Tensor:
        return norm(x + sub_layer(x))


@pre_norm_transformer_decoder_layer.right_otherwise
class _PreNorm(_DecoderLayer):
    """A right one."""

    def add(self, x: Tensor, norm: nn.Module, sub_layer: SubLayer) -> Tensor:
        return x + sub_layer(norm(x))


def _in_both(
    step: str, advice: str, *, name: str | None = None, published: str | None = None
) -> Callable[[Step], Step]:
    """Declares, for both layers, a wrong version that has a function in place of one step."""

    def declared(wrong: Step) -> Step:
        named = name or in_words(wrong.__name__)
        changed = {step: wrong, "__doc__": wrong.__doc__}
        for layer, right in (
            (transformer_decoder_layer, _PostNorm),
            (pre_norm_transformer_decoder_layer, _PreNorm),
        ):
            version = type(wrong.__name__, (right,), changed)
            layer.wrong(advice, name=named, published=published)(version)
        return wrong

    return declared


@_in_both(
    "cross",
    "take keys and values of the cross-attention from the memory, the encoder's output.",
    published="keitakurita/Practical_NLP_in_PyTorch, deep_dives/transformer_from_scratch.ipynb, "
    "https://github.com/keitakurita/Practical_NLP_in_PyTorch/issues/1",
)
def memory_not_read(
    layer: _DecoderLayer,
    x: Tensor,
    memory: Tensor,
    mask: Tensor | None,
    cache: DecoderCache | None,
) -> Tensor:
    """Attends to its own stream again."""
    return layer.drop(layer.cross_attention(x, x, x, mask))


@_in_both(
    "cross",
    "ask with the decoder's positions, and find in the memory: queries from x, keys and values "
    "from the memory.",
    published="rexrex9/nlp_torchtext, https://github.com/rexrex9/nlp_torchtext/pull/2",
)
def queries_from_the_memory(
    layer: _DecoderLayer,
    x: Tensor,
    memory: Tensor,
    mask: Tensor | None,
    cache: DecoderCache | None,
) -> Tensor:
    """Asks with the memory and finds in its own stream."""
    return layer.drop(layer.cross_attention(memory, x, x, mask))


@_in_both(
    "cross",
    "hand the mask of the memory to the cross-attention: its padding is no word.",
    published="Keras' example of English-to-Spanish translation, "
    "https://github.com/keras-team/keras-io/pull/1997",
)
def memory_mask_ignored(
    layer: _DecoderLayer,
    x: Tensor,
    memory: Tensor,
    mask: Tensor | None,
    cache: DecoderCache | None,
) -> Tensor:
    """Takes a mask of the memory and does not hand it on."""
    return _DecoderLayer.cross(layer, x, memory, None, cache)


@_in_both(
    "cross",
    "let True mean may attend: the mask of the memory allows what torch's masks block.",
    published="torch, attn_mask of nn.MultiheadAttention, where it is meant",
)
def memory_mask_inverted(
    layer: _DecoderLayer,
    x: Tensor,
    memory: Tensor,
    mask: Tensor | None,
    cache: DecoderCache | None,
) -> Tensor:
    """Attends to the padding of the memory alone."""
    return _DecoderLayer.cross(layer, x, memory, None if mask is None else ~mask, cache)


@_in_both(
    "forward",
    "give each attention its own mask: that of x to the self-attention, that of the memory to the "
    "cross-attention.",
    published="Deep Learning with Python, 2nd edition, listing 11.36, "
    "https://github.com/fchollet/deep-learning-with-python-notebooks/issues/209",
)
def mask_of_x_for_the_memory(
    layer: _DecoderLayer,
    x: Tensor,
    memory: Tensor,
    mask: Tensor | None = None,
    memory_mask: Tensor | None = None,
    cache: DecoderCache | None = None,
) -> Tensor:
    """Hides from the cross-attention what is hidden from the self-attention."""
    return _DecoderLayer.forward(layer, x, memory, mask, mask, cache)


@_in_both(
    "attend",
    "hand the mask to the self-attention: a position must not see what follows it.",
    published="ESPnet 2, https://github.com/espnet/espnet/pull/1539",
)
def mask_ignored(
    layer: _DecoderLayer, x: Tensor, mask: Tensor | None, cache: DecoderCache | None
) -> Tensor:
    """Takes a mask of x and does not hand it on."""
    return _DecoderLayer.attend(layer, x, None, cache)


@_in_both(
    "attend",
    "let rows be queries: row i of a causal mask allows the columns up to i.",
)
def mask_transposed(
    layer: _DecoderLayer, x: Tensor, mask: Tensor | None, cache: DecoderCache | None
) -> Tensor:
    """Lets each position see itself and what follows."""
    return _DecoderLayer.attend(layer, x, None if mask is None else mask.mT, cache)


@_in_both(
    "attend",
    "use what the mask holds: that there is one does not make it causal.",
    name="any mask taken for causal",
    published="torch, is_causal=True of nn.TransformerDecoderLayer, a hint that may override the "
    "mask, https://github.com/pytorch/pytorch/issues/96941",
)
def any_mask_is_causal(
    layer: _DecoderLayer, x: Tensor, mask: Tensor | None, cache: DecoderCache | None
) -> Tensor:
    """Lets each position see those up to its own, whatever the mask holds."""
    if mask is not None:
        mask = torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool).tril()
    return _DecoderLayer.attend(layer, x, mask, cache)


@_in_both(
    "attend",
    "be causal where a causal mask is given, and nowhere else.",
    published="transformers 5.23.0, models/bart/modeling_bart.py: with attention by "
    "scaled_dot_product_attention, where it is meant",
)
def causal_without_a_mask(
    layer: _DecoderLayer, x: Tensor, mask: Tensor | None, cache: DecoderCache | None
) -> Tensor:
    """Lets each position see those up to its own where there is no mask."""
    if mask is None:
        mask = torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool).tril()
    return _DecoderLayer.attend(layer, x, mask, cache)


@_in_both(
    "attend",
    "attend to the keys and values of the cache.",
)
def cache_ignored(
    layer: _DecoderLayer, x: Tensor, mask: Tensor | None, cache: DecoderCache | None
) -> Tensor:
    """Takes a cache, and each position sees those of its own call alone."""
    causal = torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool).tril()
    return _DecoderLayer.attend(layer, x, mask if cache is None else causal, None)


@_in_both(
    "cross",
    "let attention give zeros where a mask hides all there is: a softmax over nothing is 0/0.",
    name="NaN where the memory is hidden",
    published="torch, nn.MultiheadAttention, https://github.com/pytorch/pytorch/pull/189045",
)
def nan_where_all_is_hidden(
    layer: _DecoderLayer,
    x: Tensor,
    memory: Tensor,
    mask: Tensor | None,
    cache: DecoderCache | None,
) -> Tensor:
    """Gives NaN to a position that may attend to no memory."""
    output = _DecoderLayer.cross(layer, x, memory, mask, cache)
    if mask is None:
        return output
    return output.masked_fill(~mask.any(dim=-1, keepdim=True), torch.nan)


@_in_both(
    "forward",
    "give each sub-layer a norm of its own: the second is for the cross-attention.",
    published="mlx, nn.TransformerDecoderLayer, https://github.com/ml-explore/mlx/issues/1636",
)
def first_norm_twice(
    layer: _DecoderLayer,
    x: Tensor,
    memory: Tensor,
    mask: Tensor | None = None,
    memory_mask: Tensor | None = None,
    cache: DecoderCache | None = None,
) -> Tensor:
    """Holds three norms and uses the first where the second belongs."""
    x = layer.add(x, layer.norm1, lambda x: layer.attend(x, mask, cache))
    x = layer.add(x, layer.norm1, lambda x: layer.cross(x, memory, memory_mask, cache))
    return layer.add(x, layer.norm3, layer.feed_forward)


@_in_both(
    "forward",
    "let the last two axes be (seq, d_model), whatever stands before them.",
)
def batch_axis_needed(
    layer: _DecoderLayer,
    x: Tensor,
    memory: Tensor,
    mask: Tensor | None = None,
    memory_mask: Tensor | None = None,
    cache: DecoderCache | None = None,
) -> Tensor:
    """Takes the first axis for that of the batch."""
    batch, seq, d_model = x.shape
    folded = x.reshape(batch, seq, d_model)
    return _DecoderLayer.forward(layer, folded, memory, mask, memory_mask, cache)


@_in_both("__init__", "give the cross-attention projections of its own.")
def one_attention_for_both(
    layer: _DecoderLayer, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.1
) -> None:
    """Uses one attention twice."""
    _DecoderLayer.__init__(layer, d_model, num_heads, d_ff, dropout)
    layer.cross_attention = layer.self_attention


@_in_both("__init__", "drop what each sub-layer gives, before it is added.")
def dropout_ignored(
    layer: _DecoderLayer, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.1
) -> None:
    """Takes the argument and does not use it."""
    _DecoderLayer.__init__(layer, d_model, num_heads, d_ff, 0.0)


@_in_both("drop", "drop in training only: pass the training flag.")
def dropout_in_evaluation(layer: _DecoderLayer, x: Tensor) -> Tensor:
    """Drops whether it trains or not."""
    return functional.dropout(x, layer.dropout.p)


@_in_both(
    "__init__",
    "leave the matrices as nn.Linear draws them.",
    name="initialized as nn.Transformer",
    published="torch, nn.Transformer, where it is meant",
)
def initialized_by_xavier(
    layer: _DecoderLayer, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.1
) -> None:
    """Starts from matrices within other bounds."""
    _DecoderLayer.__init__(layer, d_model, num_heads, d_ff, dropout)
    for parameter in layer.parameters():
        if parameter.ndim > 1:
            nn.init.xavier_uniform_(parameter)


@transformer_decoder_layer.wrong(
    "normalize after each residual sum: LayerNorm(x + f(x)).",
    name="pre-norm",
    published="the Annotated Transformer, the_annotated_transformer.py, "
    "https://github.com/harvardnlp/annotated-transformer/issues/92",
)
class PreForPost(_PreNorm):
    """Normalizes before each sub-layer."""


@transformer_decoder_layer.wrong(
    "normalize the sum, LayerNorm(x + f(x)), not f(x) before it is added.",
    name="norm of the sub-layer",
    published="keitakurita/Practical_NLP_in_PyTorch, deep_dives/transformer_from_scratch.ipynb, "
    "https://github.com/keitakurita/Practical_NLP_in_PyTorch/issues/1",
)
class NormOfSubLayer(_PostNorm):
    """Normalizes what a sub-layer gives and adds the input then."""

    def add(self, x: Tensor, norm: nn.Module, sub_layer: SubLayer) -> Tensor:
        return x + norm(sub_layer(x))


@transformer_decoder_layer.wrong(
    "ask the memory with the normalized sum, not with the self-attention's output alone.",
    published="mlx, nn.TransformerDecoderLayer, https://github.com/ml-explore/mlx/pull/3382",
)
class BareAttentionAsks(_PostNorm):
    """Asks the memory with what the self-attention gives, without residual and norm."""

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache: DecoderCache | None = None,
    ) -> Tensor:
        attended = self.attend(x, mask, cache)
        x = self.norm1(x + attended)
        x = self.norm2(x + self.cross(attended, memory, memory_mask, cache))
        return self.add(x, self.norm3, self.feed_forward)


@transformer_decoder_layer.wrong(
    "add the decoder's stream to what the cross-attention gives, not the memory.",
    published="georgepar/slp, https://github.com/georgepar/slp/pull/26",
)
class ResidualOfTheMemory(_PostNorm):
    """Adds the memory to what was found in it."""

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache: DecoderCache | None = None,
    ) -> Tensor:
        x = self.add(x, self.norm1, lambda x: self.attend(x, mask, cache))
        x = self.norm2(memory + self.cross(x, memory, memory_mask, cache))
        return self.add(x, self.norm3, self.feed_forward)


@pre_norm_transformer_decoder_layer.wrong(
    "normalize the input of each sub-layer, not the sum: x + f(LayerNorm(x)).", name="post-norm"
)
class PostForPre(_PostNorm):
    """Normalizes after each residual sum."""


@pre_norm_transformer_decoder_layer.wrong(
    "add x itself: the norm stands inside the residual branch."
)
class ResidualOfTheNormalizedInput(_PreNorm):
    """Adds the normalized input."""

    def add(self, x: Tensor, norm: nn.Module, sub_layer: SubLayer) -> Tensor:
        normed = norm(x)
        return normed + sub_layer(normed)


@pre_norm_transformer_decoder_layer.wrong(
    "ask the memory with the sum, the self-attention's output in it.", name="sub-layers in parallel"
)
class PreParallel(_PreNorm):
    """Lets both attentions start from the input."""

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache: DecoderCache | None = None,
    ) -> Tensor:
        attended = self.attend(self.norm1(x), mask, cache)
        x = x + attended + self.cross(self.norm2(x), memory, memory_mask, cache)
        return self.add(x, self.norm3, self.feed_forward)


@pre_norm_transformer_decoder_layer.wrong(
    "leave the sum as it is: a stack of layers ends with one norm, a layer does not."
)
class NormAtTheEnd(_PreNorm):
    """Normalizes the result too."""

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache: DecoderCache | None = None,
    ) -> Tensor:
        output = super().forward(x, memory, mask, memory_mask, cache)
        return functional.layer_norm(output, x.shape[-1:])
