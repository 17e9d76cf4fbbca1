"""Known wrong versions of the two encoder layers, made of the book's own parts."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from layer_checks.checks.encoder import (
    pre_norm_transformer_encoder_layer,
    transformer_encoder_layer,
)
from layer_checks.wrong import layer_norm
from transformer_layers import LayerNorm, MultiHeadAttention, PositionwiseFeedForward

_POST = "the notes' post, TransformerEncoderLayer"
_ANNOTATED = "the Annotated Transformer, the_annotated_transformer.py"
_DEVIATION_ADVICE = "normalize by the biased variance, with eps under the root."
_MASK_ADVICE = "hand the mask to the attention."
_NO_DROPOUT_ADVICE = "drop what each sub-layer gives, before it is added."
_DROPOUT_ADVICE = "drop in training only: pass the training flag."


class _EncoderLayer(nn.Module):
    """The parts, and the two sub-layers, of which each wrong version changes something."""

    norm: type[nn.Module] = LayerNorm

    def __init__(self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads, dropout)
        self.feed_forward = PositionwiseFeedForward(d_model, d_ff, dropout)
        self.norm1 = self.norm(d_model)
        self.norm2 = self.norm(d_model)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x: Tensor, mask: Tensor | None) -> Tensor:
        return self.drop(self.self_attention(x, x, x, mask))

    def drop(self, x: Tensor) -> Tensor:
        return self.dropout(x)


@transformer_encoder_layer.right_otherwise
class _PostNorm(_EncoderLayer):
    """A right one."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = self.norm1(x + self.attend(x, mask))
        return self.norm2(x + self.feed_forward(x))


@pre_norm_transformer_encoder_layer.right_otherwise
class _PreNorm(_EncoderLayer):
    """A right one."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = x + self.attend(self.norm1(x), mask)
        return x + self.feed_forward(self.norm2(x))


@transformer_encoder_layer.wrong(
    "normalize after each residual sum: LayerNorm(x + f(x)).",
    name="pre-norm",
    published="the Annotated Transformer, the_annotated_transformer.py, "
    "https://github.com/harvardnlp/annotated-transformer/issues/92",
)
class PreForPost(_PreNorm):
    """Normalizes before each sub-layer."""


@transformer_encoder_layer.wrong(
    "add the input x itself, not the query that was projected from it.", published=_POST
)
class ResidualOfTheProjectedQuery(_PostNorm):
    """Adds the projected query, as the notes do."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = self.norm1(self.self_attention.query_proj(x) + self.attend(x, mask))
        return self.norm2(x + self.feed_forward(x))


@transformer_encoder_layer.wrong(
    "normalize the sum, LayerNorm(x + f(x)), not f(x) before it is added.",
    name="norm of the sub-layer",
)
class NormOfSubLayer(_PostNorm):
    """Normalizes what a sub-layer gives and adds the input then."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = x + self.norm1(self.attend(x, mask))
        return x + self.norm2(self.feed_forward(x))


@transformer_encoder_layer.wrong("add the input of each sub-layer to its output.")
class NoResidual(_PostNorm):
    """Adds nothing."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = self.norm1(self.attend(x, mask))
        return self.norm2(self.feed_forward(x))


@transformer_encoder_layer.wrong("give each sum a norm of its own.")
class OneNormForBoth(_PostNorm):
    """Uses one norm twice."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.1) -> None:
        super().__init__(d_model, num_heads, d_ff, dropout)
        self.norm2 = self.norm1


@transformer_encoder_layer.wrong("normalize the second sum too.")
class SecondNormMissing(_PostNorm):
    """Leaves the second sum as it is."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = self.norm1(x + self.attend(x, mask))
        return x + self.feed_forward(x)


