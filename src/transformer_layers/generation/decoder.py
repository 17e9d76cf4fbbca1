"""What a language model must offer, so that it can be trained, written with and saved."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, cast, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer_layers.attention.cache import KeyValueCache, require_caches
from transformer_layers.attention.inputs import require_sequences
from transformer_layers.validation import require_dtype, require_integers


@runtime_checkable
class Decoder(Protocol):
    """A language model, whose logits at a position depend on the tokens up to it.

    `generate` and `stream` of :mod:`transformer_layers.generation.loop`, and `next_token_loss` of
    :mod:`transformer_layers.generation.loss`, are functions of any module that has these names, and
    a model's methods: `generate = loop.generate`.
    """

    @property
    def vocab_size(self) -> int:
        """Number of tokens in the vocabulary."""

    @property
    def max_seq(self) -> int | None:
        """Longest sequence, in tokens; None if there is no longest."""

    def __call__(self, ids: Int[Tensor, "*batch seq"], /) -> Float[Tensor, "*batch seq vocab_size"]:
        """The logits of all positions."""

    def new_caches(
        self, batch: int, max_seq: int, padding: Int[Tensor, " batch"] | None = None
    ) -> list[KeyValueCache]:
        """Empty caches of keys and values, one for each block."""

    def last_hidden_state(
        self, ids: Int[Tensor, "*batch seq"], caches: Sequence[KeyValueCache] | None = None
    ) -> Float[Tensor, "*batch seq d_model"]:
        """What the blocks and the last norm make of each position; caches grow by them."""

    def logits(
        self, hidden_state: Float[Tensor, "*batch seq d_model"]
    ) -> Float[Tensor, "*batch seq vocab_size"]:
        """Scores every token as the next one."""

    def stream(self, ids: Any, max_new_tokens: int, *args: Any, **options: Any) -> Iterator[Any]:
        """New tokens, each as soon as it is chosen: `transformer_layers.generation.loop.stream`."""

    def modules(self) -> Any:
        """As `torch.nn.Module` has it."""


def cache_bytes(model: Decoder) -> int:
    """Bytes that a model's caches need for each token of each sequence.

    They are those of keys and values of all blocks, in the dtype of the model. A model on the meta
    device is enough, and takes no memory.

    Args:
        model: The model.

    Returns:
        The bytes.

    Examples:
        >>> import torch
        >>> from transformer_layers import Llama, LlamaConfig
        >>> config = LlamaConfig(num_key_value_heads=8, intermediate_size=14336, vocab_size=128256)
        >>> cache_bytes(Llama(config, device="meta", dtype=torch.bfloat16)) // 1024  # KiB
        128
    """
    return sum(cache.nbytes for cache in model.new_caches(1, 1))


def require_ids(
    model: Decoder, ids: Tensor | None, caches: Sequence[KeyValueCache] | None, blocks: int
) -> torch.Size:
    """Refuses tokens that a model cannot read behind what its caches hold.

    Args:
        model: The model.
        ids: Tokens, of shape `(..., seq)`.
        caches: The caches, if there are any.
        blocks: How many blocks the model has.

    Returns:
        Their shape.

    Raises:
        TypeError: If `ids` are not int64 or int32.
        ValueError: If they have no axis, there is no position for them, or the caches do not fit.
    """
    require_integers("ids", ids)  # which refuses None, too
    tokens = cast(Tensor, ids)
    if tokens.ndim == 0:
        raise ValueError("ids must have an axis of positions, got a single number")
    past = 0 if caches is None else require_caches(caches, blocks)
    require_room(model, past + tokens.shape[-1])
    return tokens.shape


def require_embeddings(
    model: Decoder,
    x: Tensor,
    table: nn.Embedding,
    caches: Sequence[KeyValueCache] | None,
    blocks: int,
) -> torch.Size:
    """Refuses what cannot stand in the place of the embeddings of tokens.

    Args:
        model: The model.
        x: What is to, of shape `(..., seq, d_model)`.
        table: The embeddings of the model.
        caches: The caches, if there are any.
        blocks: How many blocks the model has.

    Returns:
        The shape that tokens would have, `(..., seq)`.

    Raises:
        TypeError: If it is no tensor of their dtype.
        ValueError: If the shape does not fit, there is no position for it, or the caches do not.
    """
    require_sequences(table.embedding_dim, inputs_embeds=x)
    require_dtype("inputs_embeds", x, table.weight.dtype, of="embeddings")
    past = 0 if caches is None else require_caches(caches, blocks)
    require_room(model, past + x.shape[-2])
    return x.shape[:-1]


def require_room(model: Decoder, seq: int) -> None:
    """Refuses a sequence that is longer than a model takes.

    Args:
        model: The model.
        seq: Number of tokens.

    Raises:
        ValueError: If there are too many.
    """
    if model.max_seq is not None and seq > model.max_seq:
        raise ValueError(f"the model has {model.max_seq} positions, got a sequence of {seq}")


def require_tokens(ids: Tensor, vocab_size: int, name: str = "ids") -> None:
    """Refuses numbers that are of no token; it reads them, so that a GPU is waited for.

    Args:
        ids: The tokens.
        vocab_size: How many there are.
        name: What the caller calls them.

    Raises:
        ValueError: If one is not in the vocabulary.
    """
    if ids.is_meta or ids.numel() == 0:
        return
    least, most = ids.min(), ids.max()
    if least < 0 or most >= vocab_size:
        raise ValueError(f"{name} must be in [0, {vocab_size}), got values from {least} to {most}")


def embedded(ids: Int[Tensor, "*shape"], table: nn.Embedding) -> Float[Tensor, "*shape d_model"]:
    """Looks up the embeddings of tokens.

    Args:
        ids: The tokens; or embeddings in their place, which stay as they are.
        table: A row for each.

    Returns:
        The rows.

    Raises:
        ValueError: If a token is not in the table; on a GPU that is torch's own error.
    """
    if ids.is_floating_point():
        return ids
    try:
        return table(ids)
    except IndexError:
        require_tokens(ids, table.num_embeddings)
        raise
