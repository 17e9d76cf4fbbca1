"""Decoders with rotary positions, put together of their layers."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer_layers.attention.cache import KeyValueCache
from transformer_layers.attention.context import CacheOrContext, Context
from transformer_layers.attention.grouped import GroupedQueryAttention
from transformer_layers.generation.decoder import embedded
from transformer_layers.models.language_model import LanguageModel

Norm = Callable[[int], nn.Module]


class LlamaBlock(nn.Module):
    r"""One block of Llama: attention and feed-forward, each inside a residual, after a norm.

    It is `TransformerBlock` of https://github.com/meta-llama/llama, section 2.2 of
    https://arxiv.org/abs/2302.13971.

    .. math::
        h &= x + \mathrm{Attention}(\mathrm{RMSNorm}_1(x))
        \\
        y &= h + \mathrm{FeedForward}(\mathrm{RMSNorm}_2(h))

    Args:
        attention: Of each position to itself and to those before it.
        feed_forward: Of each position by itself.
        norm: Makes a norm of its size, such as :class:`LlamaRMSNorm`.

    Attributes:
        input_layernorm: The norm of the attention's input.
        self_attn: The attention.
        post_attention_layernorm: The norm of the feed-forward's input.
        mlp: The feed-forward layer.

    Examples:
        >>> import torch
        >>> from transformer_layers import (
        ...     GatedFeedForward, GroupedQueryAttention, LlamaBlock, LlamaRMSNorm
        ... )
        >>> attention = GroupedQueryAttention(8, num_heads=4, num_kv_heads=2)
        >>> block = LlamaBlock(attention, GatedFeedForward(8, 20), LlamaRMSNorm)
        >>> block(torch.randn(3, 5, 8)).shape
        torch.Size([3, 5, 8])
    """

    def __init__(
        self, attention: GroupedQueryAttention, feed_forward: nn.Module, norm: Norm
    ) -> None:
        super().__init__()
        self.input_layernorm = norm(attention.d_model)
        self.self_attn = attention
        self.post_attention_layernorm = norm(attention.d_model)
        self.mlp = feed_forward

    def forward(
        self,
        x: Float[Tensor, "*batch seq d_model"],
        cache: CacheOrContext = None,
    ) -> Float[Tensor, "*batch seq d_model"]:
        """Attends from each position to those before it, then maps each position.

        Arguments, result and errors are those of :class:`GroupedQueryAttention`.
        """
        x = x + self.self_attn(self.input_layernorm(x), cache)
        return x + self.mlp(self.post_attention_layernorm(x))


class Olmo2Block(nn.Module):
    r"""One block of OLMo 2, whose norms stand behind the layers, inside the residuals.

    Section 3.2 of https://arxiv.org/abs/2501.00656, which calls it reordered norm, with QK norm.

    .. math::
        h &= x + \mathrm{RMSNorm}_1(\mathrm{Attention}(x))
        \\
        y &= h + \mathrm{RMSNorm}_2(\mathrm{FeedForward}(h))

    Args:
        attention: As of :class:`LlamaBlock`; OLMo 2 norms all heads of queries, and all of keys.
        feed_forward: Of each position by itself.
        norm: Makes a norm of its size, such as :class:`RMSNorm`.

    Attributes:
        self_attn: The attention.
        post_attention_layernorm: The norm of the attention's result.
        mlp: The feed-forward layer.
        post_feedforward_layernorm: The norm of the feed-forward's result.
    """

    def __init__(
        self, attention: GroupedQueryAttention, feed_forward: nn.Module, norm: Norm
    ) -> None:
        super().__init__()
        self.self_attn = attention
        self.post_attention_layernorm = norm(attention.d_model)
        self.mlp = feed_forward
        self.post_feedforward_layernorm = norm(attention.d_model)

    def forward(
        self,
        x: Float[Tensor, "*batch seq d_model"],
        cache: CacheOrContext = None,
    ) -> Float[Tensor, "*batch seq d_model"]:
        """Attends from each position to those before it, then maps each position.

        Arguments, result and errors are those of :class:`GroupedQueryAttention`.
        """
        x = x + self.post_attention_layernorm(self.self_attn(x, cache))
        return x + self.post_feedforward_layernorm(self.mlp(x))


class LlamaStack(nn.Module):
    """Token embedding, blocks and last norm, under the names of the weights of Llama.

    Args:
        embed_tokens: The embedding.
        layers: The blocks.
        norm: The norm of the last block's output.

    Attributes:
        embed_tokens: As given.
        layers: As given, a `torch.nn.ModuleList`.
        norm: As given.
    """

    def __init__(
        self, embed_tokens: nn.Embedding, layers: Iterable[nn.Module], norm: nn.Module
    ) -> None:
        super().__init__()
        self.embed_tokens = embed_tokens
        self.layers = nn.ModuleList(layers)
        self.norm = norm

    def forward(
        self,
        ids: Int[Tensor, "*batch seq"],
        context: Context,
        caches: Sequence[KeyValueCache] | None = None,
    ) -> Float[Tensor, "*batch seq d_model"]:
        """What the blocks and the last norm make of each token.

        Args:
            ids: Tokens, of shape `(..., seq)`, or embeddings in their place.
            context: What all blocks share.
            caches: Keys and values of the positions before, a cache for each block.

        Returns:
            Shape `(..., seq, d_model)`.
        """
        x = embedded(ids, self.embed_tokens)
        for i, block in enumerate(self.layers):
            x = block(x, context._replace(cache=caches[i] if caches else None))
        return self.norm(x)


class RotaryDecoder(LanguageModel):
    """A language model of a stack, with the parameters under the names of the weights of Llama.

    Args:
        config: The sizes and options.
        stack_of: Makes embedding, blocks and last norm of them.
        device: Of the parameters; torch's default device if not given.
        dtype: Of the parameters; torch's default dtype if not given.

    Attributes:
        model: The stack.
        lm_head: `nn.Linear`, weight of shape `(vocab_size, hidden_size)`; None where the head is
            the embedding.
    """

    def __init__(
        self,
        config: Any,
        stack_of: Callable[[Any], LlamaStack],
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(config)
        self.lm_head: nn.Linear | None = None
        with nullcontext() if device is None else torch.device(device):
            self.model = stack_of(config)
            if not config.tie_word_embeddings:
                self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.to(dtype=dtype)
        self.reset_parameters()

    @property
    def max_seq(self) -> int:
        """Longest sequence, in tokens."""
        return self.config.max_seq

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draws all weights anew, as at construction; for a model that was made on the meta device.

        Examples:
            >>> from transformer_layers import Llama, LlamaConfig
            >>> config = LlamaConfig(50, 12, 20, 2, 3, 1)
            >>> model = Llama(config, device="meta").to_empty(device="cpu")
            >>> model.reset_parameters()
        """
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                parameter.normal_(std=0.02)
            else:
                parameter.fill_(0.0 if name.endswith("bias") else self._first_gain)

    @property
    def _first_gain(self) -> float:
        """What the weights of norms start as."""
        return 1.0

    @property
    def _embedding(self) -> nn.Embedding:
        return self.model.embed_tokens

    @property
    def _blocks(self) -> nn.ModuleList:
        return self.model.layers

    def _scores(self, hidden_state: Tensor) -> Tensor:
        if self.lm_head is not None:
            return self.lm_head(hidden_state)
        return nn.functional.linear(hidden_state, self._embedding.weight)
