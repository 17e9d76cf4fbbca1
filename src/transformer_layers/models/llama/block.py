"""Which blocks a config asks for."""

from torch import nn

from transformer_layers.attention.grouped import GroupedQueryAttention
from transformer_layers.feed_forward.experts import MixtureOfExperts, TopKRouter
from transformer_layers.feed_forward.gated import GatedFeedForward
from transformer_layers.models.llama.config import LlamaConfig
from transformer_layers.models.rotary_decoder import LlamaBlock, LlamaStack, Olmo2Block
from transformer_layers.norms.rms_norm import LlamaRMSNorm, RMSNorm


def norm_of(config: LlamaConfig, size: int) -> nn.Module:
    """A norm of its size: OLMo 2 rounds after the gain, the others before it."""
    kind = RMSNorm if config.model_type == "olmo2" else LlamaRMSNorm
    return kind(size, config.rms_norm_eps)


def block_of(config: LlamaConfig, number: int) -> nn.Module:
    """A block; by its number, from 0, the config tells whether it has a window."""

    def norm(size: int) -> nn.Module:
        return norm_of(config, size)

    attention = GroupedQueryAttention(
        config.hidden_size,
        config.num_attention_heads,
        config.kv_heads,
        config.d_k,
        window=config.window_of(number),
        bias=config.biased,
        output_bias=config.attention_bias,
        head_norm=norm if config.model_type.startswith("qwen3") else None,
        projection_norm=norm if config.model_type == "olmo2" else None,
    )
    kind = Olmo2Block if config.model_type == "olmo2" else LlamaBlock
    return kind(attention, feed_forward_of(config, number), norm)


def feed_forward_of(config: LlamaConfig, number: int) -> nn.Module:
    """The feed-forward layer of a block, by its number, from 0, or the experts in its place."""
    size = config.hidden_size
    if not config.has_experts(number):
        return GatedFeedForward(size, config.intermediate_size, bias=config.mlp_bias)
    experts, chosen = config.experts, config.num_experts_per_tok
    router = TopKRouter(size, experts, chosen, renormalize=config.norm_topk_prob)
    return MixtureOfExperts(size, config.d_expert, experts, chosen, router)


def stack_of(config: LlamaConfig) -> LlamaStack:
    """Embedding, blocks and last norm."""
    embedding = nn.Embedding(config.vocab_size, config.hidden_size)
    blocks = [block_of(config, i) for i in range(config.num_hidden_layers)]
    return LlamaStack(embedding, blocks, norm_of(config, config.hidden_size))
