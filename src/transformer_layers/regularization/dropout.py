"""Dropout. That of attention weights is torch's own, in `attention/kernel.py`."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer_layers.validation import require_floating, require_probability


def dropout(
    x: Float[Tensor, "*shape"], p: float = 0.5, training: bool = True
) -> Float[Tensor, "*shape"]:
    r"""Sets each element to zero with probability `p` and divides the others by `1 - p`.

    .. math::
        y_i = \frac{m_i x_i}{1 - p}, \qquad m_i = 0 \text{ with probability } p,
        \text{ otherwise } 1

    Srivastava et al. (2014), https://jmlr.org/papers/v15/srivastava14a.html, whose main form
    scales at test time and whose section 10 has this one. For `p < 1` the expected value of each
    element stays what it was, so that nothing is to be rescaled when dropout is off; `p = 1` gives
    zeros.

    A dropped element is 0 and has gradient 0 even where the input is infinite or NaN. The draws
    are made in float32 at least: in bfloat16 no draw comes nearer to 1 than 1/256, and `p = 0.999`
    would keep nothing.

    Args:
        x: The input, of any shape.
        p: Probability that an element is dropped.
        training: Whether to drop at all.

    Returns:
        A tensor of the shape and dtype of `x`; if `training` is false or `p` is 0, `x` itself.

    Raises:
        TypeError: If `x` is not floating point.
        ValueError: If `p` is outside [0, 1] or NaN.

    Examples:
        >>> _ = torch.manual_seed(0)
        >>> dropout(torch.ones(8), p=0.75).unique()
        tensor([0., 4.])
        >>> dropout(torch.ones(3), p=0.75, training=False)
        tensor([1., 1., 1.])
    """
    require_probability("p", p)
    require_floating("x", x)
    if not training or p == 0:
        return x
    draws = torch.rand_like(x, dtype=torch.promote_types(x.dtype, torch.float32))
    scale = 1 / (1 - p) if p < 1 else 0.0
    return torch.where(draws >= p, x, 0.0) * scale


class Dropout(nn.Module):
    """Dropout as a layer: `dropout` in training, the identity in evaluation.

    Args:
        p: Probability that an element is dropped.

    Raises:
        ValueError: If `p` is outside [0, 1] or NaN.

    Examples:
        >>> layer = Dropout(0.75)
        >>> x = torch.ones(3)
        >>> layer.eval()(x) is x
        True
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        require_probability("p", p)
        self.p = p

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """Drops elements of `x` in training, as :func:`dropout` does."""
        return dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        """The argument, for `print`."""
        return f"p={self.p}"
