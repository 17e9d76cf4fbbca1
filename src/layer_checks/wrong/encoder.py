# ruff: noqa: D102 - the docstring of each class says what its one method changes
"""Known wrong versions of the two encoder layers, made of the book's own parts."""

from torch import Tensor, nn
from torch.nn import functional

from layer_checks.definitions import WrongVersion
from layer_checks.wrong.layer_norm import AnnotatedTransformer
from transformer_layers import LayerNorm, MultiHeadAttention, PositionwiseFeedForward


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


class _PostNorm(_EncoderLayer):
    """A right one."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = self.norm1(x + self.attend(x, mask))
        return self.norm2(x + self.feed_forward(x))


class _PreNorm(_EncoderLayer):
    """A right one."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = x + self.attend(self.norm1(x), mask)
        return x + self.feed_forward(self.norm2(x))


class PreForPost(_PreNorm):
    """Normalizes before each sub-layer."""


class PostForPre(_PostNorm):
    """Normalizes after each residual sum."""


class ResidualOfProjectedQuery(_PostNorm):
    """Adds the projected query, as the notes do."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = self.norm1(self.self_attention.query_proj(x) + self.attend(x, mask))
        return self.norm2(x + self.feed_forward(x))


class NormOfSubLayer(_PostNorm):
    """Normalizes what a sub-layer gives and adds the input then."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = x + self.norm1(self.attend(x, mask))
        return x + self.norm2(self.feed_forward(x))


class NoResidual(_PostNorm):
    """Adds nothing."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = self.norm1(self.attend(x, mask))
        return self.norm2(self.feed_forward(x))


class OneNorm(_PostNorm):
    """Uses one norm twice."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.1) -> None:
        super().__init__(d_model, num_heads, d_ff, dropout)
        self.norm2 = self.norm1


class SecondNormMissing(_PostNorm):
    """Leaves the second sum as it is."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = self.norm1(x + self.attend(x, mask))
        return x + self.feed_forward(x)


class FeedsBareAttention(_PostNorm):
    """Gives the feed-forward network the attention's output alone, as the notes say."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        attended = self.attend(x, mask)
        normed = self.norm1(x + attended)
        return self.norm2(normed + self.feed_forward(attended))


class MaskIgnored(_PostNorm):
    """Takes a mask and does not hand it on."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return super().forward(x)


class UnbiasedDeviation(_PostNorm):
    """Normalizes with the unbiased deviation plus eps."""

    norm = AnnotatedTransformer


class DropsInEvaluation(_PostNorm):
    """Drops whether it trains or not."""

    def drop(self, x: Tensor) -> Tensor:
        return functional.dropout(x, self.dropout.p)


class DropoutIgnored(_PostNorm):
    """Takes the argument and does not use it."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.1) -> None:
        super().__init__(d_model, num_heads, d_ff, dropout=0.0)


class FoldsBatch(_PostNorm):
    """Takes every input for a batch of sequences."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        batch = x.shape[0]
        return super().forward(x.reshape(batch, -1, x.shape[-1]), mask).reshape(x.shape)


class PreResidualOfNormed(_PreNorm):
    """Adds the normalized input."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        normed = self.norm1(x)
        x = normed + self.attend(normed, mask)
        normed = self.norm2(x)
        return normed + self.feed_forward(normed)


class PreKeysNotNormed(_PreNorm):
    """Normalizes the queries alone."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = x + self.drop(self.self_attention(self.norm1(x), x, x, mask))
        return x + self.feed_forward(self.norm2(x))


class PreOneNorm(_PreNorm):
    """Uses one norm twice."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.1) -> None:
        super().__init__(d_model, num_heads, d_ff, dropout)
        self.norm2 = self.norm1


class PreSecondNormMissing(_PreNorm):
    """Gives the feed-forward network the sum as it is."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = x + self.attend(self.norm1(x), mask)
        return x + self.feed_forward(x)


class PreNoResidual(_PreNorm):
    """Adds nothing."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.feed_forward(self.norm2(self.attend(self.norm1(x), mask)))


class PreNormAtTheEnd(_PreNorm):
    """Normalizes the result too."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return functional.layer_norm(super().forward(x, mask), x.shape[-1:])


class PreParallel(_PreNorm):
    """Lets both sub-layers start from the input."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return x + self.attend(self.norm1(x), mask) + self.feed_forward(self.norm2(x))


