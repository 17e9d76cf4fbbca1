"""A block of Gemma 3, and the layers of its own."""

import math

from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer_layers.attention.context import CacheOrContext
from transformer_layers.attention.grouped import GroupedQueryAttention
from transformer_layers.feed_forward.activations import gelu_tanh
from transformer_layers.feed_forward.gated import GatedFeedForward
from transformer_layers.models.gemma3.config import Gemma3Config
from transformer_layers.models.rotary_decoder import LlamaStack
from transformer_layers.norms.rms_norm import GemmaRMSNorm


class ScaledEmbedding(nn.Embedding):
    """An embedding whose rows count the root of their size times as much.

    The factor is rounded to the dtype of the rows, as in Gemma: for 3,072 features it is 55.4256,
    and 55.5 in bfloat16. The head, where it is the same matrix, has the rows as they are.
    """

    def forward(self, ids: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape d_model"]:
        """Looks up the rows of tokens, and scales them."""
        return super().forward(ids) * self.weight.new_tensor(math.sqrt(self.embedding_dim))


class GemmaAttention(GroupedQueryAttention):
    r"""Grouped-query attention whose scores are divided by the root of a number of its own.

    Args:
        config: The sizes and options.
        number: That of the block, from 0, which tells whether it has a window.
    """

    def __init__(self, config: Gemma3Config, number: int) -> None:
        super().__init__(
            config.hidden_size,
            config.num_attention_heads,
            config.num_key_value_heads,
            config.head_dim,
            window=config.window_of(number),
            bias=config.attention_bias,
            head_norm=lambda size: GemmaRMSNorm(size, config.rms_norm_eps),
        )
        self.query_scale = math.sqrt(config.head_dim / config.query_pre_attn_scalar)

    def _heads(self, projected: Tensor, norm: nn.Module, heads: int) -> Tensor:
        found = super()._heads(projected, norm, heads)
        return found * self.query_scale if norm is self.q_norm else found


class Gemma3Block(nn.Module):
    r"""One block of Gemma 3, with a norm on either side of each layer.

    It is `Gemma3DecoderLayer` of `transformers`, https://arxiv.org/abs/2503.19786, section 2.

    .. math::
        h &= x + \mathrm{RMSNorm}_2(\mathrm{Attention}(\mathrm{RMSNorm}_1(x)))
        \\
        y &= h + \mathrm{RMSNorm}_4(\mathrm{FeedForward}(\mathrm{RMSNorm}_3(h)))

    Args:
        config: The sizes and options.
        number: That of the block, from 0.

    Attributes:
        self_attn: The attention.
        mlp: The feed-forward layer, with a tanh GELU for the gate.
        input_layernorm: The norm of the attention's input.
        post_attention_layernorm: The norm of its result.
        pre_feedforward_layernorm: The norm of the feed-forward's input.
        post_feedforward_layernorm: The norm of its result.
    """

    def __init__(self, config: Gemma3Config, number: int) -> None:
        super().__init__()
        size = config.hidden_size
        self.self_attn = GemmaAttention(config, number)
        self.mlp = GatedFeedForward(size, config.intermediate_size, gelu_tanh)
        self.input_layernorm = GemmaRMSNorm(size, config.rms_norm_eps)
        self.post_attention_layernorm = GemmaRMSNorm(size, config.rms_norm_eps)
        self.pre_feedforward_layernorm = GemmaRMSNorm(size, config.rms_norm_eps)
        self.post_feedforward_layernorm = GemmaRMSNorm(size, config.rms_norm_eps)

    def forward(
        self,
        x: Float[Tensor, "*batch seq d_model"],
        cache: CacheOrContext = None,
    ) -> Float[Tensor, "*batch seq d_model"]:
        """Attends from each position to those before it, then maps each position.

        Arguments, result and errors are those of :class:`GroupedQueryAttention`.
        """
        x = x + self.post_attention_layernorm(self.self_attn(self.input_layernorm(x), cache))
        return x + self.post_feedforward_layernorm(self.mlp(self.pre_feedforward_layernorm(x)))


def stack_of(config: Gemma3Config) -> LlamaStack:
    """Embedding, blocks and last norm."""
    return LlamaStack(
        ScaledEmbedding(config.vocab_size, config.hidden_size),
        (Gemma3Block(config, i) for i in range(config.num_hidden_layers)),
        GemmaRMSNorm(config.hidden_size, config.rms_norm_eps),
    )
