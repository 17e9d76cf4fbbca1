"""GPT-2's feed-forward layer."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer_layers.models.gpt2.conv1d import Conv1D
from transformer_layers.regularization.dropout import Dropout
from transformer_layers.validation import require_probability, require_size


class FeedForward(nn.Module):
    r"""GPT-2's feed-forward layer.

    It is the `mlp` of `src/model.py` in https://github.com/openai/gpt-2.

    .. math::
        y = \mathrm{GELU}_{\tanh}(x W_{fc} + b_{fc})\, W_{proj} + b_{proj}

    It maps the last axis, every position by itself. The GELU is the tanh form, on which GPT-2's
    weights were trained; it is computed by torch's kernel, which goes through memory once, and not
    by :func:`gelu_tanh`, the definition that the kernel is checked against. The names `c_fc` and
    `c_proj` are those of the published weights. In training dropout acts on the result, as in
    `transformers`.

    Args:
        d_model: Size of the last axis of input and output.
        d_ff: Size between the two maps; `4 * d_model` if not given.
        dropout: Share of the result that is dropped in training.
        device: Of the parameters; torch's default one if not given.
        dtype: Of the parameters; torch's default one if not given.

    Attributes:
        c_fc: :class:`Conv1D`, :math:`W_{fc}`, weight of shape `(d_model, d_ff)`.
        c_proj: :class:`Conv1D`, :math:`W_{proj}`, weight of shape `(d_ff, d_model)`.

    Raises:
        TypeError: If a size is not an int.
        ValueError: If a size is below 1, or `dropout` is not within [0, 1].

    Examples:
        >>> import torch
        >>> feed_forward = FeedForward(d_model=1, d_ff=2).eval()
        >>> with torch.no_grad():
        ...     for parameter in feed_forward.parameters():
        ...         _ = parameter.fill_(1.0)
        >>> feed_forward(torch.tensor([[-1.0], [0.0]])).detach()
        tensor([[1.0000],
                [2.6824]])
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int | None = None,
        dropout: float = 0.1,
        *,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_size("d_model", d_model)
        d_ff = 4 * d_model if d_ff is None else d_ff
        require_size("d_ff", d_ff)
        require_probability("dropout", dropout)
        self.c_fc = Conv1D(d_model, d_ff, device=device, dtype=dtype)
        self.c_proj = Conv1D(d_ff, d_model, device=device, dtype=dtype)
        self.dropout = Dropout(dropout)

    def reset_parameters(self) -> None:
        """Sets the parameters as :class:`Conv1D` does at the start."""
        self.c_fc.reset_parameters()
        self.c_proj.reset_parameters()

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Maps the last axis of `x`.

        Args:
            x: Shape `(..., d_model)`.

        Returns:
            The shape of `x`.

        Raises:
            TypeError: If `x` is not of the parameters' dtype.
            ValueError: If the last axis of `x` is not `d_model`.
        """
        inner = nn.functional.gelu(self.c_fc(x), approximate="tanh")
        return self.dropout(self.c_proj(inner))
