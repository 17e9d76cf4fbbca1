"""GPT-2's linear layer."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer_layers.validation import (
    require_dtype,
    require_floating_dtype,
    require_last_axis,
    require_size,
)


class Conv1D(nn.Module):
    r"""A linear layer that stores its weight as (in, out), as GPT-2's checkpoints do.

    The name is that of `conv1d` in `src/model.py` of https://github.com/openai/gpt-2, a convolution
    of width 1 along the sequence.

    .. math::
        y = x W + b

    Every position of the leading axes is mapped by itself. The weight is the transpose of
    `torch.nn.Linear`'s. The order of the arguments is that of `torch.nn.Linear`, input first; in
    `transformers.pytorch_utils.Conv1D(nf, nx)` the output comes first. A function of `torch` that
    takes the weight of a `torch.nn.Linear` takes `weight.T`.

    `peft` adapts the weight as a parameter, with `LoraConfig(target_modules=[],
    target_parameters=["c_attn.weight"])`. Among `target_modules`, where dropout of the adapter's
    input is possible too, it knows torch's layers and those of `transformers`, and is to be told:
    with `fan_in_fan_out=True`, and `config._register_custom_module({Conv1D: lora.Linear})` for
    the `lora` of `peft.tuners`.

    Args:
        in_features: Size of the last axis of the input.
        out_features: Size of the last axis of the output.
        device: Of the parameters; torch's default one if not given.
        dtype: Of the parameters; torch's default one if not given.

    Attributes:
        weight: :math:`W`, shape `(in_features, out_features)`, initially normal with mean 0 and
            standard deviation 0.02.
        bias: :math:`b`, shape `(out_features,)`, initially zeros.

    Raises:
        TypeError: If a size is not an int.
        ValueError: If a size is negative.

    Examples:
        >>> conv = Conv1D(3, 2)
        >>> with torch.no_grad():
        ...     _ = conv.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [10.0, 10.0]]))
        >>> conv(torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])).detach()
        tensor([[31., 32.],
                [64., 65.]])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_size("in_features", in_features, minimum=0)
        require_size("out_features", out_features, minimum=0)
        require_floating_dtype(dtype)
        self.in_features = in_features
        self.out_features = out_features
        self.weight = nn.Parameter(
            torch.empty(in_features, out_features, device=device, dtype=dtype)
        )
        self.bias = nn.Parameter(torch.empty(out_features, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the weight anew and sets the bias to zeros."""
        nn.init.normal_(self.weight, std=0.02)
        nn.init.zeros_(self.bias)

    def forward(self, x: Float[Tensor, "... in_features"]) -> Float[Tensor, "... out_features"]:
        """Maps the last axis of `x` from `in_features` to `out_features`.

        Args:
            x: Shape `(..., in_features)`.

        Returns:
            The mapped input, shape `(..., out_features)`.

        Raises:
            TypeError: If `x` is not floating point, or not of the parameters' dtype.
            ValueError: If the last axis of `x` is not `in_features`.
        """
        require_last_axis("x", x, "in_features", self.in_features)
        require_dtype("x", x, self.bias.dtype)  # a parametrized weight costs time to look at
        product = x @ self.weight
        return product + self.bias.to(product.dtype)  # autocast lowers the product

    def extra_repr(self) -> str:
        """The arguments, for `print`."""
        return f"{self.in_features}, {self.out_features}"
