"""Stacks of encoder and of decoder layers."""

from collections.abc import Iterable, Sequence

from jaxtyping import Bool, Float
from torch import Tensor, nn

from transformer_layers.attention.memory import DecoderCache


class _Stack(nn.Module):
    """Layers, one behind the other, and a norm of what the last one gives."""

    def __init__(self, layers: Iterable[nn.Module], norm: nn.Module | None = None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        if len(set(self.layers)) != len(self.layers):
            raise ValueError(
                f"each of the {len(self.layers)} layers must be a layer of its own, got "
                f"{len(set(self.layers))} different ones: they would share their weights"
            )
        self.norm = norm

    def reset_parameters(self) -> None:
        """Draws the parameters of each layer anew."""
        for layer in (*self.layers, self.norm):
            if layer is not None:
                layer.reset_parameters()


class TransformerEncoder(_Stack):
    """A stack of encoder layers, section 3.1 of https://arxiv.org/abs/1706.03762.

    The layers are handed over, each drawn by itself: `torch.nn.TransformerEncoder` copies one, so
    that all begin with the same weights.

    Args:
        layers: Encoder layers, such as :class:`TransformerEncoderLayer`.
        norm: Of the last layer's output. Layers with the norm inside the residual need one; the
            paper's have none, though `torch.nn.Transformer` always adds one.

    Attributes:
        layers: The layers.
        norm: The norm, or None.

    Raises:
        ValueError: If a layer is given twice.

    Examples:
        >>> import torch
        >>> from transformer_layers import TransformerEncoderLayer
        >>> encoder = TransformerEncoder(TransformerEncoderLayer(6, 2, 8) for _ in range(3))
        >>> encoder(torch.randn(3, 5, 6)).shape
        torch.Size([3, 5, 6])
    """

    def forward(
        self,
        x: Float[Tensor, "*batch seq d_model"],
        mask: Bool[Tensor, "*mask_batch _ seq"] | None = None,
    ) -> Float[Tensor, "*batch seq d_model"]:
        """Maps x by each layer in turn.

        Args:
            x: Shape `(..., seq, d_model)`.
            mask: What each position may attend to, as in :class:`TransformerEncoderLayer`.

        Returns:
            The shape of `x`; errors are those of the layers.
        """
        for layer in self.layers:
            x = layer(x, mask)
        return x if self.norm is None else self.norm(x)


class TransformerDecoder(_Stack):
    """A stack of decoder layers, all of which attend to the same memory.

    Section 3.1 of https://arxiv.org/abs/1706.03762.

    Args:
        layers: Decoder layers, such as :class:`TransformerDecoderLayer`.
        norm: Of the last layer's output, as in :class:`TransformerEncoder`.

    Attributes:
        layers: The layers.
        norm: The norm, or None.

    Raises:
        ValueError: If a layer is given twice.

    Examples:
        >>> import torch
        >>> from transformer_layers import TransformerDecoderLayer, causal_mask
        >>> decoder = TransformerDecoder(TransformerDecoderLayer(6, 2, 8) for _ in range(3))
        >>> decoder(torch.randn(3, 5, 6), torch.randn(3, 4, 6), causal_mask(5)).shape
        torch.Size([3, 5, 6])
    """

    def forward(
        self,
        x: Float[Tensor, "*batch seq d_model"],
        memory: Float[Tensor, "*memory_batch memory_seq d_model"],
        mask: Bool[Tensor, "*mask_batch _ seq"] | None = None,
        memory_mask: Bool[Tensor, "*memory_mask_batch _ memory_seq"] | None = None,
        caches: Sequence[DecoderCache] | None = None,
    ) -> Float[Tensor, "*batch seq d_model"]:
        """Maps x by each layer in turn.

        Args:
            x: See :class:`TransformerDecoderLayer`, as for all arguments and errors.
            memory: See there.
            mask: See there.
            memory_mask: See there.
            caches: A cache for each layer.

        Returns:
            The shape of `x`.
        """
        for i, layer in enumerate(self.layers):
            x = layer(x, memory, mask, memory_mask, caches[i] if caches else None)
        return x if self.norm is None else self.norm(x)
