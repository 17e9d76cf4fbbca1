"""Attention heads: cutting the model's axis into heads, and putting it together again."""

from jaxtyping import Float
from torch import Tensor


def split_heads(
    x: Float[Tensor, "*batch seq d_model"], num_heads: int
) -> Float[Tensor, "*batch num_heads seq d_k"]:
    """Gives each head its own `d_k = d_model / num_heads` features of every position.

    Args:
        x: Shape `(..., seq, d_model)`.
        num_heads: Number of heads, a divisor of `d_model`.

    Returns:
        View of `x`, shape `(..., num_heads, seq, d_k)`; head h has features `h * d_k` and on.

    Examples:
        >>> import torch
        >>> split_heads(torch.tensor([[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]]), num_heads=2)
        tensor([[[0., 1.],
                 [4., 5.]],
        <BLANKLINE>
                [[2., 3.],
                 [6., 7.]]])
    """
    d_k = x.shape[-1] // num_heads
    return x.unflatten(-1, (num_heads, d_k)).transpose(-3, -2)


def merge_heads(
    x: Float[Tensor, "*batch num_heads seq d_k"],
) -> Float[Tensor, "*batch seq d_model"]:
    """Puts the heads' features of each position side by side again, undoing :func:`split_heads`.

    Args:
        x: Shape `(..., num_heads, seq, d_k)`.

    Returns:
        Shape `(..., seq, num_heads * d_k)`.

    Examples:
        >>> import torch
        >>> x = torch.tensor([[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]])
        >>> merge_heads(split_heads(x, num_heads=2))
        tensor([[0., 1., 2., 3.],
                [4., 5., 6., 7.]])
    """
    return x.transpose(-3, -2).flatten(-2)