@transformer_encoder_layer.wrong(
    "give the feed-forward network the normalized sum, not the attention's output alone.",
    published="the GPT-2 notes, Feed-Forward Layer",
)
class BareAttentionFedForward(_PostNorm):
    """Gives the feed-forward network the attention's output alone, as the notes say."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        attended = self.attend(x, mask)
        normed = self.norm1(x + attended)
        return self.norm2(normed + self.feed_forward(attended))


@transformer_encoder_layer.wrong(_MASK_ADVICE)
class MaskIgnored(_PostNorm):
    """Takes a mask and does not hand it on."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return super().forward(x)


@transformer_encoder_layer.wrong(_DEVIATION_ADVICE, published=_ANNOTATED)
class UnbiasedDeviationPlusEps(_PostNorm):
    """Normalizes with the unbiased deviation plus eps."""

    norm = layer_norm.UnbiasedDeviationPlusEps


@transformer_encoder_layer.wrong(_NO_DROPOUT_ADVICE)
class DropoutIgnored(_PostNorm):
    """Takes the argument and does not use it."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.1) -> None:
        super().__init__(d_model, num_heads, d_ff, dropout=0.0)


@transformer_encoder_layer.wrong(_DROPOUT_ADVICE)
class DropoutInEvaluation(_PostNorm):
    """Drops whether it trains or not."""

    def drop(self, x: Tensor) -> Tensor:
        return functional.dropout(x, self.dropout.p)


@transformer_encoder_layer.wrong(
    "let the last two axes be (seq, d_model), whatever stands before them.", published=_POST
)
class PositionsFolded(_PostNorm):
    """Takes every input for a batch of sequences."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        batch = x.shape[0]
        return super().forward(x.reshape(batch, -1, x.shape[-1]), mask).reshape(x.shape)


@pre_norm_transformer_encoder_layer.wrong(
    "normalize the input of each sub-layer, not the sum: x + f(LayerNorm(x)).", name="post-norm"
)
class PostForPre(_PostNorm):
    """Normalizes after each residual sum."""


@pre_norm_transformer_encoder_layer.wrong(
    "add x itself: the norm stands inside the residual branch."
)
class ResidualOfTheNormalizedInput(_PreNorm):
    """Adds the normalized input."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        normed = self.norm1(x)
        x = normed + self.attend(normed, mask)
        normed = self.norm2(x)
        return normed + self.feed_forward(normed)


@pre_norm_transformer_encoder_layer.wrong(
    "normalize once, and use the result for query, key and value."
)
class KeysNotNormalized(_PreNorm):
    """Normalizes the queries alone."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = x + self.drop(self.self_attention(self.norm1(x), x, x, mask))
        return x + self.feed_forward(self.norm2(x))


@pre_norm_transformer_encoder_layer.wrong(
    "give each sub-layer a norm of its own.", name="one norm for both"
)
class PreOneNormForBoth(_PreNorm):
    """Uses one norm twice."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.1) -> None:
        super().__init__(d_model, num_heads, d_ff, dropout)
        self.norm2 = self.norm1


@pre_norm_transformer_encoder_layer.wrong(
    "normalize the input of the feed-forward network too.", name="second norm missing"
)
class PreSecondNormMissing(_PreNorm):
    """Gives the feed-forward network the sum as it is."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = x + self.attend(self.norm1(x), mask)
        return x + self.feed_forward(x)


@pre_norm_transformer_encoder_layer.wrong(
    "add the input of each sub-layer to its output.", name="no residual"
)
class PreNoResidual(_PreNorm):
    """Adds nothing."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.feed_forward(self.norm2(self.attend(self.norm1(x), mask)))


@pre_norm_transformer_encoder_layer.wrong(
    "leave the sum as it is: a stack of layers ends with one norm, a layer does not."
)
class NormAtTheEnd(_PreNorm):
    """Normalizes the result too."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return functional.layer_norm(super().forward(x, mask), x.shape[-1:])


