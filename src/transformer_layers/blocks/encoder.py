"""The encoder layer of the Transformer, with the norm after or before each sub-layer."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from transformer_layers.attention.multi_head import MultiHeadAttention
from transformer_layers.feed_forward.positionwise import PositionwiseFeedForward
from transformer_layers.norms.layer_norm import LayerNorm
from transformer_layers.regularization.dropout import Dropout


class _EncoderLayer(nn.Module):
    """The parts of an encoder layer; each order of them is a class below."""

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
        self.feed_forward = PositionwiseFeedForward(
            d_model, d_ff, dropout, activation=activation, device=device, dtype=dtype
        )
        self.norm1 = LayerNorm(d_model, eps, device=device, dtype=dtype)
        self.norm2 = LayerNorm(d_model, eps, device=device, dtype=dtype)
        self.dropout = Dropout(dropout)

    def reset_parameters(self) -> None:
        """Draws the parameters anew."""
        self.self_attention.reset_parameters()
        self.feed_forward.reset_parameters()
        self.norm1.reset_parameters()
        self.norm2.reset_parameters()


class TransformerEncoderLayer(_EncoderLayer):
    r"""Encoder layer with the norm after each residual sum.

    Section 3.1 of https://arxiv.org/abs/1706.03762.

    .. math::
        h &= \mathrm{LayerNorm}_1(x + \mathrm{MultiHead}(x, x, x))
        \\
        y &= \mathrm{LayerNorm}_2(h + \mathrm{FFN}(h))

    In training dropout acts in three places: on the attention weights, on the output of the
    attention, and on that of the feed-forward network. The paper has the last two (section 5.4);
    `torch.nn.TransformerEncoderLayer` has a fourth after the ReLU, so the two are equal in
    evaluation, and in training with `dropout=0`.

    Args:
        d_model: Size of the last axis of input and output.
        num_heads: Number of heads, a divisor of `d_model`.
        d_ff: Size inside the feed-forward network.
        dropout: Share that is dropped in training, the same in all places.
        activation: What stands inside the feed-forward network; the paper's is the ReLU, BERT's is
            :func:`gelu`.
        eps: Added to the variance in both norms; `layer_norm_eps` of torch's layer.
        device: Of the parameters; torch's default one if not given.
        dtype: Of the parameters; torch's default one if not given.

    Attributes:
        self_attention: :class:`MultiHeadAttention`.
        feed_forward: :class:`PositionwiseFeedForward`.
        norm1: :class:`LayerNorm` of the attention's sum.
        norm2: :class:`LayerNorm` of the feed-forward network's sum.

    Raises:
        TypeError: If a size is not an int, or `activation` is not a function.
        ValueError: If a size is below 1, `num_heads` does not divide `d_model`, `dropout` is not
            within [0, 1], or `eps` is not greater than 0.

    Examples:
        >>> import torch
        >>> from transformer_layers import padding_mask
        >>> layer = TransformerEncoderLayer(d_model=6, num_heads=2, d_ff=8).eval()
        >>> y = layer(torch.randn(3, 5, 6), mask=padding_mask(torch.tensor([5, 2, 4]), seq=5))
        >>> y.shape
        torch.Size([3, 5, 6])
    """

    def forward(
        self,
        x: Float[Tensor, "*batch seq d_model"],
        mask: Bool[Tensor, "*mask_batch _ seq"] | None = None,
    ) -> Float[Tensor, "*batch seq d_model"]:
        """Attends within each sequence, then maps each position.

        Errors are those of :class:`MultiHeadAttention`.

        Args:
            x: Shape `(..., seq, d_model)`.
            mask: Boolean, True = may attend: shape `(seq, seq)`, `(..., seq, seq)` or
                `(..., 1, seq)`, read as in :class:`MultiHeadAttention`.

        Returns:
            The shape of `x`.
        """
        x = self.norm1(x + self.dropout(self.self_attention(x, x, x, mask)))
        return self.norm2(x + self.feed_forward(x))


class PreNormTransformerEncoderLayer(_EncoderLayer):
    r"""Encoder layer with the norm before each sub-layer, inside the residual.

    The order of GPT-2 (section 2.3 of its paper, "Language Models are Unsupervised Multitask
    Learners") and of `torch.nn.TransformerEncoderLayer(norm_first=True)`; compared with the other
    one in https://arxiv.org/abs/2002.04745.

    .. math::
        h &= x + \mathrm{MultiHead}(n, n, n), \qquad n = \mathrm{LayerNorm}_1(x)
        \\
        y &= h + \mathrm{FFN}(\mathrm{LayerNorm}_2(h))

    The output is not normalized: a stack of these layers ends with a norm of its own. Dropout acts
    in the same places as in :class:`TransformerEncoderLayer`.

    The arguments and attributes are those of :class:`TransformerEncoderLayer`; the norms are of the
    inputs of attention and feed-forward network.

    Examples:
        >>> import torch
        >>> from transformer_layers import causal_mask
        >>> layer = PreNormTransformerEncoderLayer(d_model=6, num_heads=2, d_ff=8).eval()
        >>> layer(torch.randn(3, 5, 6), mask=causal_mask(5)).shape
        torch.Size([3, 5, 6])
    """

    def forward(
        self,
        x: Float[Tensor, "*batch seq d_model"],
        mask: Bool[Tensor, "*mask_batch _ seq"] | None = None,
    ) -> Float[Tensor, "*batch seq d_model"]:
        """As in :class:`TransformerEncoderLayer`, with the norms inside the residual."""
        normed = self.norm1(x)
        x = x + self.dropout(self.self_attention(normed, normed, normed, mask))
        return x + self.feed_forward(self.norm2(x))
