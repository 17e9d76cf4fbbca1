"""Training of GPT-2."""

from dataclasses import replace

from transformer_layers import GPT2, GPT2Block, GPT2Config
from transformer_layers.models.gpt2.checkpoint import CODEC
from transformer_training.plans.cuts import Columns, Rows
from transformer_training.plans.plan import Plan, Shape

_FLOAT32 = 4


def flops_of_token(sizes: GPT2Config, seq: int, tensor_ranks: int = 1) -> int:
    r"""Operations of a step for one token on one rank, forward and backward.

    A weight of a matrix multiplies and adds once forward and twice backward, for the gradients of
    input and weight: :math:`6 N` operations (https://arxiv.org/abs/2001.08361, section 2.1), with
    :math:`N = 12 L d^2` and the head's :math:`V d`. Attention has two products more, of each
    position with each, :math:`4 s d` operations forward and :math:`12 s d` in all:

    .. math::
        C = 72 L d^2 \left(1 + \frac{s}{6 d} + \frac{V}{12 L d}\right)

    It is https://arxiv.org/abs/2104.04473, eq. 3, whose 96 has a second forward pass of the blocks.
    A kernel that leaves out what the mask hides, as ours, does half of attention's share. Ranks
    that share matrices divide all but the head, which each computes.

    Args:
        sizes: The model's.
        seq: Positions of a sequence, :math:`s`.
        tensor_ranks: How many ranks share each matrix of a block.
    """
    attention = 12 * sizes.n_layer * sizes.n_embd * seq
    return 6 * matrix_weights(sizes, tensor_ranks) + attention // tensor_ranks


def activation_bytes(sizes: GPT2Config, precision: str = "float32", tensor_ranks: int = 1) -> int:
    r"""Bytes that a token leaves on one rank for the backward pass, without dropout.

    A block leaves the inputs of its two norms, :math:`2 d` numbers, and what they make,
    :math:`2 d`; queries, keys, values and the heads' result, :math:`4 d`; the hidden features
    before and after GELU, :math:`8 d`. Ranks that share matrices divide the last twelve of the
    sixteen. The kernel of attention keeps a number for each head instead of the weights, and a
    norm keeps two. After the blocks come a norm's input and result, and the head's
    log-probabilities, :math:`V` numbers. With autocast the inputs of norms, the last result and
    what kernels keep are float32, all else bfloat16.

    It is https://arxiv.org/abs/2205.05198, eq. 2, without dropout's masks and without the
    attention weights, which are not kept here. Not counted are the numbers of the tokens; and
    autocast's copies of the matrices, which :func:`transformer_training.costs` adds.

    Args:
        sizes: The model's.
        precision: `float32` or `bfloat16`.
        tensor_ranks: How many ranks share each matrix of a block.
    """
    width = 2 if precision == "bfloat16" else 4
    norm = _FLOAT32 * (sizes.n_embd + 2) + width * sizes.n_embd
    cut = width * 12 * sizes.n_embd + _FLOAT32 * sizes.n_head
    block = 2 * norm + cut // tensor_ranks
    return sizes.n_layer * block + norm + _FLOAT32 * sizes.vocab_size


def matrix_weights(sizes: GPT2Config, tensor_ranks: int = 1) -> int:
    """Weights of matrices that multiply on a rank: its part of the blocks', and the whole head."""
    blocks = 12 * sizes.n_layer * sizes.n_embd**2
    return blocks // tensor_ranks + sizes.vocab_size * sizes.n_embd


def _sizes_of(
    *,
    vocab_size: int,
    seq: int,
    n_layer: int,
    n_head: int,
    n_kv_head: int,
    n_embd: int,
    dropout: float,
) -> GPT2Config:
    if n_kv_head not in (0, n_head):
        raise ValueError(
            f"a GPT-2 has as many heads of keys as of queries, got n_kv_head = {n_kv_head} and "
            f"n_head = {n_head}"
        )
    return GPT2Config(vocab_size, seq, n_embd, n_layer, n_head, dropout)


def _share_heads(block: GPT2Block, ranks: int) -> None:
    block.attn.num_heads //= ranks


PLAN = Plan(
    name="gpt2",
    sizes=GPT2Config,
    sizes_of=_sizes_of,
    model=GPT2,
    codec=CODEC,
    shape=lambda sizes: Shape(
        sizes.vocab_size, sizes.n_positions, sizes.n_layer, sizes.n_embd, (sizes.n_head,)
    ),
    with_blocks=lambda sizes, blocks: replace(sizes, n_layer=blocks),
    blocks=lambda model: model.h,
    cuts={
        "attn.c_attn": Columns(packed=3),  # queries, keys and values
        "attn.c_proj": Rows(),
        "mlp.c_fc": Columns(),
        "mlp.c_proj": Rows(),
    },
    share_heads=_share_heads,
    activation_bytes=activation_bytes,
    flops_of_token=flops_of_token,
    matrix_weights=matrix_weights,
)
