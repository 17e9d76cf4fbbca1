"""Boolean attention masks: True means that a query may attend to a key."""

import torch
from jaxtyping import Bool, Integer
from torch import Tensor

from transformer_layers.validation import require_size


def causal_mask(
    seq: int, past: int = 0, *, device: torch.device | str | None = None
) -> Bool[Tensor, "seq kv_seq"]:
    r"""Lets each position attend to itself and to all earlier ones.

    Section 3.2.3 of https://arxiv.org/abs/1706.03762.

    .. math::
        M_{ij} = [\, j \le i + \text{past} \,]

    The queries are the last `seq` of `past + seq` positions, so the mask is aligned at its bottom
    right: the last query sees every key.

    Args:
        seq: Number of queries.
        past: Number of earlier positions whose keys come first, as those of a cache do.
        device: Where the mask is made; torch's default device if not given.

    Returns:
        Boolean tensor of shape `(seq, past + seq)`, True where query i may attend to key j.

    Raises:
        TypeError: If `seq` or `past` is not an int.
        ValueError: If `seq` or `past` is negative.

    Examples:
        >>> causal_mask(3).int()
        tensor([[1, 0, 0],
                [1, 1, 0],
                [1, 1, 1]], dtype=torch.int32)
        >>> causal_mask(2, past=3).int()
        tensor([[1, 1, 1, 1, 0],
                [1, 1, 1, 1, 1]], dtype=torch.int32)
    """
    require_size("seq", seq, minimum=0)
    require_size("past", past, minimum=0)
    return torch.ones(seq, past + seq, dtype=torch.bool, device=device).tril(past)


def sliding_window_mask(
    seq: int, window: int, past: int = 0, *, device: torch.device | str | None = None
) -> Bool[Tensor, "seq kv_seq"]:
    r"""Lets each position attend to itself and to the `window - 1` positions before it.

    Section 2 of https://arxiv.org/abs/2310.06825 (Mistral), as `transformers` counts: `window` is
    the number of keys that a query sees, itself among them. FlashAttention counts those besides.

    .. math::
        M_{ij} = [\, i + \text{past} - \text{window} < j \le i + \text{past} \,]

    Args:
        seq: Number of queries.
        window: Number of keys that a query may attend to.
        past: Number of earlier positions whose keys come first, as those of a cache do.
        device: Where the mask is made; torch's default device if not given.

    Returns:
        Boolean tensor of shape `(seq, past + seq)`, True where query i may attend to key j.

    Raises:
        TypeError: If a number is not an int.
        ValueError: If `seq` or `past` is negative, or `window` below 1.

    Examples:
        >>> sliding_window_mask(4, window=2).int()
        tensor([[1, 0, 0, 0],
                [1, 1, 0, 0],
                [0, 1, 1, 0],
                [0, 0, 1, 1]], dtype=torch.int32)
    """
    require_size("window", window)
    return causal_mask(seq, past, device=device).triu(past - window + 1)


def padding_mask(lengths: Integer[Tensor, " batch"], seq: int) -> Bool[Tensor, "batch 1 seq"]:
    r"""Lets every query of a sequence attend to the sequence's real tokens, and to no padding.

    .. math::
        M_{b1j} = [\, j < \text{lengths}_b \,]

    The padding is at the end. The middle axis stands for the queries; it is what tells the mask of
    a batch from a mask of shape `(q_seq, kv_seq)` when the batch happens to be as large as the
    sequence is long. `padding_mask(lengths, seq) & causal_mask(seq)` allows what both allow.

    Args:
        lengths: Number of real tokens of each sequence, integers of shape `(batch,)`.
        seq: Length to which all sequences are padded.

    Returns:
        Boolean tensor of shape `(batch, 1, seq)` on the device of `lengths`.

    Raises:
        TypeError: If `lengths` does not hold integers, or `seq` is not an int.
        ValueError: If `lengths` has not one axis, or one of its values is negative or above `seq`
            (not looked at while torch compiles or exports, nor on the meta device).

    Examples:
        >>> padding_mask(torch.tensor([2, 3]), seq=3).int()
        tensor([[[1, 1, 0]],
        <BLANKLINE>
                [[1, 1, 1]]], dtype=torch.int32)
    """
    require_size("seq", seq, minimum=0)
    if lengths.dtype == torch.bool or lengths.is_floating_point() or lengths.is_complex():
        raise TypeError(f"lengths must be integers, got {lengths.dtype}")
    if lengths.ndim != 1:
        raise ValueError(f"lengths must have shape (batch,), got {tuple(lengths.shape)}")
    has_values = not torch.compiler.is_compiling() and not lengths.is_meta
    wide = lengths.long()  # in uint8 a seq of 300 would be 44
    if has_values and ((wide < 0) | (wide > seq)).any():
        raise ValueError(f"lengths must lie between 0 and seq = {seq}, got {lengths.tolist()}")
    return torch.arange(seq, device=lengths.device) < wide[:, None, None]


def document_mask(documents: Integer[Tensor, "batch seq"]) -> Bool[Tensor, "batch seq seq"]:
    r"""Lets each position attend to itself and to earlier positions of its own text.

    Texts packed into one row do not see each other then. With position ids that begin anew in each
    text, a model computes for each what it computes for the text by itself.

    .. math::
        M_{bij} = [\, j \le i \,] \, [\, \text{documents}_{bi} = \text{documents}_{bj} \,]

    Args:
        documents: The text that each position belongs to, integers of shape `(batch, seq)`, in any
            numbering.

    Returns:
        Boolean tensor of shape `(batch, seq, seq)`, on the device of `documents`.

    Raises:
        TypeError: If `documents` does not hold integers.
        ValueError: If it has not two axes.

    Examples:
        >>> document_mask(torch.tensor([[0, 0, 1, 1]])).int()
        tensor([[[1, 0, 0, 0],
                 [1, 1, 0, 0],
                 [0, 0, 1, 0],
                 [0, 0, 1, 1]]], dtype=torch.int32)
    """
    if documents.dtype == torch.bool or documents.is_floating_point() or documents.is_complex():
        raise TypeError(f"documents must be integers, got {documents.dtype}")
    if documents.ndim != 2:
        raise ValueError(f"documents must have shape (batch, seq), got {tuple(documents.shape)}")
    same = documents[:, :, None] == documents[:, None, :]
    return same & causal_mask(documents.shape[1], device=documents.device)
