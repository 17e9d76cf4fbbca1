"""How the second decoder is trained, and what it costs."""

from dataclasses import replace

from tests.transformer_layers.models.second import CODEC, Block, Second, SecondConfig
from transformer_training.plans.cuts import Columns, Rows
from transformer_training.plans.plan import Plan, Shape


def share_heads(block: Block, ranks: int) -> None:
    block.heads //= ranks
    block.kv_heads //= ranks


def matrix_weights(sizes: SecondConfig, ranks: int = 1) -> int:
    d, d_kv = sizes.d_model, sizes.d_model // sizes.n_head * sizes.n_kv_head
    block = 2 * d * d + 2 * d * d_kv + 3 * d * 2 * d
    return sizes.n_layer * block // ranks + sizes.vocab_size * d


PLAN = Plan(
    name="second",
    sizes=SecondConfig,
    sizes_of=lambda *, vocab_size, seq, n_layer, n_head, n_kv_head, n_embd, dropout: SecondConfig(
        vocab_size, seq, n_embd, n_layer, n_head, n_kv_head or n_head // 2
    ),
    model=Second,
    codec=CODEC,
    shape=lambda sizes: Shape(
        sizes.vocab_size,
        sizes.max_seq,
        sizes.n_layer,
        sizes.d_model,
        (sizes.n_head, sizes.n_kv_head),
    ),
    with_blocks=lambda sizes, blocks: replace(sizes, n_layer=blocks),
    blocks=lambda model: model.layers,
    cuts={
        **dict.fromkeys(("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj"), Columns()),
        **dict.fromkeys(("o_proj", "down_proj"), Rows()),
    },
    share_heads=share_heads,
    activation_bytes=lambda sizes, precision, ranks: 4 * 20 * sizes.d_model * sizes.n_layer,
    flops_of_token=lambda sizes, seq, ranks: 6 * matrix_weights(sizes, ranks),
    matrix_weights=matrix_weights,
)
