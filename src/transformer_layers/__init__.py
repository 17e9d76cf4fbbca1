"""The layers of the book, each a definition that reads as its equation."""

from transformer_layers.activations import gelu, gelu_tanh
from transformer_layers.batch_norm import BatchNorm1d
from transformer_layers.conv1d import Conv1D
from transformer_layers.dropout import Dropout, dropout
from transformer_layers.layer_norm import LayerNorm
from transformer_layers.penalties import l1_penalty, l2_penalty, soft_threshold
from transformer_layers.rms_norm import RMSNorm

__all__ = [
    "BatchNorm1d",
    "Conv1D",
    "Dropout",
    "LayerNorm",
    "RMSNorm",
    "dropout",
    "gelu",
    "gelu_tanh",
    "l1_penalty",
    "l2_penalty",
    "soft_threshold",
]
