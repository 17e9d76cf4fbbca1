"""GPT-2's attention."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer_layers.attention.causal import causal_attention
from transformer_layers.attention.context import CacheOrContext
from transformer_layers.attention.heads import merge_heads, split_heads
from transformer_layers.attention.inputs import require_heads, require_sequences
from transformer_layers.models.gpt2.conv1d import Conv1D
from transformer_layers.regularization.dropout import Dropout
from transformer_layers.validation import require_probability


class CausalSelfAttention(nn.Module):
    r"""GPT-2's attention: each position attends to itself and to earlier ones.

    It is the `attn` of `src/model.py` in https://github.com/openai/gpt-2: the multi-head attention
    of https://arxiv.org/abs/1706.03762, section 3.2.2, of a sequence to itself.

    .. math::
        [Q \; K \; V] &= x W^{QKV} + b^{QKV}
        \\
        \mathrm{head}_i &= \mathrm{softmax}\left(\frac{Q_i K_i^\top}{\sqrt{d_k}} + M\right) V_i,
        \qquad M_{st} = \begin{cases} 0 & t \le s \\ -\infty & t > s \end{cases}
        \\
        y &= \mathrm{Concat}(\mathrm{head}_1, \dots, \mathrm{head}_h) W^O + b^O

    The softmax runs over the keys. The names `c_attn` and `c_proj` are those of GPT-2's published
    weights; there is no buffer for the mask, so a state dict has nothing else. In training dropout
    acts on the attention weights and on the result, as in `transformers`; the code that came with
    the paper has none. The attention runs in torch's kernel, whose memory, where nothing is
    dropped and no cache has begun, grows with the sequence, not with its square (see
    :func:`scaled_dot_product_attention` for the definition that it is checked against).

    Args:
        d_model: Size of the last axis of input and output.
        num_heads: Number of heads, :math:`h`, a divisor of `d_model`.
        dropout: Share of the attention weights, and of the result, that is dropped in training.
        device: Of the parameters; torch's default one if not given.
        dtype: Of the parameters; torch's default one if not given.

    Attributes:
        c_attn: :class:`Conv1D`, :math:`W^{QKV}`, weight of shape `(d_model, 3 * d_model)`.
        c_proj: :class:`Conv1D`, :math:`W^O`, weight of shape `(d_model, d_model)`.

    Raises:
        TypeError: If a size is not an int.
        ValueError: If a size is below 1, `num_heads` does not divide `d_model`, or `dropout` is
            not within [0, 1].

    Examples:
        >>> import torch
        >>> attention = CausalSelfAttention(d_model=6, num_heads=2).eval()
        >>> x = torch.randn(4, 5, 6)
        >>> y = attention(x)
        >>> torch.allclose(attention(x[:, :3]), y[:, :3], atol=1e-6)
        True
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        dropout: float = 0.1,
        *,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_heads(d_model, num_heads)
        require_probability("dropout", dropout)
        self.d_model = d_model
        self.num_heads = num_heads
        self.c_attn = Conv1D(d_model, 3 * d_model, device=device, dtype=dtype)
        self.c_proj = Conv1D(d_model, d_model, device=device, dtype=dtype)
        self.dropout = Dropout(dropout)

    def reset_parameters(self) -> None:
        """Sets the parameters as :class:`Conv1D` does at the start."""
        self.c_attn.reset_parameters()
        self.c_proj.reset_parameters()

    def forward(
        self,
        x: Float[Tensor, "*batch seq d_model"],
        cache: CacheOrContext = None,
    ) -> Float[Tensor, "*batch seq d_model"]:
        """Attends from each position of `x` to itself and to those before it.

        Args:
            x: Shape `(..., seq, d_model)`; with a cache `(batch, seq, d_model)`.
            cache: Keys and values of the positions before `x`, to which `x` attends. Those of `x`
                are added. Or the context of a model's forward pass, which has it.

        Returns:
            Shape `(..., seq, d_model)`.

        Raises:
            TypeError: If `x` is not of the parameters' dtype, or the cache holds another.
            ValueError: If a shape does not fit, or the cache has no room for `x`.
        """
        require_sequences(self.d_model, x=x)  # c_attn says which dtype it takes
        projections = self.c_attn(x).chunk(3, dim=-1)
        query, key, value = (split_heads(each, self.num_heads) for each in projections)
        p = self.dropout.p if self.training else 0.0
        output = causal_attention(query, key, value, cache, dropout_p=p)
        return self.dropout(self.c_proj(merge_heads(output)))

    def extra_repr(self) -> str:
        """The arguments that no submodule shows, for `print`."""
        return f"{self.d_model}, {self.num_heads}"
