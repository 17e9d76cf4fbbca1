"""A block of GPT-2."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer_layers.attention.context import CacheOrContext
from transformer_layers.attention.inputs import require_heads, require_sequences
from transformer_layers.models.gpt2.attention import CausalSelfAttention
from transformer_layers.models.gpt2.feed_forward import FeedForward
from transformer_layers.validation import (
    dtype_taken_by,
    require_dtype,
    require_floating_dtype,
    require_positive,
)


class GPT2Block(nn.Module):
    r"""One block of GPT-2: attention and feed-forward, each inside a residual, after a norm.

    It is the `block` of `src/model.py` in https://github.com/openai/gpt-2; section 2.3 of
    "Language Models are Unsupervised Multitask Learners" says where the norms went.

    .. math::
        h &= x + \mathrm{Attention}(\mathrm{LayerNorm}_1(x))
        \\
        y &= h + \mathrm{FeedForward}(\mathrm{LayerNorm}_2(h))

    The norms are torch's kernel of :class:`LayerNorm`, which computes the same in fewer passes over
    memory. The names `ln_1`, `attn`, `ln_2` and `mlp` are those of the published weights.

    Args:
        d_model: Size of the last axis of input and output.
        num_heads: Number of heads, a divisor of `d_model`.
        dropout: Share that is dropped in training: of the attention weights, of the attention's
            result, and of the feed-forward's.
        eps: Added to the variance in both norms.
        device: Of the parameters; torch's default one if not given.
        dtype: Of the parameters; torch's default one if not given.

    Attributes:
        ln_1: `torch.nn.LayerNorm` of the attention's input.
        attn: :class:`CausalSelfAttention`.
        ln_2: `torch.nn.LayerNorm` of the feed-forward's input.
        mlp: :class:`FeedForward`.

    Raises:
        TypeError: If a size is not an int.
        ValueError: If a size is below 1, `num_heads` does not divide `d_model`, `dropout` is not
            within [0, 1], or `eps` is not greater than 0.

    Examples:
        >>> import torch
        >>> block = GPT2Block(d_model=6, num_heads=2)
        >>> block(torch.randn(3, 5, 6)).shape
        torch.Size([3, 5, 6])
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        dropout: float = 0.1,
        eps: float = 1e-5,
        *,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_heads(d_model, num_heads)
        require_positive("eps", eps)
        require_floating_dtype(dtype)
        self.d_model = d_model
        self.ln_1 = nn.LayerNorm(d_model, eps, device=device, dtype=dtype)
        self.attn = CausalSelfAttention(d_model, num_heads, dropout, device=device, dtype=dtype)
        self.ln_2 = nn.LayerNorm(d_model, eps, device=device, dtype=dtype)
        self.mlp = FeedForward(d_model, dropout=dropout, device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Sets the parameters as :class:`Conv1D` and `torch.nn.LayerNorm` do at the start."""
        self.ln_1.reset_parameters()
        self.attn.reset_parameters()
        self.ln_2.reset_parameters()
        self.mlp.reset_parameters()

    def forward(
        self,
        x: Float[Tensor, "*batch seq d_model"],
        cache: CacheOrContext = None,
    ) -> Float[Tensor, "*batch seq d_model"]:
        """Attends from each position to those before it, then maps each position.

        Arguments, result and errors are those of :class:`CausalSelfAttention`.
        """
        require_sequences(self.d_model, x=x)  # torch's norm says less, of the dtype too
        require_dtype("x", x, dtype_taken_by(self.ln_1))
        x = x + self.attn(self.ln_1(x), cache)
        return x + self.mlp(self.ln_2(x))
