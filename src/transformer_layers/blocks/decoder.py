"""The decoder layer of the Transformer, with the norm after or before each sub-layer."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from transformer_layers.attention.memory import (
    DecoderCache,
    cached_cross_attention,
    cached_self_attention,
)
from transformer_layers.attention.multi_head import MultiHeadAttention
from transformer_layers.feed_forward.positionwise import PositionwiseFeedForward
from transformer_layers.regularization.dropout import Dropout
from transformer_layers.validation import require_positive


class _DecoderLayer(nn.Module):
    """The parts of a decoder layer; each order of them is a class below."""

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        dropout: float = 0.1,
        *,
        activation: Callable[[Tensor], Tensor] = torch.relu,
        eps: float = 1e-5,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(
            d_model, num_heads, dropout, device=device, dtype=dtype
        )
        self.cross_attention = MultiHeadAttention(
            d_model, num_heads, dropout, device=device, dtype=dtype
        )
        self.feed_forward = PositionwiseFeedForward(
            d_model, d_ff, dropout, activation=activation, device=device, dtype=dtype
        )
        require_positive("eps", eps)
        # Torch's kernel for the book's LayerNorm: a decoder that writes runs it at each token.
        self.norm1 = nn.LayerNorm(d_model, eps, device=device, dtype=dtype)
        self.norm2 = nn.LayerNorm(d_model, eps, device=device, dtype=dtype)
        self.norm3 = nn.LayerNorm(d_model, eps, device=device, dtype=dtype)
        self.dropout = Dropout(dropout)

    def reset_parameters(self) -> None:
        """Draws the parameters anew."""
        self.self_attention.reset_parameters()
        self.cross_attention.reset_parameters()
        self.feed_forward.reset_parameters()
        self.norm1.reset_parameters()
        self.norm2.reset_parameters()
        self.norm3.reset_parameters()

    def _attend_to_itself(
        self, x: Tensor, mask: Tensor | None, cache: DecoderCache | None
    ) -> Tensor:
        if cache is None:
            return self.dropout(self.self_attention(x, x, x, mask))
        if mask is not None:
            raise ValueError(
                "pass either mask or cache: with a cache each position sees itself and what came "
                f"before; got a mask of shape {tuple(mask.shape)} and {cache}"
            )
        return self.dropout(cached_self_attention(self.self_attention, x, cache))

    def _attend_to_memory(
        self, x: Tensor, memory: Tensor, mask: Tensor | None, cache: DecoderCache | None
    ) -> Tensor:
        if cache is None:
            return self.dropout(self.cross_attention(x, memory, memory, mask))
        return self.dropout(cached_cross_attention(self.cross_attention, x, memory, mask, cache))


class TransformerDecoderLayer(_DecoderLayer):
    r"""Decoder layer with the norm after each residual sum.

    Section 3.1 of https://arxiv.org/abs/1706.03762.

    .. math::
        a &= \mathrm{LayerNorm}_1(x + \mathrm{MultiHead}(x, x, x))
        \\
        b &= \mathrm{LayerNorm}_2(a + \mathrm{MultiHead}(a, m, m))
        \\
        y &= \mathrm{LayerNorm}_3(b + \mathrm{FFN}(b))

    The second attention asks with the decoder's positions and finds in the memory :math:`m`, the
    encoder's output, which may have another length. The first one is causal by its mask alone: hand
    over :func:`causal_mask`. In training dropout acts on the weights of both
    attentions and on the output of each sub-layer; `torch.nn.TransformerDecoderLayer` has one more
    after the ReLU, so the two are equal in evaluation, and in training with `dropout=0`.

    Args:
        d_model: Size of the last axis of input, memory and output.
        num_heads: Number of heads of both attentions, a divisor of `d_model`.
        d_ff: Size inside the feed-forward network.
        dropout: Share that is dropped in training, the same in all places.
        activation: What stands inside the feed-forward network; the paper's is the ReLU.
        eps: Added to the variance in the three norms; `layer_norm_eps` of torch's layer.
        device: Of the parameters; torch's default one if not given.
        dtype: Of the parameters; torch's default one if not given.

    Attributes:
        self_attention: :class:`MultiHeadAttention` of the decoder's positions.
        cross_attention: :class:`MultiHeadAttention` to the memory.
        feed_forward: :class:`PositionwiseFeedForward`.
        norm1: `torch.nn.LayerNorm` of the self-attention's sum.
        norm2: `torch.nn.LayerNorm` of the cross-attention's sum.
        norm3: `torch.nn.LayerNorm` of the feed-forward network's sum.

    Raises:
        TypeError: If a size is not an int, or `activation` is not a function.
        ValueError: If a size is below 1, `num_heads` does not divide `d_model`, `dropout` is not
            within [0, 1], or `eps` is not greater than 0.

    Examples:
        >>> import torch
        >>> from transformer_layers import causal_mask, padding_mask
        >>> layer = TransformerDecoderLayer(d_model=6, num_heads=2, d_ff=8).eval()
        >>> x, memory = torch.randn(3, 5, 6), torch.randn(3, 4, 6)
        >>> lengths = torch.tensor([4, 1, 2])
        >>> layer(x, memory, causal_mask(5), padding_mask(lengths, seq=4)).shape
        torch.Size([3, 5, 6])
    """

    def forward(
        self,
        x: Float[Tensor, "*batch seq d_model"],
        memory: Float[Tensor, "*memory_batch memory_seq d_model"],
        mask: Bool[Tensor, "*mask_batch _ seq"] | None = None,
        memory_mask: Bool[Tensor, "*memory_mask_batch _ memory_seq"] | None = None,
        cache: DecoderCache | None = None,
    ) -> Float[Tensor, "*batch seq d_model"]:
        """Attends within each sequence, then to the memory, then maps each position.

        Errors are those of :class:`MultiHeadAttention`.

        Args:
            x: Shape `(..., seq, d_model)`.
            memory: The encoder's output, shape `(..., memory_seq, d_model)`, with the leading axes
                of `x`.
            mask: Which positions of `x` each position may attend to, boolean, True = may attend, as
                in :class:`MultiHeadAttention`; a decoder that writes passes `causal_mask(seq)`. All
                if not given.
            memory_mask: Which positions of the memory each position may attend to, such as
                `padding_mask` of the source's lengths.
            cache: The keys and values of the positions before `x`, to which those of `x` are added,
                and those of the memory, which are computed once. Then each position sees itself
                and those before, without `mask`; `x` and `memory` have one leading axis, and `x`
                may have several rows for each row of the memory.

        Returns:
            The shape of `x`.

        Raises:
            TypeError: If an input is not of the parameters' dtype, or a mask is not boolean.
            ValueError: If a shape does not fit, both `mask` and `cache` are given, or the cache has
                no room, or the keys of another memory.
        """
        x = self.norm1(x + self._attend_to_itself(x, mask, cache))
        x = self.norm2(x + self._attend_to_memory(x, memory, memory_mask, cache))
        return self.norm3(x + self.feed_forward(x))


class PreNormTransformerDecoderLayer(_DecoderLayer):
    r"""Decoder layer with the norm before each sub-layer, inside the residual.

    The order of `torch.nn.TransformerDecoderLayer(norm_first=True)`, compared with the other one in
    https://arxiv.org/abs/2002.04745.

    .. math::
        a &= x + \mathrm{MultiHead}(n, n, n), \qquad n = \mathrm{LayerNorm}_1(x)
        \\
        b &= a + \mathrm{MultiHead}(\mathrm{LayerNorm}_2(a), m, m)
        \\
        y &= b + \mathrm{FFN}(\mathrm{LayerNorm}_3(b))

    The memory is not normalized here: an encoder of this order ends with a norm of its own, and so
    does a stack of these layers.

    The arguments and attributes are those of :class:`TransformerDecoderLayer`; the norms are of the
    inputs of the three sub-layers.

    Examples:
        >>> import torch
        >>> from transformer_layers import causal_mask
        >>> layer = PreNormTransformerDecoderLayer(d_model=6, num_heads=2, d_ff=8).eval()
        >>> layer(torch.randn(3, 5, 6), torch.randn(3, 4, 6), causal_mask(5)).shape
        torch.Size([3, 5, 6])
    """

    def forward(
        self,
        x: Float[Tensor, "*batch seq d_model"],
        memory: Float[Tensor, "*memory_batch memory_seq d_model"],
        mask: Bool[Tensor, "*mask_batch _ seq"] | None = None,
        memory_mask: Bool[Tensor, "*memory_mask_batch _ memory_seq"] | None = None,
        cache: DecoderCache | None = None,
    ) -> Float[Tensor, "*batch seq d_model"]:
        """As in :class:`TransformerDecoderLayer`, with the norms inside the residual."""
        x = x + self._attend_to_itself(self.norm1(x), mask, cache)
        x = x + self._attend_to_memory(self.norm2(x), memory, memory_mask, cache)
        return x + self.feed_forward(self.norm3(x))
