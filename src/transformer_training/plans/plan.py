"""What training asks of a model: how it is made, stored and cut, and what it costs."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from torch import Tensor, nn

from transformer_layers.checkpoints.codec import Codec
from transformer_training.plans.cuts import Cut


@dataclass(frozen=True)
class Shape:
    """The sizes that all models have.

    Attributes:
        vocab_size: Tokens of the vocabulary.
        max_seq: Longest sequence, in tokens; None if there is no longest.
        blocks: How many there are.
        features: Of a position.
        heads: Numbers of heads, of queries and of keys: ranks that share matrices divide each.
    """

    vocab_size: int
    max_seq: int | None
    blocks: int
    features: int
    heads: tuple[int, ...]


class PairBatch(NamedTuple):
    """Some pairs of a source and a target, which a translator learns from at once.

    Attributes:
        source_ids: Tokens of the sources, each with its end, then padding.
        target_ids: Tokens of the targets, in the same way.
        source_mask: Which positions of each source are not padding.
        share: What the mean loss of its tokens counts among those of other batches, so that each
            token of a step counts as much: one, if all batches have as many.
    """

    source_ids: Tensor
    target_ids: Tensor
    source_mask: Tensor
    share: Tensor


class LabeledBatch(NamedTuple):
    """Some rows of texts that do not see each other, of which a language model learns a part.

    Attributes:
        ids: Tokens, shape `(batch, seq)`.
        labels: The same where they are learned, and -100 elsewhere.
        mask: What each position may see, boolean of shape `(batch, seq, seq)`.
        positions: Position ids, shape `(batch, seq)`.
        share: As that of a :class:`PairBatch`.
    """

    ids: Tensor
    labels: Tensor
    mask: Tensor
    positions: Tensor
    share: Tensor


def loss_of_sequences(model: Any, batch: Any, smoothing: float) -> Tensor:
    """The mean loss of a language model.

    Args:
        model: The model.
        batch: Sequences, each with the token after it, or a :class:`LabeledBatch`.
        smoothing: Ignored.
    """
    if isinstance(batch, LabeledBatch):
        loss = model.loss(batch.ids, batch.labels, mask=batch.mask, positions=batch.positions)
        return batch.share * loss
    return model.loss(batch)


@dataclass(frozen=True)
class Plan:
    """How a model is trained.

    Attributes:
        name: What `--model` calls it.
        sizes: The class of its sizes.
        sizes_of: Makes them of `vocab_size`, `seq`, `n_layer`, `n_head`, `n_kv_head` (0 where it is
            not said), `n_embd` and `dropout`, given by these names.
        model: Makes a model of its sizes: a `transformer_layers.generation.decoder.Decoder` with
            the methods `loss`, `generate`, `save_pretrained` and `from_pretrained`.
        codec: How it is stored.
        shape: The sizes that all models have.
        with_blocks: The same sizes with so many blocks.
        blocks: The blocks of a model, each of which ranks gather by itself.
        cuts: How ranks share the matrices of a block, by the end of the layers' names; none if
            they cannot.
        share_heads: Tells a block that it has so many times fewer heads.
        activation_bytes: Bytes that a token leaves on one rank for the backward pass, of the sizes,
            the precision and the ranks that share a matrix.
        flops_of_token: Operations of a step for one token on one rank, of the sizes, the length of
            a sequence and the ranks that share a matrix.
        matrix_weights: Weights of matrices that multiply on a rank, of the sizes and the ranks that
            share a matrix.
        pairs: Whether it learns from pairs of a source and a target. Then its vocabulary has a
            token more than the tokenizer, and `seq` bounds both sides.
        loss: The mean loss of the model for a batch, sequences, a :class:`LabeledBatch` or a
            :class:`PairBatch`, with so much label smoothing.
    """

    name: str
    sizes: type
    sizes_of: Callable[..., Any]
    model: Any
    codec: Codec[Any]
    shape: Callable[[Any], Shape]
    with_blocks: Callable[[Any, int], Any]
    blocks: Callable[[Any], Iterable[nn.Module]]
    cuts: Mapping[str, Cut]
    share_heads: Callable[[Any, int], None]
    activation_bytes: Callable[[Any, str, int], int]
    flops_of_token: Callable[[Any, int, int], int]
    matrix_weights: Callable[[Any, int], int]
    pairs: bool = False
    loss: Callable[[Any, Any, float], Tensor] = loss_of_sequences


class Trainable(nn.Module):
    """The names that a plan's model has; for annotations."""

    config: Any
    loss: Callable[..., Tensor]
    generate: Callable[..., Any]
    save_pretrained: Callable[..., None]