@pre_norm_transformer_encoder_layer.wrong(
    "let the feed-forward network start from the sum with the attention.",
    name="sub-layers in parallel",
)
class PreParallel(_PreNorm):
    """Lets both sub-layers start from the input."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return x + self.attend(self.norm1(x), mask) + self.feed_forward(self.norm2(x))


@pre_norm_transformer_encoder_layer.wrong(
    _DEVIATION_ADVICE, name="unbiased deviation plus eps", published=_ANNOTATED
)
class PreUnbiasedDeviationPlusEps(_PreNorm):
    """Normalizes with the unbiased deviation plus eps."""

    norm = layer_norm.UnbiasedDeviationPlusEps


@pre_norm_transformer_encoder_layer.wrong(_MASK_ADVICE, name="mask ignored")
class PreMaskIgnored(_PreNorm):
    """Takes a mask and does not hand it on."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return super().forward(x)


@pre_norm_transformer_encoder_layer.wrong(_NO_DROPOUT_ADVICE, name="dropout ignored")
class PreDropoutIgnored(_PreNorm):
    """Takes the argument and does not use it."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.1) -> None:
        super().__init__(d_model, num_heads, d_ff, dropout=0.0)


@pre_norm_transformer_encoder_layer.wrong(_DROPOUT_ADVICE, name="dropout in evaluation")
class PreDropoutInEvaluation(_PreNorm):
    """Drops whether it trains or not."""

    def drop(self, x: Tensor) -> Tensor:
        return functional.dropout(x, self.dropout.p)


_STREAM_ADVICE = "drop what is added to the stream, not the stream: in twelve blocks 28 % is left."
_TWICE_ADVICE = "drop what a sub-layer gives once: the feed-forward network does so itself."
_BERT = "codertimo/BERT-pytorch, bert_pytorch/model/transformer.py"


@transformer_encoder_layer.wrong(_STREAM_ADVICE)
class ResidualStreamDropped(_PostNorm):
    """Drops the result of the layer, stream and all."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.drop(super().forward(x, mask))


@transformer_encoder_layer.wrong(_TWICE_ADVICE)
class FeedForwardDroppedTwice(_PostNorm):
    """Drops what the feed-forward network has dropped already."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = self.norm1(x + self.attend(x, mask))
        return self.norm2(x + self.drop(self.feed_forward(x)))


@pre_norm_transformer_encoder_layer.wrong(
    _STREAM_ADVICE, name="residual stream dropped", published=_BERT
)
class PreResidualStreamDropped(_PreNorm):
    """Drops the result of the layer, stream and all."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.drop(super().forward(x, mask))


@pre_norm_transformer_encoder_layer.wrong(_TWICE_ADVICE, name="feed forward dropped twice")
class PreFeedForwardDroppedTwice(_PreNorm):
    """Drops what the feed-forward network has dropped already."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = x + self.attend(self.norm1(x), mask)
        return x + self.drop(self.feed_forward(self.norm2(x)))


_SQUARE_ADVICE = "use what the mask holds: that it is square does not make it causal."
_HINT = (
    "torch, is_causal=True of nn.TransformerEncoderLayer, "
    "https://github.com/pytorch/pytorch/issues/96941"
)


def _causal_if_square(mask: Tensor | None) -> Tensor | None:
    return torch.ones_like(mask).tril() if mask is not None and mask.ndim == 2 else mask


@transformer_encoder_layer.wrong(_SQUARE_ADVICE, published=_HINT)
class SquareMaskTakenForCausal(_PostNorm):
    """Lets each position see those up to its own, whatever a mask of two axes holds."""

    def attend(self, x: Tensor, mask: Tensor | None) -> Tensor:
        return super().attend(x, _causal_if_square(mask))


@pre_norm_transformer_encoder_layer.wrong(
    _SQUARE_ADVICE, name="square mask taken for causal", published=_HINT
)
class PreSquareMaskTakenForCausal(_PreNorm):
    """Lets each position see those up to its own, whatever a mask of two axes holds."""

    def attend(self, x: Tensor, mask: Tensor | None) -> Tensor:
        return super().attend(x, _causal_if_square(mask))
