"""Positions as vectors."""

import torch
from jaxtyping import Float
from torch import Tensor

from transformer_layers.validation import require_size


def sinusoidal_positions(
    seq: int, d_model: int, *, dtype: torch.dtype | None = None
) -> Float[Tensor, "seq d_model"]:
    r"""The sinusoidal position table, section 3.5 of https://arxiv.org/abs/1706.03762.

    .. math::
        PE_{pos, 2i} &= \sin\left(pos / 10000^{2i / d_{model}}\right)
        \\
        PE_{pos, 2i + 1} &= \cos\left(pos / 10000^{2i / d_{model}}\right)

    Rows are positions, from 0. With an odd `d_model` the last sine has no cosine beside it. The
    angles are computed in float64: in float32 they would be off by several 1e-4 at position 10,000.

    Args:
        seq: Number of positions.
        d_model: Size of a position's vector.
        dtype: Of the result; torch's default dtype if not given.

    Returns:
        Shape `(seq, d_model)`.

    Raises:
        TypeError: If `seq` or `d_model` is not an int.
        ValueError: If `seq` is negative, or `d_model` below 1.

    Examples:
        >>> sinusoidal_positions(3, 4)
        tensor([[ 0.0000,  1.0000,  0.0000,  1.0000],
                [ 0.8415,  0.5403,  0.0100,  0.9999],
                [ 0.9093, -0.4161,  0.0200,  0.9998]])
    """
    require_size("seq", seq, minimum=0)
    require_size("d_model", d_model)
    pos = torch.arange(seq, dtype=torch.float64)
    even = torch.arange(0, d_model, 2, dtype=torch.float64)  # the numbers 2i
    angles = pos[:, None] / 10000 ** (even / d_model)
    waves = torch.stack((angles.sin(), angles.cos()), dim=-1)
    table = waves.flatten(-2)  # sin, cos, sin, cos, ...
    return table[:, :d_model].to(torch.get_default_dtype() if dtype is None else dtype)


def sines_then_cosines(
    table: Float[Tensor, "seq d_model"],
) -> Float[Tensor, "seq d_model"]:
    """Puts the sines of a table of positions in front, and the cosines behind them.

    tensor2tensor, by the paper's authors, has this order, and so has Marian. It is one permutation
    of the features, the same for each position, so that a linear map can undo it.

    Args:
        table: What :func:`sinusoidal_positions` gives.

    Returns:
        The same columns, those of even numbers first.

    Examples:
        >>> sines_then_cosines(sinusoidal_positions(2, 4))
        tensor([[0.0000, 0.0000, 1.0000, 1.0000],
                [0.8415, 0.0100, 0.5403, 0.9999]])
    """
    return torch.cat([table[:, 0::2], table[:, 1::2]], dim=-1)
