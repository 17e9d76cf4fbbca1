"""The rotations that a layer with other pairs of features may have."""

from collections.abc import Iterator

from torch import nn

from transformer_layers import RotaryPositions
from transformer_layers.positions.rotary import Layout


def each_rotation(layer: nn.Module) -> Iterator[None]:
    """Gives the book's rotary embeddings inside a layer their own layout, and then the other.

    Where there are none, the layer is as it is, once. The last one stays.
    """
    inside = [each for each in layer.modules() if isinstance(each, RotaryPositions)]
    yield
    if inside:
        other: Layout = "neighbours" if inside[0].layout == "halves" else "halves"
        for each in inside:
            each.layout = other
        yield
