"""Small models of each family that `Llama` computes, and those of `transformers` with its weights.

Theirs has norms, angles and softmax in float32 whatever its dtype. To be compared in float64, it is
run with `in_float64`, which has their modules take float64 for it.
"""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any
from unittest import mock

import torch
from torch import nn
from transformers import (
    Gemma3ForCausalLM,
    LlamaForCausalLM,
    MistralForCausalLM,
    MixtralForCausalLM,
    Olmo2ForCausalLM,
    Phi3ForCausalLM,
    PreTrainedModel,
    Qwen2ForCausalLM,
    Qwen3ForCausalLM,
    Qwen3MoeForCausalLM,
    modeling_rope_utils,
)

from transformer_layers import (
    LinearScaling,
    Llama,
    Llama3Scaling,
    LlamaConfig,
    YaRNScaling,
)

VOCAB_SIZE, POSITIONS = 11, 16
SIZES: dict[str, Any] = {
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 12,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": POSITIONS,
}
# Options of ours, by name; theirs have the same names but for rotary positions.
OPTIONS: dict[str, dict[str, Any]] = {
    "llama": {"head_dim": 6, "rope_theta": 100.0},
    "llama with biases": {"attention_bias": True, "mlp_bias": True, "head_dim": 4},
    "llama tied": {"tie_word_embeddings": True, "head_dim": 6, "num_key_value_heads": 1},
    "llama linear": {"head_dim": 6, "rope_scaling": LinearScaling(3.0)},
    "llama 3": {
        "head_dim": 8,
        "rope_theta": 50.0,
        "rope_scaling": Llama3Scaling(4.0, 1.0, 3.0, original_max_position_embeddings=12),
    },
    "llama yarn": {
        "head_dim": 8,
        "rope_theta": 30.0,
        "rope_scaling": YaRNScaling(4.0, original_max_position_embeddings=10, beta_fast=2.0),
    },
    "mistral": {"model_type": "mistral", "head_dim": 6, "sliding_window": 5},
    "qwen2": {
        "model_type": "qwen2",
        "head_dim": 6,
        "hidden_size": 24,
        "sliding_window": 4,
        "max_window_layers": 1,
        "rms_norm_eps": 1e-3,
    },
    "qwen3": {"model_type": "qwen3", "head_dim": 10, "attention_bias": True},
    "olmo2": {"model_type": "olmo2", "hidden_size": 16, "head_dim": 4, "rms_norm_eps": 1e-5},
}
_THEIRS: dict[str, type[PreTrainedModel]] = {
    "llama": LlamaForCausalLM,
    "mistral": MistralForCausalLM,
    "qwen2": Qwen2ForCausalLM,
    "qwen3": Qwen3ForCausalLM,
    "olmo2": Olmo2ForCausalLM,
    "phi3": Phi3ForCausalLM,
    "mixtral": MixtralForCausalLM,
    "qwen3_moe": Qwen3MoeForCausalLM,
    "gemma3_text": Gemma3ForCausalLM,
}
_SCALINGS = {LinearScaling: "linear", Llama3Scaling: "llama3", YaRNScaling: "yarn"}


def config_of(name: str) -> LlamaConfig:
    return LlamaConfig(**SIZES | OPTIONS[name])


def model_of(name: str) -> Llama:
    return Llama(config_of(name))


def their_model(name: str, implementation: str = "eager") -> nn.Module:
    """The model of `transformers` of the same sizes and options, which are typed out here again."""
    options = SIZES | OPTIONS[name]
    family = options.pop("model_type", "llama")
    rope = {"rope_theta": options.pop("rope_theta", 10_000.0), "rope_type": "default"}
    scaling = options.pop("rope_scaling", None)
    if scaling is not None:
        rope |= {"rope_type": _SCALINGS[type(scaling)], **vars(scaling)}
        rope = {name: value for name, value in rope.items() if value is not None}
    if "max_window_layers" in options:
        options["use_sliding_window"] = True
    kind = _THEIRS[family]
    config_class: Any = kind.config_class
    config = config_class(
        **options,
        rope_parameters=rope,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
        attn_implementation=implementation,
        **({"sliding_window": None} if family == "llama" else {}),
    )
    with in_float64():
        return kind(config)


class _Float64:
    """The module torch, with float64 in the place of float32."""

    def __getattr__(self, name: str) -> Any:
        return torch.float64 if name in ("float32", "float") else getattr(torch, name)


@contextmanager
def in_float64(*others: ModuleType) -> Iterator[None]:
    """What their models, and those of other modules, compute in float32 is computed in float64."""
    modules = [*(sys.modules[kind.__module__] for kind in _THEIRS.values()), *others]
    with ExitStack() as stack:
        for each in (*modules, modeling_rope_utils):
            stack.enter_context(mock.patch.object(each, "torch", _Float64()))
        yield
