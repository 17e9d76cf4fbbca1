"""Keys and values of the positions that a causal layer has seen."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from transformer_layers.attention.masks import causal_mask
from transformer_layers.precision import autocast_dtype
from transformer_layers.validation import require_integers, require_size

_Cache = TypeVar("_Cache", bound="KeyValueCache")


class KeyValueCache:
    """Keys and values of one attention layer, kept while a sequence grows.

    Both tensors are allocated once, for `max_seq` positions; :meth:`append` writes behind the
    positions that are there and returns views, so that a step copies its own keys and values only.
    That memory never moves: a model under `torch.compile` has one graph for prompts and one for
    single tokens, whatever the caches hold.

    One layer needs one cache. Where sequences of different lengths share a batch, the shorter ones
    begin with padding, to whose keys nothing attends.

    A step that needs gradients may follow others that were made without, under `torch.no_grad()`.
    The gradient of a step cannot be taken once another has followed: what it saved has been written
    over, and torch says so.

    Args:
        batch: Number of sequences.
        num_heads: Number of heads of keys.
        max_seq: Number of positions there is room for.
        d_k: Features of one head.
        dtype: Of the keys and values; torch's default dtype if not given.
        device: Of the keys and values; torch's default device if not given.
        padding: Number of positions at the beginning of each sequence that are padding, int64 or
            int32 of shape `(batch,)`; none if not given.

    Attributes:
        length: Number of positions held, initially 0.
        max_seq: Number of positions there is room for.
        block: Number of the model's block whose keys and values are held; None before a
            model has taken the cache.
        padding: As given.

    Raises:
        TypeError: If a size is not an int.
        ValueError: If a size is negative, `num_heads` or `d_k` is 0, or `padding` is not of shape
            `(batch,)`.

    Examples:
        >>> cache = KeyValueCache(batch=1, num_heads=1, max_seq=4, d_k=2)
        >>> keys, values = cache.append(torch.ones(1, 1, 3, 2), torch.zeros(1, 1, 3, 2))
        >>> cache
        KeyValueCache(batch=1, num_heads=1, d_k=2, 3 of 4 positions, torch.float32, cpu)
        >>> keys, values = cache.append(torch.full((1, 1, 1, 2), 5.0), torch.zeros(1, 1, 1, 2))
        >>> keys
        tensor([[[[1., 1.],
                  [1., 1.],
                  [1., 1.],
                  [5., 5.]]]])
    """

    def __init__(
        self,
        batch: int,
        num_heads: int,
        max_seq: int,
        d_k: int,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
        padding: Int[Tensor, " batch"] | None = None,
    ) -> None:
        require_size("batch", batch, minimum=0)
        require_size("num_heads", num_heads)
        require_size("max_seq", max_seq, minimum=0)
        require_size("d_k", d_k)
        if padding is not None and padding.shape != (batch,):
            raise ValueError(
                f"padding must be of shape (batch,) = ({batch},), got {tuple(padding.shape)}"
            )
        self._keys = torch.zeros(batch, num_heads, max_seq, d_k, dtype=dtype, device=device)
        self._values = torch.zeros_like(self._keys)
        self.length = 0
        self.max_seq = max_seq
        self.block: int | None = None
        self.padding = padding

    @classmethod
    def like(
        cls: type[_Cache],
        weight: Tensor,
        batch: int,
        num_heads: int,
        max_seq: int,
        d_k: int,
        padding: Int[Tensor, " batch"] | None = None,
    ) -> _Cache:
        """A cache of what a product with a weight makes: its device, and its dtype.

        Args:
            weight: One of the model's; under `torch.autocast` the dtype is that of products.
            batch: See :class:`KeyValueCache`, as for all that follows and the errors.
            num_heads: See there.
            max_seq: See there.
            d_k: See there.
            padding: See there.
        """
        dtype, device = autocast_dtype(weight), weight.device
        return cls(batch, num_heads, max_seq, d_k, dtype=dtype, device=device, padding=padding)

    @property
    def nbytes(self) -> int:
        """Bytes of the keys and values, of all positions there is room for.

        Examples:
            >>> KeyValueCache(batch=1, num_heads=8, max_seq=1, d_k=128, dtype=torch.bfloat16).nbytes
            4096
        """
        return self._keys.nbytes + self._values.nbytes

    def append(
        self,
        key: Float[Tensor, "batch num_heads seq d_k"],
        value: Float[Tensor, "batch num_heads seq d_k"],
    ) -> tuple[
        Float[Tensor, "batch num_heads length d_k"], Float[Tensor, "batch num_heads length d_k"]
    ]:
        """Adds the keys and values of the next positions.

        Args:
            key: Shape `(batch, num_heads, seq, d_k)`.
            value: The same shape.

        Returns:
            The keys and the values of all positions so far, views of shape
            `(batch, num_heads, length, d_k)`.

        Raises:
            TypeError: If `key` or `value` has another dtype than the cache.
            ValueError: If a shape does not fit, or there is no room. Nothing is added then.
        """
        batch, num_heads, _, d_k = self._keys.shape
        seq = key.shape[-2] if key.ndim == 4 else 0
        if not key.shape == value.shape == (batch, num_heads, seq, d_k):
            raise ValueError(
                f"the cache takes keys and values of shape ({batch}, {num_heads}, seq, {d_k}), "
                f"got {tuple(key.shape)} and {tuple(value.shape)}"
            )
        if not key.dtype == value.dtype == self._keys.dtype:
            raise TypeError(
                f"the cache holds {self._keys.dtype}, got keys of {key.dtype} and values of "
                f"{value.dtype}"
            )
        end = self.length + seq
        if end > self.max_seq:
            raise ValueError(
                f"the cache has room for max_seq = {self.max_seq} positions, got {seq} after "
                f"{self.length}"
            )
        self._keys[:, :, self.length : end] = key
        self._values[:, :, self.length : end] = value
        self.length = end
        return self._keys[:, :, :end], self._values[:, :, :end]

    def reorder(self, rows: Int[Tensor, " batch"]) -> None:
        """Gives each sequence the past of another, as beam search does.

        Args:
            rows: Which sequence each is to go on from, int64 or int32 of shape `(batch,)`. One may
                stand there several times.

        Raises:
            TypeError: If `rows` are not int64 or int32.
            ValueError: If they are of another shape, or one is not in [0, batch). Nothing is
                changed then.

        Examples:
            >>> cache = KeyValueCache(batch=2, num_heads=1, max_seq=4, d_k=1)
            >>> keys = torch.tensor([3.0, 5.0]).view(2, 1, 1, 1)
            >>> held, _ = cache.append(keys, keys)
            >>> cache.reorder(torch.tensor([1, 1]))
            >>> held.flatten()
            tensor([5., 5.])
        """
        _require_rows(rows, len(self._keys))
        for held in (self._keys[:, :, : self.length], self._values[:, :, : self.length]):
            held.copy_(held.index_select(0, rows))
        if self.padding is not None:
            self.padding = self.padding[rows]

    def mask(self, seq: int) -> Bool[Tensor, "*batch seq length"] | None:
        """What the last positions may attend to: themselves and what came before, no padding.

        Args:
            seq: Number of positions that were added last.

        Returns:
            Boolean, shape `(seq, length)` or, with padding, `(batch, seq, length)`; None for a
            single position that may attend to all.
        """
        if seq == 1 and self.padding is None:
            return None
        causal = causal_mask(seq, self.length - seq, device=self._keys.device)
        if self.padding is None:
            return causal
        places = torch.arange(self.length, device=self._keys.device)
        return causal & (places >= self.padding[:, None, None])

    def __repr__(self) -> str:
        batch, num_heads, _, d_k = self._keys.shape
        return (
            f"{type(self).__name__}(batch={batch}, num_heads={num_heads}, d_k={d_k}, "
            f"{self.length} of {self.max_seq} positions, {self._keys.dtype}, {self._keys.device})"
        )


def _require_rows(rows: Tensor, batch: int) -> None:
    require_integers("rows", rows)
    if rows.shape != (batch,):
        raise ValueError(
            f"rows must be of shape (batch,) = ({batch},), one for each sequence, got "
            f"{tuple(rows.shape)}"
        )
    if rows.is_meta or torch.compiler.is_compiling():
        return  # there are no values to look at
    outside = rows[(rows < 0) | (rows >= batch)]
    if len(outside):
        raise ValueError(f"rows must be in [0, {batch}), got {outside.tolist()}")


def next_positions(
    seq: int, cache: KeyValueCache | None = None, device: torch.device | str | None = None
) -> Int[Tensor, "*batch seq"]:
    """The positions of what comes next, behind what a cache holds, without its padding.

    Args:
        seq: How many come.
        cache: What came before; nothing if not given.
        device: Where the result is to be.

    Returns:
        Shape `(seq,)`; `(batch, seq)` where sequences begin with padding, which stands at 0.

    Examples:
        >>> next_positions(3)
        tensor([0, 1, 2])
        >>> next_positions(3, KeyValueCache(2, 1, 8, 4, padding=torch.tensor([0, 2])))
        tensor([[0, 1, 2],
                [0, 0, 0]])
    """
    past = 0 if cache is None else cache.length
    places = torch.arange(past, past + seq, device=device)
    if cache is None or cache.padding is None:
        return places
    return (places - cache.padding[:, None]).clamp(min=0)


def all_grown_or_none(caches: Sequence[KeyValueCache] | None, step: Callable[[], Tensor]) -> Tensor:
    """Computes what makes caches grow; where it fails, all are as long as before.

    Args:
        caches: Those of a model's blocks.
        step: Computes, and may end with any error, or an interrupt.

    Returns:
        What it computes.
    """
    lengths = [cache.length for cache in caches or ()]
    try:
        return step()
    except BaseException:
        for cache, length in zip(caches or (), lengths, strict=True):
            cache.length = length
        raise


def require_caches(caches: Sequence[KeyValueCache], blocks: int) -> int:
    """Refuses caches that are not one for each block of a model, in the order of the blocks.

    An empty one may stand anywhere, and belongs from then on to the block in whose place it stands.

    Args:
        caches: The caches.
        blocks: Number of blocks.

    Returns:
        How many positions each of the caches holds.

    Raises:
        ValueError: If their number, order, lengths or room do not fit.
    """
    fills = [(cache.length, cache.max_seq) for cache in caches]
    if len(fills) != blocks or any(fill != fills[0] for fill in fills):
        found = ", ".join(f"{length} of {max_seq}" for length, max_seq in fills)
        raise ValueError(
            f"caches must be one for each of {blocks} blocks, all with the same length and "
            f"max_seq, got {found or 'none'}"
        )
    length = fills[0][0]
    for i, cache in enumerate(caches):
        if length == 0 or cache.block is None:
            cache.block = i
    order = [cache.block for cache in caches]  # one that stands in two places has one number
    if order != list(range(blocks)):
        raise ValueError(
            "caches must be in the order of the blocks, each block with its own, got those of "
            f"blocks {', '.join(map(str, order))}"
        )
    return length
