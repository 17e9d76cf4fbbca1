"""What latent attention keeps of the positions that it has seen."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from transformer_layers.attention.cache import KeyValueCache
from transformer_layers.precision import autocast_dtype
from transformer_layers.validation import require_size


class LatentCache(KeyValueCache):
    """The latents of one layer of latent attention, kept while a sequence grows.

    Of each position it keeps one row of `kv_rank + d_rope` numbers for all heads: the latent, from
    which each head's key and value are made, and behind it the key that was turned by its position.
    It is section 2.1.3 of https://arxiv.org/abs/2405.04434. A row is the key of all heads, and its
    first `kv_rank` features are their value, so that values need no memory of their own.

    All else is as in :class:`KeyValueCache`: room for `max_seq` positions that never moves, one
    cache a layer, padding at the beginning of the shorter sequences.

    Args:
        batch: Number of sequences.
        max_seq: Number of positions there is room for.
        kv_rank: Features of a latent.
        d_rope: Features of the key that is turned.
        dtype: Of the latents; torch's default dtype if not given.
        device: Of the latents; torch's default device if not given.
        padding: See :class:`KeyValueCache`, as for the attributes.

    Attributes:
        kv_rank: Features of a latent.

    Raises:
        TypeError: If a size is not an int.
        ValueError: If a size is negative, `kv_rank` or `d_rope` is 0, or `padding` is not of shape
            `(batch,)`.

    Examples:
        >>> cache = LatentCache(batch=1, max_seq=4, kv_rank=2, d_rope=1)
        >>> rows, latents = cache.append(torch.tensor([[[[1.0, 2.0, 3.0]]]]))
        >>> cache
        LatentCache(batch=1, kv_rank=2, d_rope=1, 1 of 4 positions, torch.float32, cpu)
        >>> latents
        tensor([[[[1., 2.]]]])
    """

    def __init__(
        self,
        batch: int,
        max_seq: int,
        kv_rank: int,
        d_rope: int,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
        padding: Int[Tensor, " batch"] | None = None,
    ) -> None:
        for name, size in (("kv_rank", kv_rank), ("d_rope", d_rope)):
            require_size(name, size)
        require_size("max_seq", max_seq, minimum=0)
        width = kv_rank + d_rope
        super().__init__(batch, 1, 0, width, dtype=dtype, device=device, padding=padding)
        self.kv_rank, self.max_seq = kv_rank, max_seq
        self._keys = torch.zeros(batch, 1, max_seq, width, dtype=dtype, device=device)
        self._values = self._keys[..., :0]  # what a row's value is stands in its key

    @classmethod
    def like(  # type: ignore[override]  # it has other sizes
        cls,
        weight: Tensor,
        batch: int,
        max_seq: int,
        kv_rank: int,
        d_rope: int,
        padding: Int[Tensor, " batch"] | None = None,
    ) -> "LatentCache":
        """A cache of what a product with a weight makes: its device, and its dtype.

        Args:
            weight: One of the model's; under `torch.autocast` the dtype is that of products.
            batch: See :class:`LatentCache`, as for all that follows and the errors.
            max_seq: See there.
            kv_rank: See there.
            d_rope: See there.
            padding: See there.
        """
        dtype, device = autocast_dtype(weight), weight.device
        return cls(batch, max_seq, kv_rank, d_rope, dtype=dtype, device=device, padding=padding)

    @property
    def nbytes(self) -> int:
        """Bytes of the latents and turned keys, of all positions there is room for.

        Examples:
            >>> sizes = {"batch": 1, "max_seq": 1, "kv_rank": 512, "d_rope": 64}
            >>> LatentCache(**sizes, dtype=torch.bfloat16).nbytes  # of DeepSeek-V3, a block
            1152
        """
        return self._keys.nbytes

    def append(
        self,
        key: Float[Tensor, "batch 1 seq d_row"],
        value: Float[Tensor, "batch 1 seq _"] | None = None,
    ) -> tuple[Float[Tensor, "batch 1 length d_row"], Float[Tensor, "batch 1 length kv_rank"]]:
        """Adds the rows of the next positions.

        Args:
            key: Latents, and behind them the turned keys, shape
                `(batch, 1, seq, kv_rank + d_rope)`.
            value: None: values are the first features of keys.

        Returns:
            The rows of all positions so far, shape `(batch, 1, length, kv_rank + d_rope)`, and the
            latents in them, of shape `(batch, 1, length, kv_rank)`; both are views.

        Raises:
            TypeError: If there are values, or `key` has another dtype than the cache.
            ValueError: If a shape does not fit, or there is no room. Nothing is added then.
        """
        if value is not None:
            raise TypeError(
                "a LatentCache takes rows of latents and turned keys, and no values, got values "
                f"of shape {tuple(value.shape)}; keep keys and values in a KeyValueCache"
            )
        batch, _, _, width = self._keys.shape
        seq = key.shape[-2] if key.ndim == 4 else 0
        if key.shape != (batch, 1, seq, width):
            raise ValueError(
                f"the cache takes rows of shape ({batch}, 1, seq, {self.kv_rank} + "
                f"{width - self.kv_rank}), got {tuple(key.shape)}"
            )
        if key.dtype != self._keys.dtype:
            raise TypeError(f"the cache holds {self._keys.dtype}, got rows of {key.dtype}")
        end = self.length + seq
        if end > self.max_seq:
            raise ValueError(
                f"the cache has room for max_seq = {self.max_seq} positions, got {seq} after "
                f"{self.length}"
            )
        self._keys[:, :, self.length : end] = key
        self.length = end
        rows = self._keys[:, :, :end]
        return rows, rows[..., : self.kv_rank]

    def __repr__(self) -> str:
        batch, _, _, width = self._keys.shape
        return (
            f"{type(self).__name__}(batch={batch}, kv_rank={self.kv_rank}, "
            f"d_rope={width - self.kv_rank}, {self.length} of {self.max_seq} positions, "
            f"{self._keys.dtype}, {self._keys.device})"
        )
