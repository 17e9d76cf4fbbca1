"""Training of Llama."""

from dataclasses import replace

from torch import nn

from transformer_layers import Llama, LlamaConfig, MixtureOfExperts
from transformer_layers.models.llama.checkpoint import CODEC
from transformer_layers.models.rotary_decoder import LlamaBlock
from transformer_training.plans.cuts import Columns, Rows
from transformer_training.plans.plan import Plan, Shape

_FLOAT32 = 4


def flops_of_token(sizes: LlamaConfig, seq: int, tensor_ranks: int = 1) -> int:
    r"""Operations of a step for one token on one rank, forward and backward.

    As for GPT-2, a weight of a matrix costs six, and attention :math:`12 s d` in each block, where
    :math:`d` are the features of all heads of queries: fewer heads of keys save none of them.

    Args:
        sizes: The model's.
        seq: Positions of a sequence, :math:`s`.
        tensor_ranks: How many ranks share each matrix of a block.
    """
    attention = 12 * sizes.num_hidden_layers * sizes.num_attention_heads * sizes.d_k * seq
    return 6 * matrix_weights(sizes, tensor_ranks) + attention // tensor_ranks


def activation_bytes(sizes: LlamaConfig, precision: str = "float32", tensor_ranks: int = 1) -> int:
    r"""Bytes that a token leaves on one rank for the backward pass.

    A block leaves the inputs of its two norms, what they divide and what they make, :math:`6 d`
    numbers; queries, the heads' result and each head's copy of keys and values, :math:`4 d_q`; and
    of the feed-forward layer the gate, what it lets pass, what passes and the product,
    :math:`4 d_{ff}`. Ranks that share matrices divide the last two. After the blocks come a norm,
    and the head's log-probabilities. Norms and log-probabilities are float32 whatever the precision
    is. With experts, the feed-forward layer is those that a token is sent to, and each of them has
    a copy of the token and of what it makes of it.

    Args:
        sizes: The model's.
        precision: `float32` or `bfloat16`.
        tensor_ranks: How many ranks share each matrix of a block.
    """
    width = 2 if precision == "bfloat16" else _FLOAT32
    d, d_q = sizes.hidden_size, sizes.num_attention_heads * sizes.d_k
    norm = _FLOAT32 * (2 * d + 2) + width * d
    cut = width * 4 * d_q + _FLOAT32 * sizes.num_attention_heads
    inner = sum(
        4 * sizes.intermediate_size
        if not sizes.has_experts(block)
        else sizes.num_experts_per_tok * (4 * sizes.d_expert + 2 * d)
        for block in range(sizes.num_hidden_layers)
    )
    blocks = sizes.num_hidden_layers * (2 * norm + cut // tensor_ranks)
    return blocks + width * inner // tensor_ranks + norm + _FLOAT32 * sizes.vocab_size


def matrix_weights(sizes: LlamaConfig, tensor_ranks: int = 1) -> int:
    """Weights of matrices that multiply a token on a rank.

    They are the rank's part of the blocks', and the whole head; of experts those that a token is
    sent to.
    """
    d, d_k = sizes.hidden_size, sizes.d_k
    attention = 2 * d * d_k * (sizes.num_attention_heads + sizes.kv_heads)
    inner = sum(
        3 * d * sizes.intermediate_size
        if not sizes.has_experts(block)
        else sizes.num_experts_per_tok * 3 * d * sizes.d_expert + sizes.experts * d
        for block in range(sizes.num_hidden_layers)
    )
    blocks = sizes.num_hidden_layers * attention + inner
    return blocks // tensor_ranks + sizes.vocab_size * d


def _sizes_of(
    *,
    vocab_size: int,
    seq: int,
    n_layer: int,
    n_head: int,
    n_kv_head: int,
    n_embd: int,
    dropout: float,
) -> LlamaConfig:
    if dropout:
        raise ValueError(f"a Llama has no dropout, got {dropout}")
    d_ff = -(-n_embd // 3) * 8  # 8/3 of the features, rounded up: three matrices as large as two
    return LlamaConfig(
        vocab_size,
        n_embd,
        d_ff,
        n_layer,
        n_head,
        n_kv_head or n_head,
        max_position_embeddings=seq,
    )


def _share_heads(block: LlamaBlock, ranks: int) -> None:
    if isinstance(block.mlp, MixtureOfExperts):
        raise ValueError("ranks cannot share the matrices of experts; give ddp or fsdp")
    if not isinstance(block.self_attn.q_norm, nn.Identity):
        # Each rank would have the gradients of its own heads alone.
        raise ValueError("ranks cannot share heads of queries that are normed; give ddp or fsdp")
    block.self_attn.num_heads //= ranks
    block.self_attn.num_kv_heads //= ranks


PLAN = Plan(
    name="llama",
    sizes=LlamaConfig,
    sizes_of=_sizes_of,
    model=Llama,
    codec=CODEC,
    shape=lambda sizes: Shape(
        sizes.vocab_size,
        sizes.max_seq,
        sizes.num_hidden_layers,
        sizes.hidden_size,
        (sizes.num_attention_heads, sizes.kv_heads),
    ),
    with_blocks=lambda sizes, blocks: replace(sizes, num_hidden_layers=blocks),
    blocks=lambda model: model.model.layers,
    cuts={
        **{f"self_attn.{name}_proj": Columns() for name in "qkv"},
        "self_attn.o_proj": Rows(),
        "mlp.gate_proj": Columns(),
        "mlp.up_proj": Columns(),
        "mlp.down_proj": Rows(),
    },
    share_heads=_share_heads,
    activation_bytes=activation_bytes,
    flops_of_token=flops_of_token,
    matrix_weights=matrix_weights,
)
