"""Known wrong versions of `GPT2Block`, made of the book's own parts."""

from torch import Tensor, nn
from torch.nn import functional

from layer_checks.checks.gpt2_block import gpt2_block
from layer_checks.wrong.causal_self_attention import NotCausal
from layer_checks.wrong.feed_forward import ExactGelu
from transformer_layers import FeedForward, GPT2Block
from transformer_layers.attention.context import CacheOrContext


@gpt2_block.wrong(
    "normalize the input of each sub-layer, not the sum: x + f(LayerNorm(x)).",
    name="post-norm",
    published="GPT-1 and the 2017 Transformer, where it is meant",
)
class PostNorm(GPT2Block):
    """Normalizes after each residual sum."""

    def forward(self, x: Tensor, cache: CacheOrContext = None) -> Tensor:
        x = self.ln_1(x + self.attn(x, cache))
        return self.ln_2(x + self.mlp(x))


@gpt2_block.wrong(
    "normalize what goes into a sub-layer, not what comes out of it.", name="norm of the sub-layer"
)
class NormOfSubLayer(GPT2Block):
    """Normalizes what a sub-layer gives and adds the input then."""

    def forward(self, x: Tensor, cache: CacheOrContext = None) -> Tensor:
        x = x + self.ln_1(self.attn(x, cache))
        return x + self.ln_2(self.mlp(x))


@gpt2_block.wrong("give each sub-layer a norm of its own.")
class OneNormForBoth(GPT2Block):
    """Uses the first norm twice."""

    def forward(self, x: Tensor, cache: CacheOrContext = None) -> Tensor:
        x = x + self.attn(self.ln_1(x), cache)
        return x + self.mlp(self.ln_1(x))


@gpt2_block.wrong("normalize the input of the feed-forward layer too.")
class SecondNormMissing(GPT2Block):
    """Gives the feed-forward layer the sum as it is."""

    def forward(self, x: Tensor, cache: CacheOrContext = None) -> Tensor:
        x = x + self.attn(self.ln_1(x), cache)
        return x + self.mlp(x)


@gpt2_block.wrong("leave the sum as it is: a stack of blocks ends with one norm, a block does not.")
class NormAtTheEnd(GPT2Block):
    """Normalizes the result too."""

    def forward(self, x: Tensor, cache: CacheOrContext = None) -> Tensor:
        return functional.layer_norm(super().forward(x, cache), x.shape[-1:])


@gpt2_block.wrong("add x itself: the norm stands inside the residual branch.")
class ResidualOfTheNormalizedInput(GPT2Block):
    """Adds the normalized input."""

    def forward(self, x: Tensor, cache: CacheOrContext = None) -> Tensor:
        normed = self.ln_1(x)
        x = normed + self.attn(normed, cache)
        normed = self.ln_2(x)
        return normed + self.mlp(normed)


@gpt2_block.wrong("add the input of each sub-layer to its output.")
class NoResidual(GPT2Block):
    """Adds nothing."""

    def forward(self, x: Tensor, cache: CacheOrContext = None) -> Tensor:
        return self.mlp(self.ln_2(self.attn(self.ln_1(x), cache)))


@gpt2_block.wrong("add the sum with the attention to what the feed-forward layer gives.")
class SecondResidualMissing(GPT2Block):
    """Adds nothing to what the feed-forward layer gives."""

    def forward(self, x: Tensor, cache: CacheOrContext = None) -> Tensor:
        x = x + self.attn(self.ln_1(x), cache)
        return self.mlp(self.ln_2(x))


@gpt2_block.wrong(
    "add the sum with the attention, not the block's input, to what the feed-forward layer gives."
)
class SecondResidualOfTheInput(GPT2Block):
    """Adds the block's input to what the feed-forward layer gives."""

    def forward(self, x: Tensor, cache: CacheOrContext = None) -> Tensor:
        attended = x + self.attn(self.ln_1(x), cache)
        return x + self.mlp(self.ln_2(attended))


@gpt2_block.wrong(
    "let the feed-forward layer start from the sum with the attention.",
    name="sub-layers in parallel",
    published="GPT-J and GPT-NeoX, where it is meant",
)
class Parallel(GPT2Block):
    """Lets both sub-layers start from the input."""

    def forward(self, x: Tensor, cache: CacheOrContext = None) -> Tensor:
        return x + self.attn(self.ln_1(x), cache) + self.mlp(self.ln_2(x))


