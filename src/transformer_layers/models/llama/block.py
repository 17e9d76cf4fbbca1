"""The blocks of Llama, and of OLMo 2, which norms what its layers give."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor, nn

from transformer_layers.attention.cache import KeyValueCache
from transformer_layers.attention.grouped import GroupedQueryAttention
from transformer_layers.feed_forward.gated import GatedFeedForward
from transformer_layers.models.llama.config import LlamaConfig
from transformer_layers.norms.rms_norm import LlamaRMSNorm, RMSNorm
from transformer_layers.positions.rotary import Positions


class LlamaBlock(nn.Module):
    r"""One block of Llama: attention and feed-forward, each inside a residual, after a norm.

    It is `TransformerBlock` of https://github.com/meta-llama/llama, section 2.2 of
    https://arxiv.org/abs/2302.13971.

    .. math::
        h &= x + \mathrm{Attention}(\mathrm{RMSNorm}_1(x))
        \\
        y &= h + \mathrm{FeedForward}(\mathrm{RMSNorm}_2(h))

    Args:
        config: The sizes and options.
        number: Which block it is, from 0; by it the config tells whether it has a window.
        positions: What turns queries and keys; given at each call otherwise.

    Attributes:
        input_layernorm: :class:`LlamaRMSNorm` of the attention's input.
        self_attn: :class:`GroupedQueryAttention`.
        post_attention_layernorm: :class:`LlamaRMSNorm` of the feed-forward's input.
        mlp: :class:`GatedFeedForward`.
    """

    def __init__(
        self,
        config: LlamaConfig,
        number: int = 0,
        positions: Positions | None = None,
    ) -> None:
        super().__init__()
        norm = norm_of(config)
        self.input_layernorm = norm(config.hidden_size)
        self.self_attn = GroupedQueryAttention(
            config.hidden_size,
            config.num_attention_heads,
            config.kv_heads,
            config.d_k,
            positions,
            config.window_of(number),
            bias=config.biased,
            output_bias=config.attention_bias,
            head_norm=norm if config.model_type == "qwen3" else None,
        )
        self.post_attention_layernorm = norm(config.hidden_size)
        self.mlp = _feed_forward(config)

    def forward(
        self,
        x: Float[Tensor, "*batch seq d_model"],
        cache: KeyValueCache | None = None,
        positions: Positions | None = None,
    ) -> Float[Tensor, "*batch seq d_model"]:
        """Attends from each position to those before it, then maps each position.

        Arguments, result and errors are those of :class:`GroupedQueryAttention`.
        """
        x = x + self.self_attn(self.input_layernorm(x), cache, positions)
        return x + self.mlp(self.post_attention_layernorm(x))


class Olmo2Block(nn.Module):
    r"""One block of OLMo 2, whose norms stand behind the layers, inside the residuals.

    Section 3.2 of https://arxiv.org/abs/2501.00656, which calls it reordered norm, with QK norm.

    .. math::
        h &= x + \mathrm{RMSNorm}_1(\mathrm{Attention}(x))
        \\
        y &= h + \mathrm{RMSNorm}_2(\mathrm{FeedForward}(h))

    Args:
        config: The sizes and options.
        number: Which block it is, from 0.
        positions: What turns queries and keys; given at each call otherwise.

    Attributes:
        self_attn: :class:`GroupedQueryAttention`, with a norm over all heads of queries, and one
            over those of keys.
        post_attention_layernorm: :class:`RMSNorm` of the attention's result.
        mlp: :class:`GatedFeedForward`.
        post_feedforward_layernorm: :class:`RMSNorm` of the feed-forward's result.
    """

    def __init__(
        self,
        config: LlamaConfig,
        number: int = 0,
        positions: Positions | None = None,
    ) -> None:
        super().__init__()
        norm = norm_of(config)
        self.self_attn = GroupedQueryAttention(
            config.hidden_size,
            config.num_attention_heads,
            config.kv_heads,
            config.d_k,
            positions,
            config.window_of(number),
            bias=config.biased,
            output_bias=config.attention_bias,
            projection_norm=norm,
        )
        self.post_attention_layernorm = norm(config.hidden_size)
        self.mlp = _feed_forward(config)
        self.post_feedforward_layernorm = norm(config.hidden_size)

    def forward(
        self,
        x: Float[Tensor, "*batch seq d_model"],
        cache: KeyValueCache | None = None,
        positions: Positions | None = None,
    ) -> Float[Tensor, "*batch seq d_model"]:
        """Attends from each position to those before it, then maps each position.

        Arguments, result and errors are those of :class:`GroupedQueryAttention`.
        """
        x = x + self.post_attention_layernorm(self.self_attn(x, cache, positions))
        return x + self.post_feedforward_layernorm(self.mlp(x))


def norm_of(config: LlamaConfig) -> Callable[[int], nn.Module]:
    """What makes a norm of its size: OLMo 2 rounds after the gain, the others before it."""
    kind = RMSNorm if config.model_type == "olmo2" else LlamaRMSNorm
    return lambda size: kind(size, config.rms_norm_eps)


def block_of(config: LlamaConfig) -> type[LlamaBlock] | type[Olmo2Block]:
    """The class of the blocks."""
    return Olmo2Block if config.model_type == "olmo2" else LlamaBlock


def _feed_forward(config: LlamaConfig) -> GatedFeedForward:
    return GatedFeedForward(config.hidden_size, config.intermediate_size, bias=config.mlp_bias)
