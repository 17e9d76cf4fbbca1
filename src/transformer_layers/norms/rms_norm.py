"""Root mean square layer normalization."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer_layers.precision import at_least_float32
from transformer_layers.validation import (
    require_dtype,
    require_floating_dtype,
    require_last_axis,
    require_positive,
    require_size,
)


class RMSNorm(nn.Module):
    r"""Root mean square layer normalization, equation 4 of https://arxiv.org/abs/1910.07467.

    .. math::
        y = \gamma \odot \frac{x}{\sqrt{\mathrm{E}[x^2] + \epsilon}}

    Equation 4 itself has no :math:`\epsilon`. The mean of the squares is taken over the last axis,
    for every position of the other axes by itself. Nothing is subtracted: unlike `LayerNorm`, a
    shift of the input changes the output. float16 and bfloat16 input is normalized in float32,
    multiplied by the gain, and then rounded to its own dtype, with parameters of that dtype or of
    float32. So do `torch.nn.RMSNorm` and OLMo 2; :class:`LlamaRMSNorm` and :class:`GemmaRMSNorm`
    are two other functions that published models call RMSNorm.

    A row of zeros gives zeros. So does a row whose squares overflow (finite values beyond about
    1e19 in float32). Without the gain input of any floating dtype is taken, and the classes that
    differ in it are one function.

    Args:
        d_model: Size of the last axis.
        eps: Added to the mean of the squares, :math:`\epsilon`; greater than 0, since a row of
            zeros would be 0/0 without it.
        elementwise_affine: Whether there is a gain, :math:`\gamma`.
        device: Of the parameters; torch's default one if not given.
        dtype: Of the parameters; torch's default one if not given.

    Attributes:
        weight: :math:`\gamma`, shape `(d_model,)`, initially ones; None if
            `elementwise_affine=False`.

    Raises:
        TypeError: If `d_model` is not an int.
        ValueError: If `d_model` is negative or `eps` is not greater than 0.

    Examples:
        >>> rms_norm = RMSNorm(4)
        >>> rms_norm(torch.tensor([[1.0, 1.0, 5.0, 3.0]])).detach()
        tensor([[0.3333, 0.3333, 1.6667, 1.0000]])
    """

    weight: nn.Parameter | None

    def __init__(
        self,
        d_model: int,
        eps: float = 1e-6,
        *,
        elementwise_affine: bool = True,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_size("d_model", d_model, minimum=0)
        require_positive("eps", eps)
        require_floating_dtype(dtype)
        self.d_model = d_model
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        weight = torch.empty(d_model, device=device, dtype=dtype)
        self.register_parameter("weight", nn.Parameter(weight) if elementwise_affine else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets the parameters to their initial values."""
        if self.weight is not None:
            nn.init.ones_(self.weight)

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Normalizes `x` over its last axis.

        Args:
            x: Shape `(..., d_model)`.

        Returns:
            The normalized input, of the shape and dtype of `x`.

        Raises:
            TypeError: If `x` is not floating point, or not of the parameters' dtype, if there are
                any (float16 and bfloat16 may meet float32 parameters).
            ValueError: If the last axis of `x` is not `d_model`.
        """
        require_last_axis("x", x, "d_model", self.d_model)
        dtype = None if self.weight is None else self.weight.dtype
        require_dtype("x", x, dtype, low_precision_input=True)
        wide = at_least_float32(x)
        mean_square = wide.square().mean(dim=-1, keepdim=True)
        x_hat = wide / torch.sqrt(mean_square + self.eps)
        if self.weight is None:
            return x_hat.to(x.dtype)
        return self._with_gain(self.weight, x_hat, x.dtype)

    def _with_gain(self, weight: Tensor, x_hat: Tensor, dtype: torch.dtype) -> Tensor:
        return (weight * x_hat).to(dtype)

    def extra_repr(self) -> str:
        """The arguments, for `print`."""
        gain = "" if self.elementwise_affine else ", elementwise_affine=False"
        return f"{self.d_model}, eps={self.eps}{gain}"


class LlamaRMSNorm(RMSNorm):
    r"""RMSNorm as Llama has it: rounded before the gain.

    .. math::
        y = \gamma \odot \mathrm{round}\left(\frac{x}{\sqrt{\mathrm{E}[x^2] + \epsilon}}\right)

    In float32 and float64 it is :class:`RMSNorm`. In float16 and bfloat16 what is normalized in
    float32 is rounded to the dtype of the input first, and the product with the gain a second time.
    It is `RMSNorm` of https://github.com/meta-llama/llama and `LlamaRMSNorm` of `transformers`;
    Mistral and Qwen have it, too. Arguments, attributes and errors are those of :class:`RMSNorm`.

    Examples:
        >>> x = torch.tensor([[1.0, 2.0, 4.0]], dtype=torch.bfloat16)
        >>> norms = [norm(3, dtype=torch.bfloat16) for norm in (RMSNorm, LlamaRMSNorm)]
        >>> for norm in norms:
        ...     _ = torch.nn.init.constant_(norm.weight, 1.1)
        >>> norms[0](x).equal(norms[1](x))
        False
    """

    def _with_gain(self, weight: Tensor, x_hat: Tensor, dtype: torch.dtype) -> Tensor:
        return (weight * x_hat.to(dtype)).to(dtype)  # the weight may be float32


class GemmaRMSNorm(RMSNorm):
    r"""RMSNorm as Gemma has it: the gain is 1 + w, and all of it is computed in float32.

    .. math::
        y = (1 + w) \odot \frac{x}{\sqrt{\mathrm{E}[x^2] + \epsilon}}

    It is `RMSNorm` of https://github.com/google/gemma_pytorch and `GemmaRMSNorm` of `transformers`.
    The weight starts as zeros. In bfloat16 the sum 1 + w would lose the 1 for a large w, so that it
    is made in float32. Arguments and errors are those of :class:`RMSNorm`.

    Attributes:
        weight: :math:`w`, shape `(d_model,)`, initially zeros; None if `elementwise_affine=False`.

    Examples:
        >>> rms_norm = GemmaRMSNorm(4)
        >>> rms_norm(torch.tensor([[1.0, 1.0, 5.0, 3.0]])).detach()
        tensor([[0.3333, 0.3333, 1.6667, 1.0000]])
    """

    def reset_parameters(self) -> None:
        """Sets the parameters to their initial values."""
        if self.weight is not None:
            nn.init.zeros_(self.weight)

    def _with_gain(self, weight: Tensor, x_hat: Tensor, dtype: torch.dtype) -> Tensor:
        return ((1 + at_least_float32(weight)) * x_hat).to(dtype)