@gpt2_block.wrong(
    "give the feed-forward layer the normalized sum, not the attention's output alone.",
    published="the GPT-2 notes, Feed-Forward Layer",
)
class BareAttentionFedForward(GPT2Block):
    """Gives the feed-forward layer the attention's output alone, as the notes say."""

    def forward(self, x: Tensor, cache: CacheOrContext = None) -> Tensor:
        attended = self.attn(self.ln_1(x), cache)
        return x + attended + self.mlp(self.ln_2(attended))


@gpt2_block.wrong(
    "activate with the tanh form: GPT-2's weights were trained with it.",
    name="exact GELU",
    published="nanoGPT, model.py, https://github.com/karpathy/nanoGPT/pull/274",
)
class WithExactGelu(GPT2Block):
    """Activates with the exact GELU."""

    def __init__(
        self, d_model: int, num_heads: int, dropout: float = 0.1, eps: float = 1e-5
    ) -> None:
        super().__init__(d_model, num_heads, dropout, eps)
        self.add_module("mlp", ExactGelu(d_model, dropout=dropout))


@gpt2_block.wrong("mask the scores: a position must not see what follows it.", name="not causal")
class WithNotCausal(GPT2Block):
    """Lets every position see all others."""

    def __init__(
        self, d_model: int, num_heads: int, dropout: float = 0.1, eps: float = 1e-5
    ) -> None:
        super().__init__(d_model, num_heads, dropout, eps)
        self.add_module("attn", NotCausal(d_model, num_heads, dropout))


@gpt2_block.wrong("let the inner width be four times d_model.", name="inner width of 2 d_model")
class TwiceAsWide(GPT2Block):
    """Widens to 2 d_model."""

    def __init__(
        self, d_model: int, num_heads: int, dropout: float = 0.1, eps: float = 1e-5
    ) -> None:
        super().__init__(d_model, num_heads, dropout, eps)
        self.mlp = FeedForward(d_model, 2 * d_model, dropout)


@gpt2_block.wrong("let eps be 1e-5 unless it is given.", name="eps of 1e-6")
class SmallerEps(GPT2Block):
    """Has another default for eps."""

    def __init__(
        self, d_model: int, num_heads: int, dropout: float = 0.1, eps: float = 1e-6
    ) -> None:
        super().__init__(d_model, num_heads, dropout, eps)


@gpt2_block.wrong("give both norms the eps that is asked for.")
class EpsIgnored(GPT2Block):
    """Takes the argument and does not use it."""

    def __init__(
        self, d_model: int, num_heads: int, dropout: float = 0.1, eps: float = 1e-5
    ) -> None:
        super().__init__(d_model, num_heads, dropout)
        self.ln_1, self.ln_2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)


@gpt2_block.wrong(
    "hand dropout on to the attention and the feed-forward layer.",
    published="graykode/gpt-2-Pytorch, GPT2/model.py",
)
class DropoutIgnored(GPT2Block):
    """Takes the argument and does not use it."""

    def __init__(
        self, d_model: int, num_heads: int, dropout: float = 0.1, eps: float = 1e-5
    ) -> None:
        super().__init__(d_model, num_heads, 0.0, eps)


@gpt2_block.wrong(
    "drop what is added to the stream, not the stream: in twelve blocks 28 % is left.",
    published="codertimo/BERT-pytorch, bert_pytorch/model/transformer.py",
)
class ResidualStreamDropped(GPT2Block):
    """Drops the result of the block, stream and all."""

    def forward(self, x: Tensor, cache: CacheOrContext = None) -> Tensor:
        return functional.dropout(super().forward(x, cache), self.mlp.dropout.p, self.training)


@gpt2_block.wrong("drop in training only: pass the training flag.")
class DropoutInEvaluation(GPT2Block):
    """Drops whether it trains or not."""

    def forward(self, x: Tensor, cache: CacheOrContext = None) -> Tensor:
        p = 0.0 if self.training else self.mlp.dropout.p  # in training both drop by themselves
        x = x + functional.dropout(self.attn(self.ln_1(x), cache), p)
        return x + functional.dropout(self.mlp(self.ln_2(x)), p)


@gpt2_block.wrong("hand the cache on to the attention.")
class CacheIgnored(GPT2Block):
    """Takes a cache and does not hand it on."""

    def forward(self, x: Tensor, cache: CacheOrContext = None) -> Tensor:
        return super().forward(x)
