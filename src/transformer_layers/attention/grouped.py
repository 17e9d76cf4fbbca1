"""Causal attention with fewer heads of keys than of queries."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer_layers.attention.causal import causal_attention
from transformer_layers.attention.context import CacheOrContext
from transformer_layers.attention.heads import merge_heads, split_heads
from transformer_layers.attention.inputs import require_heads, require_sequences
from transformer_layers.positions.rotary import Positions
from transformer_layers.validation import (
    dtype_taken_by,
    require_dtype,
    require_floating_dtype,
    require_size,
)

Norm = Callable[[int], nn.Module]


class GroupedQueryAttention(nn.Module):
    r"""Grouped-query attention of a sequence to itself, https://arxiv.org/abs/2305.13245.

    .. math::
        \mathrm{head}_h &= \mathrm{softmax}\left(\frac{Q_h K_g^\top}{\sqrt{d_k}} + M\right) V_g \\
        g &= \lfloor h / (\mathrm{num\_heads} / \mathrm{num\_kv\_heads}) \rfloor

    It is section 2.2 there. Each position attends to itself and to earlier ones. As many
    neighboring heads of queries read one head of keys and values. With one head of keys it is
    multi-query attention (https://arxiv.org/abs/1911.02150), with as many as of queries the
    attention of https://arxiv.org/abs/1706.03762. A cache holds `2 * num_kv_heads * d_k` numbers a
    token. The names are those of Llama's weights in `transformers`.

    Args:
        d_model: Size of the last axis of input and output.
        num_heads: Heads of queries.
        num_kv_heads: Heads of keys and values, a divisor of `num_heads`.
        d_k: Features of a head; `d_model / num_heads` if not given.
        positions: Maps queries and keys, each with its positions, such as :class:`RotaryPositions`;
            without it only the mask tells positions apart. An attention that rotates inside, as
            that of Llama in other libraries, is this layer with `positions=RotaryPositions(d_k)`,
            and the base of that model.
        window: How many keys a query sees at most, itself among them; all if not given.
        bias: Whether the maps to queries, keys and values have one.
        output_bias: Whether the map of the heads' results has one; as `bias` if not given.
        head_norm: Makes a norm of its size, for queries and for keys of each head by itself, before
            positions (as in Qwen 3); none if not given.
        projection_norm: The same over all heads together (as in OLMo 2).
        device: Of the parameters; torch's default one if not given.
        dtype: Of the parameters; torch's default one if not given.

    Attributes:
        q_proj: `nn.Linear`, weight of shape `(num_heads * d_k, d_model)`.
        k_proj: `nn.Linear`, weight of shape `(num_kv_heads * d_k, d_model)`.
        v_proj: `nn.Linear`, weight of shape `(num_kv_heads * d_k, d_model)`.
        o_proj: `nn.Linear`, weight of shape `(d_model, num_heads * d_k)`.
        q_norm: The norm of queries; the identity without one.
        k_norm: The norm of keys; the identity without one.

    Raises:
        TypeError: If a size is not an int.
        ValueError: If a size is below 1, `num_kv_heads` does not divide `num_heads`, `d_k` is not
            given and `num_heads` does not divide `d_model`, or there are to be both kinds of norm.

    Examples:
        >>> from transformer_layers import RotaryPositions
        >>> attention = GroupedQueryAttention(8, 4, 2, positions=RotaryPositions(2))
        >>> attention(torch.randn(3, 5, 8)).shape
        torch.Size([3, 5, 8])
        >>> attention.k_proj.weight.shape
        torch.Size([4, 8])
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        num_kv_heads: int,
        d_k: int | None = None,
        positions: Positions | None = None,
        window: int | None = None,
        *,
        bias: bool = False,
        output_bias: bool | None = None,
        head_norm: Norm | None = None,
        projection_norm: Norm | None = None,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_heads(num_heads, num_kv_heads, names=("num_heads", "num_kv_heads"))
        if d_k is None:
            require_heads(d_model, num_heads)
            d_k = d_model // num_heads
        require_size("d_model", d_model)
        require_size("d_k", d_k)
        if window is not None:
            require_size("window", window)
        require_floating_dtype(dtype)
        if head_norm and projection_norm:
            raise ValueError("pass either head_norm or projection_norm, got both")
        self.d_model = d_model
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        self.d_k = d_k
        self.window = window
        output_bias = bias if output_bias is None else output_bias
        sizes = (num_heads * d_k, num_kv_heads * d_k)
        self.q_proj = nn.Linear(d_model, sizes[0], bias, device=device, dtype=dtype)
        self.k_proj = nn.Linear(d_model, sizes[1], bias, device=device, dtype=dtype)
        self.v_proj = nn.Linear(d_model, sizes[1], bias, device=device, dtype=dtype)
        self.o_proj = nn.Linear(sizes[0], d_model, output_bias, device=device, dtype=dtype)
        self.norms_heads = head_norm is not None
        if head_norm is not None:
            self.q_norm, self.k_norm = head_norm(d_k), head_norm(d_k)
        elif projection_norm is not None:
            self.q_norm, self.k_norm = (projection_norm(size) for size in sizes)
        else:
            self.q_norm, self.k_norm = nn.Identity(), nn.Identity()
        for norm in (self.q_norm, self.k_norm):
            norm.to(device=device, dtype=dtype)
        self.positions = positions

    def reset_parameters(self) -> None:
        """Draws the parameters of the projections anew, and resets the norms."""
        for layer in self.children():
            reset = getattr(layer, "reset_parameters", None)
            if reset is not None:
                reset()

    def forward(
        self,
        x: Float[Tensor, "*batch seq d_model"],
        cache: CacheOrContext = None,
    ) -> Float[Tensor, "*batch seq d_model"]:
        """Attends from each position of `x` to itself and to those before it.

        Args:
            x: Shape `(..., seq, d_model)`; with a cache `(batch, seq, d_model)`.
            cache: Keys and values of the positions before `x`, to which `x` attends. Those of `x`
                are added. Or the context of a model's forward pass, which has it, and whose
                rotation stands in the place of the layer's own positions.

        Returns:
            Shape `(..., seq, d_model)`.

        Raises:
            TypeError: If `x` is not of the parameters' dtype, or the cache holds another.
            ValueError: If a shape does not fit, or the cache has no room for `x`.
        """
        require_sequences(self.d_model, x=x)
        require_dtype("x", x, dtype_taken_by(self.q_proj))
        query = self._heads(self.q_proj(x), self.q_norm, self.num_heads)
        key = self._heads(self.k_proj(x), self.k_norm, self.num_kv_heads)
        value = split_heads(self.v_proj(x), self.num_kv_heads)
        output = causal_attention(query, key, value, cache, self.positions, window=self.window)
        return self.o_proj(merge_heads(output))

    def _heads(self, projected: Tensor, norm: nn.Module, heads: int) -> Tensor:
        if self.norms_heads:
            return norm(split_heads(projected, heads))
        return split_heads(norm(projected), heads)

    def extra_repr(self) -> str:
        """The arguments that no submodule shows, for `print`."""
        window = "" if self.window is None else f", window={self.window}"
        return f"{self.d_model}, {self.num_heads}, {self.num_kv_heads}, d_k={self.d_k}{window}"