class PreMaskIgnored(_PreNorm):
    """Takes a mask and does not hand it on."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return super().forward(x)


class PreDropsInEvaluation(_PreNorm):
    """Drops whether it trains or not."""

    def drop(self, x: Tensor) -> Tensor:
        return functional.dropout(x, self.dropout.p)


class PreDropoutIgnored(_PreNorm):
    """Takes the argument and does not use it."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.1) -> None:
        super().__init__(d_model, num_heads, d_ff, dropout=0.0)


_POST = "the notes' post, TransformerEncoderLayer"
_MASK_ADVICE = "hand the mask to the attention."
_NO_DROPOUT_ADVICE = "drop what each sub-layer gives, before it is added."
_DROPOUT_ADVICE = "drop in training only: pass the training flag."

WRONG_ENCODER_LAYERS = (
    WrongVersion(
        "pre-norm",
        "normalize after each residual sum: LayerNorm(x + f(x)).",
        PreForPost,
        "the Annotated Transformer, the_annotated_transformer.py, "
        "https://github.com/harvardnlp/annotated-transformer/issues/92",
    ),
    WrongVersion(
        "residual of the projected query",
        "add the input x itself, not the query that was projected from it.",
        ResidualOfProjectedQuery,
        _POST,
    ),
    WrongVersion(
        "norm of the sub-layer",
        "normalize the sum, LayerNorm(x + f(x)), not f(x) before it is added.",
        NormOfSubLayer,
    ),
    WrongVersion("no residual", "add the input of each sub-layer to its output.", NoResidual),
    WrongVersion("one norm for both", "give each sum a norm of its own.", OneNorm),
    WrongVersion("second norm missing", "normalize the second sum too.", SecondNormMissing),
    WrongVersion(
        "bare attention fed forward",
        "give the feed-forward network the normalized sum, not the attention's output alone.",
        FeedsBareAttention,
        "the GPT-2 notes, Feed-Forward Layer",
    ),
    WrongVersion("mask ignored", _MASK_ADVICE, MaskIgnored),
    WrongVersion(
        "unbiased deviation plus eps",
        "normalize by the biased variance, with eps under the root.",
        UnbiasedDeviation,
        "the Annotated Transformer, the_annotated_transformer.py",
    ),
    WrongVersion("dropout ignored", _NO_DROPOUT_ADVICE, DropoutIgnored),
    WrongVersion("dropout in evaluation", _DROPOUT_ADVICE, DropsInEvaluation),
    WrongVersion(
        "positions folded",
        "let the last two axes be (seq, d_model), whatever stands before them.",
        FoldsBatch,
        _POST,
    ),
)

WRONG_PRE_NORM_ENCODER_LAYERS = (
    WrongVersion(
        "post-norm",
        "normalize the input of each sub-layer, not the sum: x + f(LayerNorm(x)).",
        PostForPre,
    ),
    WrongVersion(
        "residual of the normalized input",
        "add x itself: the norm stands inside the residual branch.",
        PreResidualOfNormed,
    ),
    WrongVersion(
        "keys not normalized",
        "normalize once, and use the result for query, key and value.",
        PreKeysNotNormed,
    ),
    WrongVersion("one norm for both", "give each sub-layer a norm of its own.", PreOneNorm),
    WrongVersion(
        "second norm missing",
        "normalize the input of the feed-forward network too.",
        PreSecondNormMissing,
    ),
    WrongVersion("no residual", "add the input of each sub-layer to its output.", PreNoResidual),
    WrongVersion(
        "norm at the end",
        "leave the sum as it is: a stack of layers ends with one norm, a layer does not.",
        PreNormAtTheEnd,
    ),
    WrongVersion(
        "sub-layers in parallel",
        "let the feed-forward network start from the sum with the attention.",
        PreParallel,
    ),
    WrongVersion("mask ignored", _MASK_ADVICE, PreMaskIgnored),
    WrongVersion("dropout ignored", _NO_DROPOUT_ADVICE, PreDropoutIgnored),
    WrongVersion("dropout in evaluation", _DROPOUT_ADVICE, PreDropsInEvaluation),
)
