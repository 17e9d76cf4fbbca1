"""The Gaussian error linear unit, in its exact form and in GPT-2's."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from transformer_layers.precision import at_least_float32
from transformer_layers.validation import require_floating


def gelu(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    r"""The Gaussian error linear unit, section 2 of https://arxiv.org/abs/1606.08415.

    .. math::
        \mathrm{GELU}(x) = x \, \Phi(x) = \frac{x}{2} \,
        \mathrm{erfc}\left(-\frac{x}{\sqrt{2}}\right)

    :math:`\Phi` is the distribution function of the standard normal distribution. Each element is
    mapped by itself; float16 and bfloat16 are computed in float32 and returned in their own dtype.
    At minus infinity, where the limit is 0, the result is NaN, as in torch.

    Args:
        x: The input, of any shape.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: If `x` is not floating point.

    Examples:
        >>> gelu(torch.tensor([-1.0, 0.0, 1.0, 2.0]))
        tensor([-0.1587,  0.0000,  0.8413,  1.9545])
    """
    require_floating("x", x)
    wide = at_least_float32(x)
    # 1 + erf(x / sqrt 2) is the same number, but cancels to 0 below -6 in float32
    y = 0.5 * wide * torch.erfc(-wide / math.sqrt(2))
    return y.to(x.dtype)


def gelu_tanh(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    r"""The tanh approximation of `gelu`, section 2 of https://arxiv.org/abs/1606.08415.

    .. math::
        \mathrm{GELU}(x) \approx \frac{x}{2} \left(1 +
        \tanh\left[\sqrt{2 / \pi} \left(x + 0.044715 x^3\right)\right]\right)

    GPT-2's weights were trained with this form. It differs from the exact one by up to 4.7e-4. Each
    element is mapped by itself; float16 and bfloat16 are computed in float32 and returned in
    their own dtype. At minus infinity, where the limit is 0, the result is NaN, as in torch.

    Args:
        x: The input, of any shape.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: If `x` is not floating point.

    Examples:
        >>> gelu_tanh(torch.tensor([-1.0, 0.0, 1.0, 2.0]))
        tensor([-0.1588,  0.0000,  0.8412,  1.9546])
    """
    require_floating("x", x)
    wide = at_least_float32(x)
    inner = math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)
    y = 0.5 * wide * (1 + torch.tanh(inner))
    return y.to(x.dtype)
