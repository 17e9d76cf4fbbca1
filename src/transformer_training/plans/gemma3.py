"""Training of Gemma 3's text model, which costs what a Llama does, and its other norms."""

from dataclasses import replace
from typing import Any

from transformer_layers import Gemma3, Gemma3Config, LlamaConfig
from transformer_layers.models.gemma3.checkpoint import CODEC
from transformer_training.plans import llama
from transformer_training.plans.plan import Plan

_FLOAT32 = 4


def activation_bytes(sizes: Gemma3Config, precision: str = "float32", tensor_ranks: int = 1) -> int:
    r"""Bytes that a token leaves on one rank for the backward pass.

    They are a Llama's. Beside, a block's two other norms leave their inputs and what they divide,
    :math:`4 d` numbers, and the norms of heads as much of queries and keys. The gate is a GELU,
    which :func:`gelu_tanh` computes in float32 and in steps: they leave :math:`3 d_{ff}` more.

    Args:
        sizes: The model's.
        precision: `float32` or `bfloat16`.
        tensor_ranks: How many ranks share each matrix of a block.
    """
    heads = sizes.num_attention_heads + sizes.num_key_value_heads
    norms = 2 * (2 * sizes.hidden_size + 2) + heads * (2 * sizes.head_dim + 2) // tensor_ranks
    gate = (4 * _FLOAT32 - (2 if precision == "bfloat16" else _FLOAT32)) * sizes.intermediate_size
    of_llama = llama.activation_bytes(_as_llama(sizes), precision, tensor_ranks)
    return of_llama + sizes.num_hidden_layers * (_FLOAT32 * norms + gate // tensor_ranks)


def _as_llama(sizes: Gemma3Config) -> LlamaConfig:
    """A model with matrices of the same sizes."""
    return LlamaConfig(
        sizes.vocab_size,
        sizes.hidden_size,
        sizes.intermediate_size,
        sizes.num_hidden_layers,
        sizes.num_attention_heads,
        sizes.num_key_value_heads,
        sizes.head_dim,
        max_position_embeddings=sizes.max_seq,
        model_type="qwen3",
    )


def _sizes_of(**options: Any) -> Gemma3Config:
    if options["dropout"]:
        raise ValueError(f"a Gemma 3 has no dropout, got {options['dropout']}")
    found = llama.PLAN.sizes_of(**options)
    return Gemma3Config(
        found.vocab_size,
        found.hidden_size,
        found.intermediate_size,
        found.num_hidden_layers,
        found.num_attention_heads,
        found.kv_heads,
        found.d_k,
        found.max_position_embeddings,
        sliding_window=512,
        query_pre_attn_scalar=found.d_k,
    )


PLAN = Plan(
    name="gemma3",
    sizes=Gemma3Config,
    sizes_of=_sizes_of,
    model=Gemma3,
    codec=CODEC,
    shape=lambda sizes: llama.PLAN.shape(_as_llama(sizes)),
    with_blocks=lambda sizes, blocks: replace(sizes, num_hidden_layers=blocks, layer_types=None),
    blocks=lambda model: model.model.layers,
    cuts={},  # each rank would have a part of the gradients of the norms of heads
    share_heads=llama.PLAN.share_heads,
    activation_bytes=activation_bytes,
    flops_of_token=lambda sizes, seq, ranks: llama.flops_of_token(_as_llama(sizes), seq, ranks),
    matrix_weights=lambda sizes, ranks: llama.matrix_weights(_as_llama(sizes), ranks),
)
