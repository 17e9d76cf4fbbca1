# ruff: noqa: D102 - the docstring of each class says what its one method changes
"""Known wrong versions of `GPT2Block`, made of the book's own parts."""

from torch import Tensor, nn
from torch.nn import functional

from layer_checks.definitions import WrongVersion
from layer_checks.wrong.causal_self_attention import NotCausal
from layer_checks.wrong.feed_forward import ExactGelu
from transformer_layers import FeedForward, GPT2Block, KeyValueCache


class PostNorm(GPT2Block):
    """Normalizes after each residual sum."""

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        x = self.ln_1(x + self.attn(x, cache))
        return self.ln_2(x + self.mlp(x))


class NormOfSubLayer(GPT2Block):
    """Normalizes what a sub-layer gives and adds the input then."""

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        x = x + self.ln_1(self.attn(x, cache))
        return x + self.ln_2(self.mlp(x))


class OneNorm(GPT2Block):
    """Uses the first norm twice."""

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        x = x + self.attn(self.ln_1(x), cache)
        return x + self.mlp(self.ln_1(x))


class SecondNormMissing(GPT2Block):
    """Gives the feed-forward layer the sum as it is."""

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        x = x + self.attn(self.ln_1(x), cache)
        return x + self.mlp(x)


class NormAtTheEnd(GPT2Block):
    """Normalizes the result too."""

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        return functional.layer_norm(super().forward(x, cache), x.shape[-1:])


class ResidualOfNormed(GPT2Block):
    """Adds the normalized input."""

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        normed = self.ln_1(x)
        x = normed + self.attn(normed, cache)
        normed = self.ln_2(x)
        return normed + self.mlp(normed)


class NoResidual(GPT2Block):
    """Adds nothing."""

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        return self.mlp(self.ln_2(self.attn(self.ln_1(x), cache)))


class SecondResidualMissing(GPT2Block):
    """Adds nothing to what the feed-forward layer gives."""

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        x = x + self.attn(self.ln_1(x), cache)
        return self.mlp(self.ln_2(x))


class SecondResidualOfInput(GPT2Block):
    """Adds the block's input to what the feed-forward layer gives."""

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        attended = x + self.attn(self.ln_1(x), cache)
        return x + self.mlp(self.ln_2(attended))


class Parallel(GPT2Block):
    """Lets both sub-layers start from the input."""

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        return x + self.attn(self.ln_1(x), cache) + self.mlp(self.ln_2(x))


class FeedsBareAttention(GPT2Block):
    """Gives the feed-forward layer the attention's output alone, as the notes say."""

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        attended = self.attn(self.ln_1(x), cache)
        return x + attended + self.mlp(self.ln_2(attended))


class WithExactGelu(GPT2Block):
    """Activates with the exact GELU."""

    def __init__(
        self, d_model: int, num_heads: int, dropout: float = 0.1, eps: float = 1e-5
    ) -> None:
        super().__init__(d_model, num_heads, dropout, eps)
        self.add_module("mlp", ExactGelu(d_model, dropout=dropout))


class WithNotCausal(GPT2Block):
    """Lets every position see all others."""

    def __init__(
        self, d_model: int, num_heads: int, dropout: float = 0.1, eps: float = 1e-5
    ) -> None:
        super().__init__(d_model, num_heads, dropout, eps)
        self.add_module("attn", NotCausal(d_model, num_heads, dropout))


class TwiceAsWide(GPT2Block):
    """Widens to 2 d_model."""

    def __init__(
        self, d_model: int, num_heads: int, dropout: float = 0.1, eps: float = 1e-5
    ) -> None:
        super().__init__(d_model, num_heads, dropout, eps)
        self.mlp = FeedForward(d_model, 2 * d_model, dropout)


class SmallerEps(GPT2Block):
    """Has another default for eps."""

    def __init__(
        self, d_model: int, num_heads: int, dropout: float = 0.1, eps: float = 1e-6
    ) -> None:
        super().__init__(d_model, num_heads, dropout, eps)


