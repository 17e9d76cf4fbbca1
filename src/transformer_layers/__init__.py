"""The layers of the book, each a definition that reads as its equation, and GPT-2 made of them."""

import importlib
from typing import TYPE_CHECKING, Any

from transformer_layers.attention.cache import KeyValueCache
from transformer_layers.attention.definition import attention_weights, scaled_dot_product_attention
from transformer_layers.attention.grouped import GroupedQueryAttention
from transformer_layers.attention.latent import MultiHeadLatentAttention
from transformer_layers.attention.latent_cache import LatentCache
from transformer_layers.attention.masks import (
    causal_mask,
    document_mask,
    padding_mask,
    sliding_window_mask,
)
from transformer_layers.attention.memory import DecoderCache
from transformer_layers.attention.multi_head import MultiHeadAttention
from transformer_layers.attention.sinks import sink_attention
from transformer_layers.attention.soft_cap import soft_capped_attention
from transformer_layers.blocks.decoder import (
    PreNormTransformerDecoderLayer,
    TransformerDecoderLayer,
)
from transformer_layers.blocks.encoder import (
    PreNormTransformerEncoderLayer,
    TransformerEncoderLayer,
)
from transformer_layers.blocks.stacks import TransformerDecoder, TransformerEncoder
from transformer_layers.feed_forward.activations import gelu, gelu_tanh
from transformer_layers.feed_forward.experts import (
    MixtureOfExperts,
    SigmoidRouter,
    TopKRouter,
    balanced_bias,
    load_balancing_loss,
    router_scores,
    router_z_loss,
)
from transformer_layers.feed_forward.gated import GatedFeedForward, PackedGatedFeedForward
from transformer_layers.feed_forward.positionwise import PositionwiseFeedForward
from transformer_layers.generation.beam_search import (
    PaperLengthPenalty,
    PlainLengthPenalty,
    beam_search,
)
from transformer_layers.generation.decoder import cache_bytes
from transformer_layers.generation.label_smoothing import smoothed_cross_entropy
from transformer_layers.generation.sampling import next_token_distribution
from transformer_layers.models.gemma3.config import Gemma3Config
from transformer_layers.models.gemma3.model import Gemma3
from transformer_layers.models.gpt2.attention import CausalSelfAttention
from transformer_layers.models.gpt2.block import GPT2Block
from transformer_layers.models.gpt2.config import GPT2Config
from transformer_layers.models.gpt2.conv1d import Conv1D
from transformer_layers.models.gpt2.feed_forward import FeedForward
from transformer_layers.models.gpt2.model import GPT2
from transformer_layers.models.inspection import Inspection
from transformer_layers.models.llama.config import LlamaConfig
from transformer_layers.models.llama.model import Llama
from transformer_layers.models.rotary_decoder import LlamaBlock
from transformer_layers.models.transformer.config import TransformerConfig
from transformer_layers.models.transformer.model import Transformer
from transformer_layers.norms.batch_norm import BatchNorm1d
from transformer_layers.norms.layer_norm import LayerNorm
from transformer_layers.norms.rms_norm import GemmaRMSNorm, LlamaRMSNorm, RMSNorm
from transformer_layers.positions.rotary import (
    RotaryPositions,
    halves_of_neighbours,
    neighbours_of_halves,
)
from transformer_layers.positions.scaling import (
    DynamicNTKScaling,
    LinearScaling,
    Llama3Scaling,
    LongRoPEScaling,
    NTKScaling,
    YaRNScaling,
)
from transformer_layers.positions.sinusoidal import sinusoidal_positions
from transformer_layers.regularization.dropout import Dropout, dropout
from transformer_layers.regularization.penalties import l1_penalty, l2_penalty, soft_threshold
from transformer_layers.tokenizers.stop_texts import stop_texts

if TYPE_CHECKING:
    from transformer_layers.models.gpt2.inference.model import GPT2ForInference
    from transformer_layers.models.inference import InferenceError
    from transformer_layers.models.load import load_model
    from transformer_layers.models.ready import LlamaForInference, ready_for_inference
    from transformer_layers.tokenizers.load import load_tokenizer
    from transformer_layers.tokenizers.published import PublishedTokenizer
    from transformer_layers.tokenizers.tokenizer import Tokenizer, train_tokenizer

__version__ = "0.1.0"

__all__ = [
    "GPT2",
    "BatchNorm1d",
    "CausalSelfAttention",
    "Conv1D",
    "DecoderCache",
    "Dropout",
    "DynamicNTKScaling",
    "FeedForward",
    "GPT2Block",
    "GPT2Config",
    "GPT2ForInference",
    "GatedFeedForward",
    "Gemma3",
    "Gemma3Config",
    "GemmaRMSNorm",
    "GroupedQueryAttention",
    "InferenceError",
    "Inspection",
    "KeyValueCache",
    "LatentCache",
    "LayerNorm",
    "LinearScaling",
    "Llama",
    "Llama3Scaling",
    "LlamaBlock",
    "LlamaConfig",
    "LlamaForInference",
    "LlamaRMSNorm",
    "LongRoPEScaling",
    "MixtureOfExperts",
    "MultiHeadAttention",
    "MultiHeadLatentAttention",
    "NTKScaling",
    "PackedGatedFeedForward",
    "PaperLengthPenalty",
    "PlainLengthPenalty",
    "PositionwiseFeedForward",
    "PreNormTransformerDecoderLayer",
    "PreNormTransformerEncoderLayer",
    "PublishedTokenizer",
    "RMSNorm",
    "RotaryPositions",
    "SigmoidRouter",
    "Tokenizer",
    "TopKRouter",
    "Transformer",
    "TransformerConfig",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
    "YaRNScaling",
    "attention_weights",
    "balanced_bias",
    "beam_search",
    "cache_bytes",
    "causal_mask",
    "document_mask",
    "dropout",
    "gelu",
    "gelu_tanh",
    "halves_of_neighbours",
    "l1_penalty",
    "l2_penalty",
    "load_balancing_loss",
    "load_model",
    "load_tokenizer",
    "neighbours_of_halves",
    "next_token_distribution",
    "padding_mask",
    "ready_for_inference",
    "router_scores",
    "router_z_loss",
    "scaled_dot_product_attention",
    "sink_attention",
    "sinusoidal_positions",
    "sliding_window_mask",
    "smoothed_cross_entropy",
    "soft_capped_attention",
    "soft_threshold",
    "stop_texts",
    "train_tokenizer",
]

# Imported when they are asked for: inference needs torch's quantized layers, which are
# to be removed, the others libraries of their own.
_LATER = {
    "GPT2ForInference": "transformer_layers.models.gpt2.inference.model",
    "InferenceError": "transformer_layers.models.inference",
    "LlamaForInference": "transformer_layers.models.ready",
    "load_model": "transformer_layers.models.load",
    "ready_for_inference": "transformer_layers.models.ready",
    "PublishedTokenizer": "transformer_layers.tokenizers.published",
    "Tokenizer": "transformer_layers.tokenizers.tokenizer",
    "load_tokenizer": "transformer_layers.tokenizers.load",
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
