"""Keys and values of the positions that a causal layer has seen."""

import torch
from jaxtyping import Float
from torch import Tensor

from transformer_layers.validation import require_size


class KeyValueCache:
    """Keys and values of one attention layer, kept while a sequence grows.

    Both tensors are allocated once, for `max_seq` positions; :meth:`append` writes behind the
    positions that are there and returns views, so that a step copies its own keys and values only.
    One layer needs one cache. A step that needs gradients may follow others that were made without,
    under `torch.no_grad()`. The gradient of a step cannot be taken once another has followed: what
    it saved has been written over, and torch says so.

    Args:
        batch: Number of sequences.
        num_heads: Number of heads.
        max_seq: Number of positions there is room for.
        d_k: Features of one head.
        dtype: Of the keys and values; torch's default dtype if not given.
        device: Of the keys and values; torch's default device if not given.

    Attributes:
        length: Number of positions held, initially 0.
        max_seq: Number of positions there is room for.

    Raises:
        TypeError: If a size is not an int.
        ValueError: If a size is negative, or `num_heads` or `d_k` is 0.

    Examples:
        >>> cache = KeyValueCache(batch=1, num_heads=1, max_seq=4, d_k=2)
        >>> keys, values = cache.append(torch.ones(1, 1, 3, 2), torch.zeros(1, 1, 3, 2))
        >>> cache.length
        3
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
    ) -> None:
        require_size("batch", batch, minimum=0)
        require_size("num_heads", num_heads)
        require_size("max_seq", max_seq, minimum=0)
        require_size("d_k", d_k)
        self._keys = torch.zeros(batch, num_heads, max_seq, d_k, dtype=dtype, device=device)
        self._values = torch.zeros_like(self._keys)
        self.length = 0
        self.max_seq = max_seq

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
