"""Multi-head attention."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from transformer_layers.attention.heads import merge_heads, split_heads
from transformer_layers.attention.inputs import (
    require_heads,
    require_mask_of_batch,
    require_sequences,
)
from transformer_layers.attention.kernel import fused_attention
from transformer_layers.validation import (
    dtype_taken_by,
    require_dtype,
    require_floating_dtype,
    require_probability,
)


class MultiHeadAttention(nn.Module):
    r"""Multi-head attention, section 3.2.2 of https://arxiv.org/abs/1706.03762.

    .. math::
        \mathrm{MultiHead}(Q, K, V) &= \mathrm{Concat}(\mathrm{head}_1, \dots, \mathrm{head}_h) W^O
        \\
        \mathrm{head}_i &= \mathrm{Attention}(Q W_i^Q, K W_i^K, V W_i^V)

    Each head attends over the sequence axis by itself, with its own
    :math:`d_k = d_v = d_{model} / h` features of the projected inputs. The :math:`W_i` of all heads
    are one `nn.Linear`. Unlike those of the paper the projections add biases, as in GPT-2, BERT and
    `torch.nn.MultiheadAttention`; with `bias=False` they do not.

    A mask is boolean, True = may attend (`torch.nn.MultiheadAttention` means the opposite), and
    shared by the heads. How it is read depends on its number of axes alone, never on sizes that
    happen to agree: two axes are always `(q_seq, kv_seq)`, one mask for all sequences, also if
    there are as many sequences as queries; more axes are the leading axes of `query` followed by
    `(q_seq, kv_seq)` or `(1, kv_seq)`, never the heads, also if there are as many heads as
    sequences. A padding mask of shape `(batch, kv_seq)` is therefore not one of these;
    :func:`padding_mask` makes it `(batch, 1, kv_seq)`.

    The attention runs in torch's kernel, whose memory, where nothing is dropped, grows with the
    sequence and the mask, not with the square of the sequence (see
    :func:`scaled_dot_product_attention` for the definition that it is checked against).

    Args:
        d_model: Size of the last axis of input and output.
        num_heads: Number of heads, :math:`h`, a divisor of `d_model`.
        dropout: Share of the attention weights that is dropped in training.
        bias: Whether the four projections add a bias.
        device: Of the parameters; torch's default one if not given.
        dtype: Of the parameters; torch's default one if not given.

    Attributes:
        query_proj: `nn.Linear`, :math:`W^Q`, weight of shape `(d_model, d_model)`.
        key_proj: `nn.Linear`, :math:`W^K`, weight of shape `(d_model, d_model)`.
        value_proj: `nn.Linear`, :math:`W^V`, weight of shape `(d_model, d_model)`.
        output_proj: `nn.Linear`, :math:`W^O`, weight of shape `(d_model, d_model)`. All four are
            initially as `nn.Linear` draws them.

    Raises:
        TypeError: If a size is not an int.
        ValueError: If a size is below 1, `num_heads` does not divide `d_model`, or `dropout` is
            not within [0, 1].

    Examples:
        >>> import torch
        >>> from transformer_layers import causal_mask, padding_mask
        >>> attention = MultiHeadAttention(d_model=6, num_heads=2)
        >>> x = torch.randn(4, 5, 6)
        >>> attention(x, x, x, mask=causal_mask(5)).shape
        torch.Size([4, 5, 6])
        >>> memory = torch.randn(4, 3, 6)
        >>> attention(x, memory, memory, padding_mask(torch.tensor([3, 1, 2, 0]), seq=3)).shape
        torch.Size([4, 5, 6])
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        *,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_heads(d_model, num_heads)
        require_probability("dropout", dropout)
        require_floating_dtype(dtype)
        self.d_model = d_model
        self.num_heads = num_heads
        self.dropout = dropout
        self.query_proj = nn.Linear(d_model, d_model, bias, device=device, dtype=dtype)
        self.key_proj = nn.Linear(d_model, d_model, bias, device=device, dtype=dtype)
        self.value_proj = nn.Linear(d_model, d_model, bias, device=device, dtype=dtype)
        self.output_proj = nn.Linear(d_model, d_model, bias, device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draws the parameters of the four projections anew."""
        self.query_proj.reset_parameters()
        self.key_proj.reset_parameters()
        self.value_proj.reset_parameters()
        self.output_proj.reset_parameters()

    def forward(
        self,
        query: Float[Tensor, "*batch q_seq d_model"],
        key: Float[Tensor, "*batch kv_seq d_model"],
        value: Float[Tensor, "*batch kv_seq d_model"],
        mask: Bool[Tensor, "*mask_batch _ kv_seq"] | None = None,
    ) -> Float[Tensor, "*batch q_seq d_model"]:
        """Attends from each position of `query` to the positions of `key` and `value`.

        Args:
            query: Shape `(..., q_seq, d_model)`.
            key: Shape `(..., kv_seq, d_model)`, with the leading axes of `query`.
            value: Shape `(..., kv_seq, d_model)`, that of `key`.
            mask: Boolean, True = may attend: shape `(q_seq, kv_seq)`, `(..., q_seq, kv_seq)` or
                `(..., 1, kv_seq)`.

        Returns:
            Shape `(..., q_seq, d_model)`. A query that may attend to nothing gives the bias of
            `output_proj`, and 0 with `bias=False`.

        Raises:
            TypeError: If an input is not of the parameters' dtype, or the mask is not boolean.
            ValueError: If a shape does not fit.
        """
        require_sequences(self.d_model, query=query, key=key, value=value)
        require_dtype("query", query, dtype_taken_by(self.query_proj))
        require_dtype("key", key, dtype_taken_by(self.key_proj))
        require_dtype("value", value, dtype_taken_by(self.value_proj))
        if mask is not None:
            require_mask_of_batch(mask, query, key)
        output = fused_attention(
            split_heads(self.query_proj(query), self.num_heads),
            split_heads(self.key_proj(key), self.num_heads),
            split_heads(self.value_proj(value), self.num_heads),
            mask,
            dropout_p=self.dropout if self.training else 0.0,
        )
        return self.output_proj(merge_heads(output))

    def extra_repr(self) -> str:
        """The arguments that no submodule shows, for `print`."""
        return f"{self.d_model}, {self.num_heads}, dropout={self.dropout}"
