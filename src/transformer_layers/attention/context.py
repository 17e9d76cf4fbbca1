"""What the blocks of a decoder share in one forward pass."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from transformer_layers.attention.cache import KeyValueCache, next_positions
from transformer_layers.attention.masks import causal_mask, sliding_window_mask

# Turns queries or keys, of shape (..., seq, d_k), by the position ids of a forward pass.
Rotation = Callable[[Tensor], Tensor]


class Context(NamedTuple):
    """What a decoder's blocks share in one forward pass; the model makes it, blocks hand it on.

    A layer takes it in the place of a cache. Where it is given a cache alone, or nothing, it makes
    one of this: so a layer needs no model.

    Attributes:
        seq: Number of positions that are computed.
        past: Number of positions that the caches held before.
        position_ids: Where they stand, shape `(seq,)` or `(batch, seq)`.
        masks: What :func:`allowed_keys` has made, by the window; one for all blocks.
        mask: What each position may attend to besides, boolean of shape `(batch, 1, past + seq)` or
            `(batch, seq, past + seq)`; None for all before it.
        padding: Number of positions at the beginning of each sequence that are padding, shape
            `(batch,)`; None for none.
        cache: Keys and values of the block that it is handed to, with `past` positions when the
            pass begins; None without.
        rotation: Turns queries and keys by the position ids; None where positions are told
            otherwise.
        weights: To which each layer adds its attention weights; None if nobody asks.
    """

    seq: int
    past: int
    position_ids: Int[Tensor, "*batch seq"]
    masks: dict[int | None, Tensor | None]
    mask: Bool[Tensor, "batch _ length"] | None = None
    padding: Int[Tensor, " batch"] | None = None
    cache: KeyValueCache | None = None
    rotation: Rotation | None = None
    weights: list[Tensor] | None = None


def allowed_keys(
    context: Context, window: int | None = None
) -> Bool[Tensor, "*batch seq length"] | None:
    """Which keys each position may attend to: itself and those before it, less what is hidden.

    The mask of a window is made once for all blocks that have it.

    Args:
        context: That of the forward pass.
        window: How many keys a query sees at most, the last ones, itself among them; all if not
            given.

    Returns:
        Boolean of shape `(seq, past + seq)`, or `(batch, seq, past + seq)`. None where a single
        position sees all; or where there is no past, and it is the causal mask, which torch's
        kernel has itself.
    """
    if window is not None and not torch.compiler.is_compiling():  # one graph serves all lengths
        window = window if window < context.past + context.seq else None
    if window not in context.masks:
        context.masks[window] = _made(context, window)
    return context.masks[window]


def of_heads(position_ids: Int[Tensor, "*batch seq"]) -> Int[Tensor, "*batch_and_one seq"]:
    """Position ids with an axis for heads, where each sequence has its own."""
    return position_ids[:, None] if position_ids.ndim == 2 else position_ids


def _made(context: Context, window: int | None) -> Tensor | None:
    seq, past, device = context.seq, context.past, context.position_ids.device
    hidden = context.mask is not None or context.padding is not None
    if window is None and not hidden and (past == 0 or seq == 1):
        return None
    if window is None:
        allowed = causal_mask(seq, past, device=device)
    else:
        allowed = sliding_window_mask(seq, window, past, device=device)
    if context.padding is not None:
        places = torch.arange(past + seq, device=device)
        allowed = allowed & (places >= context.padding[:, None, None])
    return allowed if context.mask is None else allowed & context.mask


# What a layer is called with: its cache, or what its model hands on, or neither.
CacheOrContext = KeyValueCache | Context | None


def context_of(given: CacheOrContext, seq: int, device: torch.device | str | None) -> Context:
    """The context of a layer that is called with one, or with a cache, or with neither.

    Args:
        given: What it is called with.
        seq: Number of positions that it computes.
        device: Where they are.
    """
    if isinstance(given, Context):
        return given
    past, padding = (0, None) if given is None else (given.length, given.padding)
    places = next_positions(seq, given, device)
    return Context(seq, past, places, {}, padding=padding, cache=given)


def context_of_pass(
    seq: int,
    caches: Sequence[KeyValueCache] | None,
    device: torch.device | str | None,
    mask: Bool[Tensor, "batch *q_seq length"] | None = None,
    positions: Int[Tensor, "*batch seq"] | None = None,
) -> Context:
    """The context of a forward pass, for all blocks of a model.

    Args:
        seq: Number of positions that are computed.
        caches: Those of the blocks; None without.
        device: Where the model computes.
        mask: See :class:`Context`; `(batch, past + seq)` stands for all positions alike.
        positions: The position ids; those behind what the caches hold if not given.
    """
    context = context_of(caches[0] if caches else None, seq, device)
    if positions is not None:
        context = context._replace(position_ids=positions)
    if mask is not None:
        context = context._replace(mask=mask[:, None] if mask.ndim == 2 else mask)
    return context


def require_mask(mask: Tensor, batch: tuple[int, ...], seq: int, length: int) -> None:
    """Refuses a mask that does not fit the tokens of a forward pass.

    Args:
        mask: The mask.
        batch: The leading axes of the tokens.
        seq: How many there are in each sequence.
        length: The same with those that the caches hold.

    Raises:
        TypeError: If it is not boolean.
        ValueError: If its shape does not fit.
    """
    if mask.dtype != torch.bool:
        raise TypeError(f"mask must be boolean, True = may attend, got {mask.dtype}")
    shapes = [(*batch, length), (*batch, seq, length)] if len(batch) == 1 else []
    if not any(_is(mask.shape, shape) for shape in shapes):
        wanted = " or ".join(map(str, shapes)) or "(batch, length), which needs ids of two axes"
        raise ValueError(
            f"mask must be of shape {wanted}, got {tuple(mask.shape)} for tokens of shape "
            f"{(*batch, seq)} behind {length - seq} others"
        )


def require_position_ids(
    positions: Tensor, batch: tuple[int, ...], seq: int, max_seq: int | None
) -> None:
    """Refuses position ids that do not fit the tokens of a forward pass, or that no model has.

    Args:
        positions: The position ids.
        batch: The leading axes of the tokens.
        seq: How many there are in each sequence.
        max_seq: Number of positions that the model has; None if there is no end.

    Raises:
        TypeError: If they are not int64 or int32.
        ValueError: If the shape does not fit, or one is negative or behind the model's last.
    """
    if positions.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"positions must be int64 or int32, got {positions.dtype}")
    shapes = [(seq,), (*batch, seq)] if len(batch) == 1 else [(seq,)]
    if not any(_is(positions.shape, shape) for shape in shapes):
        raise ValueError(
            f"positions must be of shape {' or '.join(map(str, shapes))}, got "
            f"{tuple(positions.shape)}"
        )
    if torch.compiler.is_compiling() or positions.is_meta or positions.numel() == 0:
        return
    least, most = positions.min(), positions.max()
    if least < 0 or (max_seq is not None and most >= max_seq):
        last = "or more" if max_seq is None else f"to {max_seq - 1}"
        raise ValueError(f"positions must be 0 {last}, got values from {least} to {most}")


def _is(shape: Sequence[int], wanted: Sequence[int]) -> bool:
    # Number by number: as tuples they differ in a compiled pass whose sizes change.
    return len(shape) == len(wanted) and all(
        size == other for size, other in zip(shape, wanted, strict=True)
    )
