"""The layers of the book, each a definition that reads as its equation, and GPT-2 made of them."""

import importlib
from typing import TYPE_CHECKING, Any

from transformer_layers.attention.cache import KeyValueCache
from transformer_layers.attention.definition import attention_weights, scaled_dot_product_attention
from transformer_layers.attention.masks import causal_mask, padding_mask
from transformer_layers.attention.multi_head import MultiHeadAttention
from transformer_layers.blocks.encoder import (
    PreNormTransformerEncoderLayer,
    TransformerEncoderLayer,
)
from transformer_layers.feed_forward.activations import gelu, gelu_tanh
from transformer_layers.feed_forward.positionwise import PositionwiseFeedForward
from transformer_layers.generation.sampling import next_token_distribution
from transformer_layers.models.gpt2.attention import CausalSelfAttention
from transformer_layers.models.gpt2.block import GPT2Block
from transformer_layers.models.gpt2.config import GPT2Config
from transformer_layers.models.gpt2.conv1d import Conv1D
from transformer_layers.models.gpt2.feed_forward import FeedForward
from transformer_layers.models.gpt2.model import GPT2
from transformer_layers.norms.batch_norm import BatchNorm1d
from transformer_layers.norms.layer_norm import LayerNorm
from transformer_layers.norms.rms_norm import RMSNorm
from transformer_layers.positions.sinusoidal import sinusoidal_positions
from transformer_layers.regularization.dropout import Dropout, dropout
from transformer_layers.regularization.penalties import l1_penalty, l2_penalty, soft_threshold

if TYPE_CHECKING:
    from transformer_layers.models.gpt2.inference.model import (
        GPT2ForInference,
        InferenceError,
        ready_for_inference,
    )
    from transformer_layers.tokenizers.tokenizer import Tokenizer, load_tokenizer, train_tokenizer

__version__ = "0.1.0"

__all__ = [
    "GPT2",
    "BatchNorm1d",
    "CausalSelfAttention",
    "Conv1D",
    "Dropout",
    "FeedForward",
    "GPT2Block",
    "GPT2Config",
    "GPT2ForInference",
    "InferenceError",
    "KeyValueCache",
    "LayerNorm",
    "MultiHeadAttention",
    "PositionwiseFeedForward",
    "PreNormTransformerEncoderLayer",
    "RMSNorm",
    "Tokenizer",
    "TransformerEncoderLayer",
    "attention_weights",
    "causal_mask",
    "dropout",
    "gelu",
    "gelu_tanh",
    "l1_penalty",
    "l2_penalty",
    "load_tokenizer",
    "next_token_distribution",
    "padding_mask",
    "ready_for_inference",
    "scaled_dot_product_attention",
    "sinusoidal_positions",
    "soft_threshold",
    "train_tokenizer",
]

# Imported when they are asked for: the first three need torch's quantized layers, which are to be
# removed, the others a library of their own.
_LATER = {
    "GPT2ForInference": "transformer_layers.models.gpt2.inference.model",
    "InferenceError": "transformer_layers.models.gpt2.inference.model",
    "ready_for_inference": "transformer_layers.models.gpt2.inference.model",
    "Tokenizer": "transformer_layers.tokenizers.tokenizer",
    "load_tokenizer": "transformer_layers.tokenizers.tokenizer",
    "train_tokenizer": "transformer_layers.tokenizers.tokenizer",
}


def __getattr__(name: str) -> Any:
    """Imports what is imported when it is asked for."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = getattr(importlib.import_module(_LATER[name]), name)
    return found


def __dir__() -> list[str]:
    """The names that there are, imported yet or not."""
    return sorted({*globals(), *__all__})
