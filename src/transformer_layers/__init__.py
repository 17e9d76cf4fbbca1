"""The layers of the book, each a definition that reads as its equation, and GPT-2 made of them."""

from transformer_layers.activations import gelu, gelu_tanh
from transformer_layers.attention.definition import attention_weights, scaled_dot_product_attention
from transformer_layers.attention.masks import causal_mask, padding_mask
from transformer_layers.attention.multi_head import MultiHeadAttention
from transformer_layers.batch_norm import BatchNorm1d
from transformer_layers.dropout import Dropout, dropout
from transformer_layers.encoder import PreNormTransformerEncoderLayer, TransformerEncoderLayer
from transformer_layers.gpt2.attention import CausalSelfAttention
from transformer_layers.gpt2.block import GPT2Block
from transformer_layers.gpt2.cache import KeyValueCache
from transformer_layers.gpt2.config import GPT2Config
from transformer_layers.gpt2.conv1d import Conv1D
from transformer_layers.gpt2.feed_forward import FeedForward
from transformer_layers.gpt2.inference.model import (
    GPT2ForInference,
    InferenceError,
    ready_for_inference,
)
from transformer_layers.gpt2.model import GPT2
from transformer_layers.gpt2.sampling import next_token_distribution
from transformer_layers.gpt2.tokenizer import Tokenizer, load_tokenizer, train_tokenizer
from transformer_layers.layer_norm import LayerNorm
from transformer_layers.penalties import l1_penalty, l2_penalty, soft_threshold
from transformer_layers.positions import sinusoidal_positions
from transformer_layers.positionwise_feed_forward import PositionwiseFeedForward
from transformer_layers.rms_norm import RMSNorm

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