class EpsIgnored(GPT2Block):
    """Takes the argument and does not use it."""

    def __init__(
        self, d_model: int, num_heads: int, dropout: float = 0.1, eps: float = 1e-5
    ) -> None:
        super().__init__(d_model, num_heads, dropout)
        self.ln_1, self.ln_2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)


class DropoutIgnored(GPT2Block):
    """Takes the argument and does not use it."""

    def __init__(
        self, d_model: int, num_heads: int, dropout: float = 0.1, eps: float = 1e-5
    ) -> None:
        super().__init__(d_model, num_heads, 0.0, eps)


class DropsInEvaluation(GPT2Block):
    """Drops whether it trains or not."""

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        p = 0.0 if self.training else self.mlp.dropout.p  # in training both drop by themselves
        x = x + functional.dropout(self.attn(self.ln_1(x), cache), p)
        return x + functional.dropout(self.mlp(self.ln_2(x)), p)


class CacheIgnored(GPT2Block):
    """Takes a cache and does not hand it on."""

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        return super().forward(x)


WRONG_GPT2_BLOCKS = (
    WrongVersion(
        "post-norm",
        "normalize the input of each sub-layer, not the sum: x + f(LayerNorm(x)).",
        PostNorm,
        "GPT-1 and the 2017 Transformer, where it is meant",
    ),
    WrongVersion(
        "norm of the sub-layer",
        "normalize what goes into a sub-layer, not what comes out of it.",
        NormOfSubLayer,
    ),
    WrongVersion("one norm for both", "give each sub-layer a norm of its own.", OneNorm),
    WrongVersion(
        "second norm missing",
        "normalize the input of the feed-forward layer too.",
        SecondNormMissing,
    ),
    WrongVersion(
        "norm at the end",
        "leave the sum as it is: a stack of blocks ends with one norm, a block does not.",
        NormAtTheEnd,
    ),
    WrongVersion(
        "residual of the normalized input",
        "add x itself: the norm stands inside the residual branch.",
        ResidualOfNormed,
    ),
    WrongVersion("no residual", "add the input of each sub-layer to its output.", NoResidual),
    WrongVersion(
        "second residual missing",
        "add the sum with the attention to what the feed-forward layer gives.",
        SecondResidualMissing,
    ),
    WrongVersion(
        "second residual of the input",
        "add the sum with the attention, not the block's input, to what the feed-forward layer "
        "gives.",
        SecondResidualOfInput,
    ),
    WrongVersion(
        "sub-layers in parallel",
        "let the feed-forward layer start from the sum with the attention.",
        Parallel,
        "GPT-J and GPT-NeoX, where it is meant",
    ),
    WrongVersion(
        "bare attention fed forward",
        "give the feed-forward layer the normalized sum, not the attention's output alone.",
        FeedsBareAttention,
        "the GPT-2 notes, Feed-Forward Layer",
    ),
    WrongVersion(
        "exact GELU",
        "activate with the tanh form: GPT-2's weights were trained with it.",
        WithExactGelu,
        "nanoGPT, model.py, https://github.com/karpathy/nanoGPT/pull/274",
    ),
    WrongVersion(
        "not causal", "mask the scores: a position must not see what follows it.", WithNotCausal
    ),
    WrongVersion(
        "inner width of 2 d_model", "let the inner width be four times d_model.", TwiceAsWide
    ),
    WrongVersion("eps of 1e-6", "let eps be 1e-5 unless it is given.", SmallerEps),
    WrongVersion("eps ignored", "give both norms the eps that is asked for.", EpsIgnored),
    WrongVersion(
        "dropout ignored",
        "hand dropout on to the attention and the feed-forward layer.",
        DropoutIgnored,
        "graykode/gpt-2-Pytorch, GPT2/model.py",
    ),
    WrongVersion(
        "dropout in evaluation",
        "drop in training only: pass the training flag.",
        DropsInEvaluation,
    ),
    WrongVersion("cache ignored", "hand the cache on to the attention.", CacheIgnored),
)
