"""Penalties on the size of the weights, and the proximal step of the L1 penalty."""

from collections.abc import Iterable

import torch
from jaxtyping import Float
from torch import Tensor

from transformer_layers.precision import at_least_float32
from transformer_layers.validation import require_floating, require_not_negative


def l1_penalty(parameters: Iterable[Float[Tensor, "..."]]) -> Float[Tensor, ""]:
    r"""The sum of the absolute values of all parameters, the penalty of the lasso.

    .. math::
        \lVert w \rVert_1 = \sum_i \lvert w_i \rvert

    Tibshirani (1996), https://doi.org/10.1111/j.2517-6161.1996.tb02080.x. Its gradient is
    :math:`\mathrm{sign}(w)`, and 0 at 0. Gradient descent on it makes weights small, and
    exactly zero by chance only; `soft_threshold` makes them zero.

    Args:
        parameters: Tensors of any shapes, such as `layer.parameters()`, or one tensor.

    Returns:
        A tensor of no axes; float32 for float16 and bfloat16 parameters, whose sum would overflow
        or be rounded to three digits.

    Raises:
        TypeError: If a parameter is not floating point.
        ValueError: If there are no parameters.

    Examples:
        >>> l1_penalty([torch.tensor([[1.0, -2.0], [0.0, 3.0]]), torch.tensor([-4.0])])
        tensor(10.)
    """
    return torch.stack([w.abs().sum() for w in _wide(parameters)]).sum()


def l2_penalty(parameters: Iterable[Float[Tensor, "..."]]) -> Float[Tensor, ""]:
    r"""Half the sum of the squares of all parameters, the penalty of ridge regression.

    .. math::
        \frac{1}{2} \lVert w \rVert_2^2 = \frac{1}{2} \sum_i w_i^2

    Hoerl and Kennard (1970), https://doi.org/10.1080/00401706.1970.10488634. Its gradient is
    :math:`w`: adding :math:`\lambda` times the penalty to the loss is `weight_decay` of
    :math:`\lambda` in `torch.optim.SGD`.

    Args:
        parameters: Tensors of any shapes, such as `layer.parameters()`, or one tensor.

    Returns:
        A tensor of no axes; float32 for float16 and bfloat16 parameters, whose sum would overflow
        or be rounded to three digits.

    Raises:
        TypeError: If a parameter is not floating point.
        ValueError: If there are no parameters.

    Examples:
        >>> l2_penalty([torch.tensor([[1.0, -2.0], [0.0, 3.0]]), torch.tensor([-4.0])])
        tensor(15.)
    """
    return 0.5 * torch.stack([w.square().sum() for w in _wide(parameters)]).sum()


def soft_threshold(x: Float[Tensor, "*shape"], threshold: float) -> Float[Tensor, "*shape"]:
    r"""Moves each element towards zero by `threshold`, and to zero if it is nearer than that.

    .. math::
        S_\lambda(x) = \mathrm{sign}(x) \, \max(\lvert x \rvert - \lambda, 0)
        = x - \min(\max(x, -\lambda), \lambda)

    It is the :math:`z` with the least :math:`\frac{1}{2} (z - x)^2 + \lambda \lvert z \rvert`: the
    proximal step of the L1 penalty, the shrinkage operator of Beck and Teboulle (2009),
    https://doi.org/10.1137/080716542. After a gradient step of rate :math:`\eta` on the loss alone,
    :math:`S_{\eta\lambda}` takes the place of the step along the gradient of the penalty.

    Args:
        x: The input, of any shape.
        threshold: :math:`\lambda`, at least 0.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: If `x` is not floating point.
        ValueError: If `threshold` is negative or NaN.

    Examples:
        >>> soft_threshold(torch.tensor([-3.0, -0.5, 0.0, 0.5, 3.0]), 1.0)
        tensor([-2.,  0.,  0.,  0.,  2.])
    """
    require_floating("x", x)
    require_not_negative("threshold", threshold)
    wide = at_least_float32(x)
    return (wide - wide.clamp(-threshold, threshold)).to(x.dtype)


def _wide(parameters: Iterable[Float[Tensor, "..."]]) -> list[Float[Tensor, "..."]]:
    weights = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    if not weights:
        raise ValueError(
            "no parameters to penalize, got an empty iterable; a generator such as "
            "layer.parameters() can be read only once, so call it anew for each penalty"
        )
    for weight in weights:
        require_floating("each parameter", weight)
    return [at_least_float32(weight) for weight in weights]
