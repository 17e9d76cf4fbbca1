"""Training of the Transformer of 2017, on pairs of a source and a target."""

from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from transformer_layers import Transformer, TransformerConfig
from transformer_layers.models.transformer.checkpoint import CODEC
from transformer_training.plans.plan import PairBatch, Plan, Shape

_FLOAT32 = 4


def flops_of_token(sizes: TransformerConfig, seq: int, tensor_ranks: int = 1) -> int:
    r"""Operations of a step for one token on one rank, forward and backward.

    A token is a position of a source and one of its target, both of which have `seq`. As for GPT-2,
    a weight of a matrix costs six. Each of the three attentions of a layer, that of the encoder and
    the two of the decoder, costs :math:`12 s d`.

    Args:
        sizes: The model's.
        seq: Positions of a source, and of a target, :math:`s`.
        tensor_ranks: One.
    """
    layers = sizes.num_layers + 2 * sizes.layers_of_decoder
    return 6 * matrix_weights(sizes, tensor_ranks) + 12 * layers * sizes.d_model * seq


def activation_bytes(
    sizes: TransformerConfig, precision: str = "float32", tensor_ranks: int = 1
) -> int:
    r"""Bytes that a token, a position of both sides, leaves for the backward pass, without dropout.

    Each of the three attentions of a layer leaves what it asks with, :math:`d` numbers, and
    queries, keys, values and the heads' result, the last also put together, :math:`5 d`. Each of
    the two feed-forward networks leaves its input and its hidden features, :math:`d + d_{ff}`. Of
    the five norms the encoder's two keep two numbers for each of their input's, the decoder's
    three, which are torch's, one. After the layers come the memory, the head's input,
    log-probabilities and smoothed labels, :math:`2 d + 2 V`. Norms, log-probabilities and labels
    are float32 whatever the precision is. With autocast each projection keeps a bfloat16 copy of
    its own of what it reads.

    Args:
        sizes: The model's.
        precision: `float32` or `bfloat16`.
        tensor_ranks: One.
    """
    low = precision == "bfloat16"
    width, d, d_decoder = 2 if low else _FLOAT32, sizes.d_model, sizes.d_ff_of_decoder
    attention = width * (8 if low else 6) * d
    norm = _FLOAT32 * (d + 2)
    encoder = attention + _FLOAT32 * sizes.num_heads + width * (d + sizes.d_ff) + 4 * norm
    decoder = 2 * (attention + _FLOAT32 * sizes.heads_of_decoder) + width * (d + d_decoder)
    return (
        sizes.num_layers * encoder
        + sizes.layers_of_decoder * (decoder + 3 * norm)
        + width * (1 if low else 2) * d
        + _FLOAT32 * 2 * sizes.vocab_size
    )


def matrix_weights(sizes: TransformerConfig, tensor_ranks: int = 1) -> int:
    """Weights of matrices that multiply: those of both stacks, and the head."""
    d = sizes.d_model
    encoder = 4 * d * d + 2 * d * sizes.d_ff
    decoder = 8 * d * d + 2 * d * sizes.d_ff_of_decoder
    stacks = sizes.num_layers * encoder + sizes.layers_of_decoder * decoder
    return stacks + sizes.vocab_size * d


def _sizes_of(
    *,
    vocab_size: int,
    seq: int,
    n_layer: int,
    n_head: int,
    n_kv_head: int,
    n_embd: int,
    dropout: float,
) -> TransformerConfig:
    if n_kv_head not in (0, n_head):
        raise ValueError(
            f"a Transformer has as many heads of keys as of queries, got n_kv_head = {n_kv_head} "
            f"and n_head = {n_head}"
        )
    # The tokenizer's last token ends a sequence. One more begins targets and fills up both sides.
    return TransformerConfig(
        vocab_size + 1,
        n_embd,
        n_layer,
        n_head,
        4 * n_embd,
        dropout=dropout,
        start_token=vocab_size,
        end_token=vocab_size - 1,
        padding_token=vocab_size,
        banned_tokens=(vocab_size,),
    )


def _shape(sizes: TransformerConfig) -> Shape:
    if sizes.layers_of_decoder != sizes.num_layers:
        raise ValueError(
            "costs are those of as many layers in the decoder as in the encoder, got "
            f"{sizes.layers_of_decoder} and {sizes.num_layers}"
        )
    heads = sizes.num_heads, sizes.heads_of_decoder
    return Shape(sizes.vocab_size, sizes.max_seq, sizes.num_layers, sizes.d_model, heads)


def _blocks(model: Transformer) -> list[nn.Module]:
    return [*model.encoder.layers, *model.decoder.layers]


def _share_heads(block: Any, ranks: int) -> None:
    raise TypeError(f"ranks cannot share the heads of {type(block).__name__}, got {ranks}")


def _loss(model: Any, batch: PairBatch, smoothing: float) -> Tensor:
    sources, targets, mask, share = batch
    return share * model.loss(sources, targets, mask, smoothing)


PLAN = Plan(
    name="transformer",
    sizes=TransformerConfig,
    sizes_of=_sizes_of,
    model=Transformer,
    codec=CODEC,
    shape=_shape,
    with_blocks=lambda sizes, blocks: replace(sizes, num_layers=blocks, decoder_layers=None),
    blocks=_blocks,
    cuts={},
    share_heads=_share_heads,
    activation_bytes=activation_bytes,
    flops_of_token=flops_of_token,
    matrix_weights=matrix_weights,
    pairs=True,
    loss=_loss,
)
